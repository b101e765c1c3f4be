#include "composite/soak_node.hpp"

#include "contestant/work.hpp"

#include "kumi/kumi.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <unistd.h>
#include <utility>
#include <vector>

namespace kumi::bench {
namespace {

using namespace std::chrono_literals;

constexpr auto look_time = 10ms; // how often a node checks for the end
constexpr auto end_time_max = 90s;
constexpr auto steady_rest = 20ms; // between two messages of a steady node to one node

struct Head {
    std::uint64_t number;
    std::uint32_t is_last;
    std::uint32_t fill; // the value of all bytes that follow
};

std::size_t bytes_behind(std::uint64_t number) {
    constexpr std::size_t sizes[] = {0, 8, 100, 1000, 60, 20'000, 16, 3000};
    return number % 200 == 199 ? 400'000 : sizes[number % std::size(sizes)];
}

/// The traffic with another node.
struct Stream {
    std::uint64_t next = 0;
    Instant last = now(); // when a message last came
    bool is_over = false;
};

class Soak {
public:
    explicit Soak(PmJob& job) : job_(job), in_(job.nodes()), out_(job.nodes()) {
        in_[job.node()].is_over = out_[job.node()].is_over = true;
        job.on_message([this](Message& message) { take(message); });
    }

    Result<void> run(const std::string& end_file, bool is_steady) {
        Instant looked{};
        std::optional<Instant> began; // when the end began
        bool is_over = false;
        while (!all_over(out_)) {
            if (!is_over && now() - looked > look_time) is_over = ::access(end_file.c_str(), F_OK) == 0, looked = now();
            bool sent = false;
            for (Node to = 0; to < job_.nodes(); ++to) {
                if (out_[to].is_over) continue;
                if (job_.channel().lost(to)) return error("node {} takes node {} for lost", job_.node(), to);
                sent = give(to, is_over) || sent;
            }
            if (is_over && !began) began = now();
            if (began && now() - *began > end_time_max)
                return error("node {}: not all could be sent within {} s of the end", job_.node(),
                             end_time_max.count());
            if (sent && is_steady && !is_over) job_.wait_until([] { return false; }, now() + steady_rest);
            else if (sent) job_.poll();
            else job_.wait_until([] { return false; }, now() + 1ms);
        }
        return {};
    }
    bool wait_for_others() {
        return job_.wait_until([this] { return all_over(in_); }, now() + end_time_max);
    }
    std::uint64_t received() const noexcept { return received_; }
    std::uint64_t wrong() const noexcept { return wrong_; }
    /// The longest time between two messages from one node.
    double longest_pause() const noexcept { return std::chrono::duration<double>(longest_pause_).count(); }

private:
    static bool all_over(const std::vector<Stream>& streams) {
        return std::all_of(streams.begin(), streams.end(), [](const Stream& stream) { return stream.is_over; });
    }

    bool give(Node to, bool is_last) {
        Stream& stream = out_[to];
        if (stream.is_over) return false;
        const Head head{stream.next, is_last, static_cast<std::uint32_t>(stream.next % 256)};
        message_.assign(sizeof head + bytes_behind(stream.next), std::byte(head.fill));
        std::memcpy(message_.data(), &head, sizeof head);
        if (!job_.channel().try_send(to, message_)) return false;
        ++stream.next;
        stream.is_over = is_last;
        return true;
    }

    void take(Message& message) {
        Stream& stream = in_[message.source()];
        Head head{};
        const bool is_next = read_value(message.bytes(), head) && head.number == stream.next;
        const bool is_whole = is_next && message.bytes().size() == sizeof head + bytes_behind(head.number);
        const Bytes rest = message.bytes().subspan(std::min(sizeof head, message.bytes().size()));
        const bool is_right = is_whole && std::all_of(rest.begin(), rest.end(),
                                                      [&](std::byte byte) { return byte == std::byte(head.fill); });
        if (!is_right) ++wrong_;
        const Instant time = now();
        longest_pause_ = std::max(longest_pause_, time - std::exchange(stream.last, time));
        ++received_;
        ++stream.next;
        stream.is_over = head.is_last != 0;
    }

    PmJob& job_;
    std::vector<Stream> in_, out_;
    std::vector<std::byte> message_;
    std::uint64_t received_ = 0;
    std::uint64_t wrong_ = 0;
    Duration longest_pause_{0};
};

} // namespace

int soak_node(std::span<const std::string> words, bool is_steady) {
    if (words.size() != 1) return fail(error("kumi-bench node: a file is wanted"));
    auto job = PmJob::join();
    if (!job) return fail(job.error());
    Soak soak(*job);
    if (auto ran = soak.run(words[0], is_steady); !ran) return fail(ran.error());
    if (!soak.wait_for_others())
        return fail(
            error("node {}: not all that was sent has come within {} s of the end", job->node(), end_time_max.count()));
    const auto tell = [&](const std::string& what, double value) {
        report(fmt::format("{}.{}", what, job->node()).c_str(), value);
    };
    tell("messages", static_cast<double>(soak.received()));
    tell("wrong", static_cast<double>(soak.wrong()));
    tell("pause", soak.longest_pause());
    for (const pm::Counter& counter : job->channel().counters())
        if (counter.name == std::string_view("failovers")) tell("failovers", static_cast<double>(counter.value));
    return 0;
}

} // namespace kumi::bench
