#include "kumi/lab/keeper/request.hpp"

#include "kumi/base/text/number_text.hpp"

#include <cerrno>
#include <cstring>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

namespace kumi::lab {
namespace {

constexpr std::uint32_t request_bytes_max = 8u << 20; // the system itself takes 6 MiB of words and variables at most
constexpr int stream_count = 3;

bool send_all(int socket, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}

bool receive_all(int socket, char* into, std::size_t bytes) {
    while (bytes > 0) {
        const ssize_t got = ::recv(socket, into, bytes, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        into += got;
        bytes -= static_cast<std::size_t>(got);
    }
    return true;
}

std::string text_of(const Request& request) {
    std::string text;
    const auto add = [&](const std::string& part) { text.append(part).push_back('\0'); };
    add(request.verb);
    add(request.folder);
    add(fmt::format("{}", request.words.size()));
    for (const std::string& word : request.words) add(word);
    for (const std::string& variable : request.environment) add(variable);
    return text;
}

Result<Request> parse(std::string_view text) {
    std::vector<std::string> parts;
    while (!text.empty()) {
        const std::size_t end = text.find('\0');
        if (end == std::string_view::npos) return error("a request that is cut off");
        parts.emplace_back(text.substr(0, end));
        text.remove_prefix(end + 1);
    }
    if (parts.size() < 3) return error("a request that is too short");
    const auto words = base::number_in<std::size_t>(parts[2]);
    if (!words || *words > parts.size() - 3) return error("a request that has fewer words than it says");
    const auto first = parts.begin() + 3;
    const auto last = first + static_cast<std::ptrdiff_t>(*words);
    Request request;
    request.verb = std::move(parts[0]);
    request.folder = std::move(parts[1]);
    request.words.assign(first, last);
    request.environment.assign(last, parts.end());
    return request;
}

/// The first bytes of a request, which carry the descriptors.
bool receive_length(int socket, std::uint32_t& length, std::vector<base::Descriptor>& streams) {
    alignas(cmsghdr) char control[CMSG_SPACE(stream_count * sizeof(int))];
    iovec piece{&length, sizeof length};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t got = 0;
    while ((got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
    }
    if (got <= 0) return false;
    for (base::Descriptor& stream : base::descriptors_in(message)) streams.push_back(std::move(stream));
    const auto rest = sizeof length - static_cast<std::size_t>(got);
    return receive_all(socket, reinterpret_cast<char*>(&length) + got, rest);
}

} // namespace

Result<void> send_request(int socket, const Request& request) {
    const std::string text = text_of(request);
    if (text.size() > request_bytes_max) return error("the command and its environment are too long for the lab");
    auto length = static_cast<std::uint32_t>(text.size());
    alignas(cmsghdr) char control[CMSG_SPACE(stream_count * sizeof(int))] = {};
    iovec piece{&length, sizeof length};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(stream_count * sizeof(int));
    const int streams[stream_count] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    std::memcpy(CMSG_DATA(part), streams, sizeof streams);
    if (::sendmsg(socket, &message, MSG_NOSIGNAL) != sizeof length || !send_all(socket, text))
        return system_error(errno, "asking the lab's keeper");
    return {};
}

Result<Request> receive_request(int socket) {
    std::uint32_t length = 0;
    std::vector<base::Descriptor> streams;
    if (!receive_length(socket, length, streams) || length > request_bytes_max) return error("no request");
    std::string text(length, '\0');
    if (!receive_all(socket, text.data(), text.size())) return error("a request that ends too early");
    auto request = parse(text);
    if (!request) return request;
    if (streams.size() != stream_count) return error("a request without standard streams");
    request->streams = std::move(streams);
    return request;
}

void send_answer(int socket, const Answer& answer) {
    std::string bytes(sizeof answer.code, '\0');
    std::memcpy(bytes.data(), &answer.code, sizeof answer.code);
    send_all(socket, bytes + answer.text);
}

Result<Answer> receive_answer(int socket) {
    Answer answer;
    if (!receive_all(socket, reinterpret_cast<char*>(&answer.code), sizeof answer.code))
        return error("the lab went down");
    char buffer[4096];
    while (true) {
        const ssize_t got = ::recv(socket, buffer, sizeof buffer, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return answer;
        answer.text.append(buffer, static_cast<std::size_t>(got));
    }
}

} // namespace kumi::lab
