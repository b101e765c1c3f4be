#include "kumi/launch/console/typed_input.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace kumi::launch {

std::optional<winsize> own_terminal() noexcept {
    if (::isatty(STDOUT_FILENO) == 0) return std::nullopt;
    winsize size{};
    ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    return size;
}

Result<base::Descriptor> TypedInput::open() {
    if (::isatty(STDIN_FILENO) == 0) {
        base::Descriptor same(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10));
        if (!same) same.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC)); // that of this process is closed
        if (!same) return system_error(errno, "opening /dev/null");
        return same;
    }
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return system_error(errno, "making a pipe for node 0's input");
    to_node_.reset(ends[1]);
    ::fcntl(to_node_.get(), F_SETFL, O_NONBLOCK);
    return base::Descriptor(ends[0]);
}

bool TypedInput::pump() {
    if (held_.empty()) {
        std::array<char, 4096> buffer;
        const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
        if (got <= 0) return false; // end of input: the node sees it when the pipe closes
        held_.assign(buffer.data(), static_cast<std::size_t>(got));
    }
    const ssize_t written = ::write(to_node_.get(), held_.data(), held_.size());
    if (written < 0) return errno == EAGAIN || errno == EINTR;
    held_.erase(0, static_cast<std::size_t>(written));
    return true;
}

} // namespace kumi::launch
