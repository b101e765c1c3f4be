#include "kumi/boot/kumi_run.hpp"

#include "kumi/base/clock.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace kumi::boot {
namespace {

/// How long `kumi run` may take to answer the join. The answer has the limit for later answers.
constexpr std::chrono::seconds welcome_max{60};

class StartedSession final : public Session {
public:
    explicit StartedSession(base::Descriptor socket) : socket_(std::move(socket)) {}

    Result<void> join() {
        answer_max_ = welcome_max;
        const JoinBody mine{wire_version, ::getpid()};
        auto frame = ask(Kind::join, bytes_of(mine), Kind::welcome);
        if (!frame) return frame.error();
        WelcomeBody welcome{};
        if (!read_value(frame->body, welcome)) return error("kumi run's welcome is cut short: versions differ?");
        std::string_view names = text_of(Bytes(frame->body).subspan(sizeof welcome));
        std::vector<std::string> hosts;
        for (std::size_t end = 0; (end = names.find('\0')) != std::string_view::npos; names.remove_prefix(end + 1))
            hosts.emplace_back(names.substr(0, end));
        if (hosts.size() != welcome.hosts || welcome.host >= welcome.hosts)
            return error("kumi run's welcome names no hosts: versions differ?");
        const bool has_place = welcome.node < welcome.nodes && welcome.slot < welcome.nodes_on_host &&
                               welcome.nodes_on_host <= welcome.nodes;
        if (!has_place) return error("kumi run's welcome gives this node no place in the job: versions differ?");
        standing_ = {.node = welcome.node,
                     .nodes = welcome.nodes,
                     .slot = welcome.slot,
                     .nodes_on_host = welcome.nodes_on_host,
                     .cores_on_host = welcome.cores_on_host,
                     .host = hosts[welcome.host],
                     .hosts = std::move(hosts),
                     .traffic_wanted = welcome.traffic_wanted != 0,
                     .stats_wanted = welcome.stats_wanted != 0,
                     .keys = welcome.keys};
        answer_max_ = std::chrono::seconds(welcome.answer_seconds_max);
        return {};
    }

    const Standing& standing() const noexcept override { return standing_; }

    Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine) override {
        auto frame = ask(Kind::exchange, mine, Kind::exchanged);
        if (!frame) return frame.error();
        std::vector<std::vector<std::byte>> all;
        Bytes left = frame->body;
        for (std::uint32_t length = 0; read_value(left, length) && length <= left.size() - sizeof length;) {
            left = left.subspan(sizeof length);
            all.emplace_back(left.begin(), left.begin() + length);
            left = left.subspan(length);
        }
        if (all.size() != standing_.nodes)
            return error("kumi run passed on {} addresses instead of {}", all.size(), standing_.nodes);
        return all;
    }

    Result<base::Descriptor> share_on_host(base::Descriptor mine) override {
        auto frame = ask(Kind::share, {}, Kind::shared, mine.get());
        if (!frame) return frame.error();
        return std::move(frame->descriptor);
    }

    void report_traffic(std::span<const TrafficEntry> entries) override {
        // if kumi run is gone, the report is not needed
        (void)send_frame(socket_.get(), Kind::traffic, std::as_bytes(entries));
    }

    void report_stats(std::span<const StatsEntry> entries) override {
        (void)send_frame(socket_.get(), Kind::stats, std::as_bytes(entries));
    }

    bool report_failure(const Error& reason) override {
        return send_frame(socket_.get(), Kind::failed, bytes_of(std::string_view(reason.text()))).has_value();
    }

    void report_late(std::string_view what) override { (void)send_frame(socket_.get(), Kind::late, bytes_of(what)); }

    /// A signal, because no thread reads the socket any more, and because a thread that is stuck could not answer.
    void signal_questions(int signal) override {
        const int socket = socket_.get();
        if (::fcntl(socket, F_SETSIG, signal) != 0 || ::fcntl(socket, F_SETOWN, ::getpid()) != 0) return;
        ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_ASYNC);
    }
    bool has_questions() const noexcept override { return true; }

    // if kumi run is gone, there is nothing to leave
    void leave() override { (void)send_frame(socket_.get(), Kind::leave, {}); }

private:
    Result<Frame> ask(Kind question, Bytes body, Kind answer, int descriptor = -1) {
        if (auto sent = send_frame(socket_.get(), question, body, descriptor); !sent) return sent.error();
        auto frame = receive();
        if (!frame) return frame;
        // kumi run has told the user
        if (frame->kind == Kind::refused) return Error(std::string(text_of(frame->body))).as_told();
        if (frame->kind != answer)
            return error("kumi run gave an answer out of turn: two processes join as one node, or versions differ");
        return frame;
    }

    Result<Frame> receive() {
        const Instant deadline = answer_max_ == answer_max_.zero() ? never : now() + answer_max_;
        while (true) {
            auto frame = reader_.next();
            if (!frame) return frame.error();
            if (*frame && (*frame)->kind == Kind::report) continue; // kumi run says itself that this node is joining
            if (*frame) return std::move(**frame);
            if (auto more = wait_readable(deadline); !more) return more.error();
            if (!reader_.read_from(socket_.get())) {
                // The last frame may have arrived together with the end.
                auto last = reader_.next();
                if (last && *last) return std::move(**last);
                return error("kumi run, which started this node, is gone");
            }
        }
    }

    Result<void> wait_readable(Instant deadline) {
        while (true) {
            pollfd readable{socket_.get(), POLLIN, 0};
            const int ready = ::poll(&readable, 1, milliseconds_until(deadline));
            if (ready > 0) return {};
            if (ready == 0) return error("kumi run did not answer within {} s: is it stopped?", answer_max_.count());
            if (errno != EINTR) return system_error(errno, "waiting for kumi run");
        }
    }

    base::Descriptor socket_;
    FrameReader reader_;
    Standing standing_;
    std::chrono::seconds answer_max_{0};
};

} // namespace

Result<std::unique_ptr<Session>> join_started_job(base::Descriptor socket) {
    auto session = std::make_unique<StartedSession>(std::move(socket));
    if (auto joined = session->join(); !joined) return joined.error();
    return std::unique_ptr<Session>(std::move(session));
}

} // namespace kumi::boot
