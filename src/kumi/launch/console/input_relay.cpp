#include "kumi/launch/console/input_relay.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/epoll.h>
#include <unistd.h>

namespace kumi::launch {

void InputRelay::watch() {
    if (!ended_ && room_bytes_ != 0) is_file_ = !poller_.watch(STDIN_FILENO, {host::Source::input, 0}, EPOLLIN);
}

void InputRelay::on_ready(base::FunctionRef<void(Bytes)> send) {
    // In the background of a terminal, reading would stop this process; watch() is called again with SIGCONT.
    const bool foreground = ::isatty(STDIN_FILENO) == 0 || ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
    if (ended_ || room_bytes_ == 0 || !foreground) return poller_.forget(STDIN_FILENO);
    std::array<std::byte, remote::input_bytes_max> buffer;
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), room_bytes_);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    const Bytes bytes = Bytes(buffer).first(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    room_bytes_ -= static_cast<std::uint32_t>(bytes.size());
    if (bytes.empty()) end();
    if (room_bytes_ == 0) poller_.forget(STDIN_FILENO);
    send(bytes);
}

void InputRelay::on_taken(std::uint32_t bytes) {
    room_bytes_ = std::min(room_bytes_ + bytes, remote::input_bytes_max);
    watch();
}

void InputRelay::end() {
    ended_ = true;
    poller_.forget(STDIN_FILENO);
}

} // namespace kumi::launch
