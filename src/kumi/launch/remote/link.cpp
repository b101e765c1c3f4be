#include "kumi/launch/remote/link.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace kumi::launch::remote {

Link::Link(host::Poller& poller, host::Event about, base::Descriptor in, base::Descriptor out)
    : poller_(poller), about_(about), in_(std::move(in)), out_(std::move(out)) {
    for (const int descriptor : {in_.get(), out_.get()})
        ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
    poller_.watch(in_.get(), about_, EPOLLIN);
}

Link::~Link() {
    poller_.forget(in_.get());
    if (wants_room_) poller_.forget(out_.get());
}

void Link::send(LinkKind kind, std::uint32_t node, std::uint32_t value, Bytes body) {
    const auto bytes = encode(kind, node, value, body);
    kept_.insert(kept_.end(), bytes.begin(), bytes.end());
    flush();
}

void Link::send_text(std::string_view text) {
    const Bytes bytes = bytes_of(text);
    kept_.insert(kept_.end(), bytes.begin(), bytes.end());
    flush();
}

bool Link::flush() {
    while (kept_bytes() != 0 && !broken_) {
        const Bytes bytes = Bytes(kept_).subspan(kept_start_);
        ssize_t sent = ::send(out_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == ENOTSOCK) sent = ::write(out_.get(), bytes.data(), bytes.size()); // a helper's pipe
        if (sent > 0) kept_start_ += static_cast<std::size_t>(sent);
        else if (errno == EAGAIN || errno == EWOULDBLOCK) break;
        else if (errno != EINTR) broken_ = true;
    }
    if (kept_bytes() == 0 || broken_) {
        kept_.clear();
        kept_start_ = 0;
    } else if (kept_start_ > kept_.size() / 2) {
        kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(std::exchange(kept_start_, 0)));
    }
    const bool wants_room = kept_bytes() != 0;
    if (wants_room && !wants_room_) poller_.watch(out_.get(), about_, EPOLLOUT);
    if (!wants_room && wants_room_) poller_.forget(out_.get());
    wants_room_ = wants_room;
    return !broken_;
}

bool Link::read() {
    std::array<std::byte, 65536> buffer;
    for (int i = 0; i < 16; ++i) { // others have something to say, too
        const ssize_t got = ::read(in_.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
        if (got <= 0) return false;
        reader_.add(Bytes(buffer).first(static_cast<std::size_t>(got)));
    }
    return true;
}

bool Link::is_readable() const noexcept {
    pollfd readable{in_.get(), POLLIN, 0};
    return ::poll(&readable, 1, 0) > 0;
}

} // namespace kumi::launch::remote
