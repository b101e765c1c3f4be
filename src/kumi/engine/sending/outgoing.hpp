#pragma once

// The beginning of a message on its way out: a Header and what belongs to its kind.

#include "kumi/base/sync/thread_number.hpp"
#include "kumi/engine/wire.hpp"

#include <array>

namespace kumi::engine {

inline Header header_of(Kind kind, bool is_request) noexcept {
    return {static_cast<std::uint16_t>(kind), 0, is_request ? base::thread_number() << 1 | 1 : 0};
}
/// Of a request that is sent for another thread.
inline Header header_for(Kind kind, std::uint32_t thread) noexcept {
    return {static_cast<std::uint16_t>(kind), 0, thread << 1 | 1};
}

/// Writes a header into the room at the beginning of a message.
inline void write_header(MutableBytes message, Kind kind, bool is_request) noexcept {
    const Header header = header_of(kind, is_request);
    std::memcpy(message.data(), &header, sizeof header);
}

template <std::size_t bytes_max>
class Outgoing {
public:
    Outgoing(Kind kind, bool is_request) noexcept : Outgoing(header_of(kind, is_request)) {}
    explicit Outgoing(const Header& header) noexcept { std::memcpy(buffer_.data(), &header, sizeof header); }
    void append(Bytes bytes) noexcept {
        kumi::copy_bytes(buffer_.data() + size_, bytes);
        size_ += bytes.size();
    }
    MutableBytes bytes() noexcept { return {buffer_.data(), size_}; }

private:
    alignas(8) std::array<std::byte, sizeof(Header) + bytes_max> buffer_;
    std::size_t size_ = sizeof(Header);
};

template <class Head>
Outgoing<sizeof(Head)> outgoing(Kind kind, bool is_request, const Head& head) noexcept {
    Outgoing<sizeof(Head)> message(kind, is_request);
    message.append(bytes_of(head));
    return message;
}
template <class Head>
Outgoing<sizeof(Head)> outgoing_for(Kind kind, std::uint32_t thread, const Head& head) noexcept {
    Outgoing<sizeof(Head)> message(header_for(kind, thread));
    message.append(bytes_of(head));
    return message;
}

} // namespace kumi::engine
