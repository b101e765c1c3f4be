#include "kumi/boot/store/pmi.hpp"

#include "kumi/base/clock.hpp"
#include "kumi/base/text/number_text.hpp"
#include "kumi/boot/store/pmi_line.hpp"
#include "kumi/boot/wire.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <netdb.h>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace kumi::boot {
namespace {

using base::number_in;

/// Most digits in one value, whatever the server allows: some servers cut lines of more than 1,024 bytes.
constexpr std::int64_t value_digits_max = 512;
/// leave() waits no longer than this, so that it does not delay the end of a program.
constexpr std::chrono::milliseconds goodbye_max{5'000};

/// Waits for the socket. Returns 0 when it is ready; otherwise an error number, ETIMEDOUT after the deadline.
int wait_for(int socket, short events, Instant deadline) {
    while (true) {
        pollfd ready{socket, events, 0};
        const int count = ::poll(&ready, 1, milliseconds_until(deadline));
        if (count > 0) return 0;
        if (count == 0) return ETIMEDOUT;
        if (errno != EINTR) return errno;
    }
}

class Pmi final : public KeyValues {
public:
    Pmi(std::string server, std::chrono::milliseconds answer_max)
        : server_(std::move(server)), answer_max_(answer_max) {}

    std::uint32_t node() const noexcept override { return node_; }
    std::uint32_t nodes() const noexcept override { return nodes_; }

    /// Uses a socket that this process inherited. Its children must not use it, too.
    Result<void> inherit(const char* descriptor, const char* rank, const char* size) {
        int kind = 0;
        socklen_t bytes = sizeof kind;
        const auto number = number_in<int>(descriptor);
        if (!number || ::getsockopt(*number, SOL_SOCKET, SO_TYPE, &kind, &bytes) != 0 ||
            ::fcntl(*number, F_SETFD, FD_CLOEXEC) != 0)
            return error("PMI_FD={} names no open socket: only the processes that a launcher starts have it; start the "
                         "program with mpiexec.hydra, srun --mpi=pmi2 or kumi run, or unset PMI_FD",
                         descriptor);
        socket_.reset(*number);
        return place(number_in<std::uint32_t>(rank == nullptr ? "" : rank),
                     number_in<std::uint32_t>(size == nullptr ? "" : size));
    }

    /// Connects to the server, which tells the number of this process.
    Result<void> connect(std::string_view address, const char* id) {
        if (auto connected = connect_to(address); !connected) return connected.error();
        if (auto sent = send(pmi_line("initack", {{"pmiid", id == nullptr ? "0" : id}})); !sent) return sent.error();
        std::optional<std::uint32_t> rank, size;
        constexpr int lines_max = 16;
        for (int lines = 0; lines < lines_max; ++lines) {
            auto line = receive("initack", now() + answer_max_);
            if (!line) return line.error();
            if (const auto value = line->field("size")) size = number_in<std::uint32_t>(*value);
            if (const auto value = line->field("rank")) rank = number_in<std::uint32_t>(*value);
            if (line->field("debug")) break; // the last line of the answer
        }
        return place(rank, size);
    }

    Result<void> start() {
        auto version = ask("response_to_init", "init", {{"pmi_version", "1"}, {"pmi_subversion", "1"}});
        if (!version) return version.error();
        if (version->number("pmi_version") != 1) return error("{} does not speak PMI-1, which Kumi does", server_);
        auto limits = ask("maxes", "get_maxes");
        if (!limits) return limits.error();
        digits_max_ = std::min(limits->number("vallen_max").value_or(0) - 1, value_digits_max) / 2 * 2;
        if (digits_max_ < 32 || limits->number("keylen_max").value_or(0) < 32)
            return error("{} takes only very short keys and values: Kumi needs 32 letters of each", server_);
        auto name = ask("my_kvsname", "get_my_kvsname");
        if (!name) return name.error();
        if (!name->field("kvsname")) return error("{} does not name its store", server_);
        store_name_ = *name->field("kvsname");
        return {};
    }

    Result<void> put(std::string_view key, Bytes value) override {
        // The first piece starts with the number of digits in all.
        const std::string digits = hex_of(value);
        const std::string whole = fmt::format("{:x}.{}", digits.size(), digits);
        const auto piece_max = static_cast<std::size_t>(digits_max_);
        for (std::size_t at = 0, piece = 0; at < whole.size(); at += piece_max, ++piece) {
            const std::string name = full_key(node_, key, piece);
            const std::string_view part = std::string_view(whole).substr(at, piece_max);
            auto answer = ask("put_result", "put", {{"kvsname", store_name_}, {"key", name}, {"value", part}});
            if (!answer) return answer.error();
        }
        return {};
    }

    Result<void> fence() override {
        auto answer = ask("barrier_out", "barrier_in");
        if (!answer) return answer.error();
        return {};
    }

    Result<std::vector<std::byte>> get(std::uint32_t node, std::string_view key) override {
        std::string digits;
        std::optional<std::size_t> whole;
        for (std::size_t piece = 0; !whole || digits.size() < *whole; ++piece) {
            const std::string name = full_key(node, key, piece);
            auto answer = ask("get_result", "get", {{"kvsname", store_name_}, {"key", name}});
            if (!answer) return answer.error();
            std::string_view value = answer->field("value").value_or("");
            if (piece == 0) {
                std::size_t count = 0;
                const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), count, 16);
                if (status != std::errc{} || end == value.data() + value.size() || *end != '.' ||
                    count > 2 * body_bytes_max)
                    return garbled(name, value);
                value.remove_prefix(static_cast<std::size_t>(end + 1 - value.data()));
                whole = count;
            }
            if ((value.empty() && piece > 0) || digits.size() + value.size() > *whole) return garbled(name, value);
            digits += value;
        }
        auto bytes = bytes_of_hex(digits);
        if (!bytes) return garbled(full_key(node, key, 0), digits);
        return *std::move(bytes);
    }

    void leave() override {
        answer_max_ = std::min(answer_max_, goodbye_max);
        (void)ask("finalize_ack", "finalize"); // if the server is gone, there is nothing to leave
        socket_.reset();
    }

private:
    using Fields = std::initializer_list<std::pair<std::string_view, std::string_view>>;

    static std::string full_key(std::uint32_t node, std::string_view key, std::size_t piece) {
        return fmt::format("kumi-{}-{}-{}", node, key, piece);
    }

    Error garbled(std::string_view key, std::string_view value) const {
        return error("{} has \"{}\" under {}, which no Kumi program put there", server_, shown(value), key);
    }

    Result<void> place(std::optional<std::uint32_t> rank, std::optional<std::uint32_t> size) {
        if (!rank || !size || *rank >= *size)
            return error("{} does not say which process this is, and of how many (PMI_RANK, PMI_SIZE): start the "
                         "program with mpiexec.hydra, srun --mpi=pmi2 or kumi run",
                         server_);
        node_ = *rank;
        nodes_ = *size;
        return {};
    }

    Result<void> connect_to(std::string_view address) {
        const std::size_t colon = address.rfind(':');
        if (colon == std::string_view::npos || colon == 0)
            return error("{}: not an address such as host:4000", server_);
        const std::string host(address.substr(0, colon)), port(address.substr(colon + 1));
        addrinfo hints{};
        hints.ai_socktype = SOCK_STREAM;
        addrinfo* found = nullptr;
        if (const int status = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); status != 0)
            return error("{}: {}: is the launcher on a host that this one can name?", server_, ::gai_strerror(status));
        const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
        int reason = 0;
        for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
            socket_.reset(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
            reason = ::connect(socket_.get(), one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
            if (reason == EINPROGRESS) {
                socklen_t bytes = sizeof reason;
                const int waited = wait_for(socket_.get(), POLLOUT, now() + answer_max_);
                if (waited != 0) reason = waited;
                else ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &reason, &bytes);
            }
            if (reason == 0) return {};
        }
        return system_error(reason, fmt::format("connecting to {}, the launcher of this process", server_));
    }

    /// Sends a command and waits for its answer. An error if the answer has another name or reports an error.
    Result<PmiLine> ask(std::string_view answer, std::string_view command, Fields fields = {}) {
        if (auto sent = send(pmi_line(command, fields)); !sent) return sent.error();
        auto line = receive(command, now() + answer_max_);
        if (!line) return line;
        if (line->command() != answer)
            return error("{} answered cmd={} to cmd={}: not PMI-1 as Kumi knows it", server_, shown(line->command()),
                         command);
        if (line->number("rc").value_or(0) != 0)
            return error("{} refused cmd={}: rc={} {}", server_, command, *line->number("rc"),
                         shown(line->field("msg").value_or("")));
        return line;
    }

    Result<void> send(const std::string& text) {
        const Instant deadline = now() + answer_max_;
        const std::string command = text.substr(0, text.find_first_of(" \n"));
        for (Bytes left = bytes_of(std::string_view(text)); !left.empty();) {
            const std::ptrdiff_t sent = send_some(socket_.get(), left);
            if (sent < 0) return gone(command);
            left = left.subspan(static_cast<std::size_t>(sent));
            if (!left.empty() && wait_for(socket_.get(), POLLOUT, deadline) != 0) return silent(command);
        }
        return {};
    }

    Result<PmiLine> receive(std::string_view command, Instant deadline) {
        while (true) {
            auto line = reader_.next();
            if (!line) return error("{}: {}", server_, line.error().text());
            if (*line) return *std::move(*line);
            if (wait_for(socket_.get(), POLLIN, deadline) != 0) return silent(fmt::format("cmd={}", command));
            std::array<std::byte, 4096> buffer;
            const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
            if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
            if (got <= 0) return gone(fmt::format("cmd={}", command));
            reader_.take(Bytes(buffer).first(static_cast<std::size_t>(got)));
        }
    }

    Error gone(std::string_view command) const {
        return error("{}, the launcher of this process, closed the connection at {}: has it ended, or has another "
                     "program joined in place of this one before?",
                     server_, command);
    }
    Error silent(std::string_view command) const {
        if (command == "cmd=barrier_in")
            return error("{}: not all {} processes of this job have joined within {:g} s: did one not call "
                         "kumi::Job::join()?",
                         server_, nodes_, std::chrono::duration<double>(answer_max_).count());
        return error("{}, the launcher of this process, did not answer {} within {:g} s: is it stopped?", server_,
                     command, std::chrono::duration<double>(answer_max_).count());
    }

    std::string server_; // its name in errors
    std::chrono::milliseconds answer_max_;
    base::Descriptor socket_;
    PmiLineReader reader_;
    std::uint32_t node_ = 0;
    std::uint32_t nodes_ = 1;
    std::int64_t digits_max_ = 0;
    std::string store_name_;
};

} // namespace

Result<std::unique_ptr<KeyValues>> open_pmi(base::FunctionRef<const char*(const char*)> variable,
                                            std::chrono::milliseconds answer_max) {
    const char* const descriptor = variable("PMI_FD");
    const char* const address = variable("PMI_PORT");
    KUMI_ASSERT(descriptor != nullptr || address != nullptr);
    const std::string server =
        descriptor != nullptr ? fmt::format("PMI_FD={}", descriptor) : fmt::format("PMI_PORT={}", address);
    auto store = std::make_unique<Pmi>(server, answer_max);
    auto reached = descriptor != nullptr ? store->inherit(descriptor, variable("PMI_RANK"), variable("PMI_SIZE"))
                                         : store->connect(address, variable("PMI_ID"));
    if (!reached) return reached.error();
    if (auto started = store->start(); !started) return started.error();
    return std::unique_ptr<KeyValues>(std::move(store));
}

} // namespace kumi::boot
