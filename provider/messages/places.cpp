#include "provider/messages/messages.hpp"

#include <algorithm>
#include <cstring>

namespace kumi::provider {

Places::Places(std::span<const iovec> places) noexcept {
    KUMI_ASSERT(places.size() <= places_max);
    for (const iovec& place : places)
        if (place.iov_len != 0) places_[count_++] = place, bytes_ += place.iov_len;
}

namespace {

/// Calls `visit(part, at)` for the parts of places between `offset` and `offset + bytes`; `at` counts from offset.
template <class Visit>
void for_each_part(std::span<const iovec> places, std::size_t offset, std::size_t bytes, Visit&& visit) {
    std::size_t at = 0;
    for (const iovec& place : places) {
        if (offset >= place.iov_len) {
            offset -= place.iov_len;
            continue;
        }
        const std::size_t count = std::min(bytes - at, place.iov_len - offset);
        if (count != 0) visit(MutableBytes(static_cast<std::byte*>(place.iov_base) + offset, count), at);
        at += count;
        offset = 0;
        if (at == bytes) return;
    }
}

} // namespace

std::optional<Bytes> Places::whole(std::size_t offset, std::size_t bytes) const noexcept {
    if (bytes == 0) return Bytes{};
    std::optional<Bytes> found;
    for_each_part(std::span(places_).first(count_), offset, bytes, [&](MutableBytes part, std::size_t at) {
        if (at == 0 && part.size() == bytes) found = part;
    });
    return found;
}

void Places::gather(std::size_t offset, MutableBytes to) const noexcept {
    for_each_part(std::span(places_).first(count_), offset, to.size(),
                  [&](MutableBytes part, std::size_t at) { std::memcpy(to.data() + at, part.data(), part.size()); });
}

void Places::scatter(std::size_t offset, Bytes from) const noexcept {
    for_each_part(std::span(places_).first(count_), offset, from.size(),
                  [&](MutableBytes part, std::size_t at) { std::memcpy(part.data(), from.data() + at, part.size()); });
}

Places Places::part(std::size_t offset, std::size_t bytes) const noexcept {
    Places part;
    if (bytes == 0) return part;
    KUMI_ASSERT(count_ == 1 && offset + bytes <= bytes_);
    part.places_[0] = {start() + offset, bytes};
    part.count_ = 1;
    part.bytes_ = bytes;
    return part;
}

} // namespace kumi::provider
