#pragma once

// Writes and reads messages of groups.

#include "kumi/base/bytes.hpp"
#include "kumi/engine/call/parameters.hpp"

#include <vector>

namespace kumi::group {

/// A message that begins with `head`, after room for the engine's header.
template <class Head>
std::vector<std::byte> message_of(const Head& head) {
    std::vector<std::byte> message(engine::header_room + sizeof head);
    copy_bytes(message.data() + engine::header_room, bytes_of(head));
    return message;
}

/// The same in a message whose memory is used again, in two steps, for a head that depends on what follows it.
template <class Head>
void make_room_for(std::vector<std::byte>& message) {
    message.resize(engine::header_room + sizeof(Head));
}
template <class Head>
void put_head(std::vector<std::byte>& message, const Head& head) {
    copy_bytes(message.data() + engine::header_room, bytes_of(head));
}

inline void append(std::vector<std::byte>& message, Bytes bytes) {
    message.insert(message.end(), bytes.begin(), bytes.end());
}

/// Takes a value off the front.
template <class T>
bool take(Bytes& bytes, T& value) {
    if (!read_value(bytes, value)) return false;
    bytes = bytes.subspan(sizeof(T));
    return true;
}

} // namespace kumi::group
