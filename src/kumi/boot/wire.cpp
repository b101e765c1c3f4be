#include "kumi/boot/wire.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>

namespace kumi::boot {

std::vector<std::byte> encode(Kind kind, Bytes body, bool with_descriptor) {
    const FrameHeader header{kind, static_cast<std::uint32_t>(body.size()), with_descriptor ? 1u : 0u, 0};
    std::vector<std::byte> bytes(sizeof header + body.size());
    std::memcpy(bytes.data(), &header, sizeof header);
    if (!body.empty()) std::memcpy(bytes.data() + sizeof header, body.data(), body.size());
    return bytes;
}

std::ptrdiff_t send_some(int socket, Bytes bytes, int descriptor) noexcept {
    iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (descriptor >= 0) {
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        cmsghdr* rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(rights), &descriptor, sizeof(int));
    }
    while (true) {
        const ssize_t sent = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent >= 0) return sent;
        if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
        if (errno != EINTR) return -1;
    }
}

Result<void> send_frame(int socket, Kind kind, Bytes body, int descriptor) {
    const std::vector<std::byte> frame = encode(kind, body, descriptor >= 0);
    Bytes left = frame;
    while (!left.empty()) {
        const std::ptrdiff_t sent = send_some(socket, left, descriptor);
        if (sent < 0) return error("kumi run, which started this node, is gone");
        if (sent > 0) descriptor = -1; // it was sent with the first byte
        left = left.subspan(static_cast<std::size_t>(sent));
        pollfd room{socket, POLLOUT, 0};
        if (!left.empty()) ::poll(&room, 1, -1);
    }
    return {};
}

bool FrameReader::read_from(int socket) {
    std::array<std::byte, 65536> buffer;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * 8)> control;
    while (true) {
        iovec piece{buffer.data(), buffer.size()};
        msghdr message{};
        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        const ssize_t got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
        if (got <= 0) return false;
        for (base::Descriptor& descriptor : base::descriptors_in(message))
            descriptors_.push_back(std::move(descriptor));
        bytes_.insert(bytes_.end(), buffer.begin(), buffer.begin() + got);
    }
}

Result<std::optional<Frame>> FrameReader::next() {
    FrameHeader header{};
    if (!read_value(bytes_, header)) return std::optional<Frame>{};
    const bool known = header.kind >= Kind::join && header.kind <= Kind::environment;
    if (!known || header.body_bytes > body_bytes_max || header.descriptors > 1)
        return error("what came over the {} socket is no frame of this version of Kumi", socket_variable);
    const std::size_t whole = sizeof header + header.body_bytes;
    if (bytes_.size() < whole) return std::optional<Frame>{};
    Frame frame{header.kind, {}, {}};
    frame.body.assign(bytes_.begin() + sizeof header, bytes_.begin() + static_cast<std::ptrdiff_t>(whole));
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(whole));
    if (header.descriptors == 1) {
        if (descriptors_.empty()) return error("a descriptor that was announced did not arrive: too many open files?");
        frame.descriptor = std::move(descriptors_.front());
        descriptors_.erase(descriptors_.begin());
    }
    return std::optional<Frame>(std::move(frame));
}

} // namespace kumi::boot
