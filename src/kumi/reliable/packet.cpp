#include "kumi/reliable/packet.hpp"

#include "kumi/base/data/checksum.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace kumi::reliable {

const char* name_of(Drop cause) noexcept {
    constexpr std::array names{"dropped_truncated",    "dropped_foreign", "dropped_damaged",
                               "dropped_misaddressed", "dropped_stale",   "dropped_beyond_window",
                               "dropped_malformed",    "dropped_late"};
    static_assert(names.size() == drop_causes);
    return names[static_cast<std::size_t>(cause)];
}

bool parse(Bytes& bytes, std::uint64_t token, Checked checked, PacketHeader& header, Drop& cause) noexcept {
    cause = Drop::truncated;
    if (!read_value(bytes, header)) return false;
    if (header.token != token) return cause = Drop::foreign, false;
    if (header.bytes < sizeof header || header.bytes % 8 != 0 || header.bytes > bytes.size()) return false;
    bytes = bytes.first(header.bytes);
    if (checked != Checked::nothing) {
        // The checksum was computed with its own field zero: compute it over a copy of the head, and over the rest in
        // place.
        alignas(8) std::byte head[summed_head_bytes];
        const std::size_t copied = std::min(bytes.size(), summed_head_bytes);
        std::memcpy(head, bytes.data(), copied);
        std::memset(head + offsetof(PacketHeader, checksum), 0, sizeof header.checksum);
        const Bytes rest = (header.flags & flag::head_checked) != 0 ? Bytes{} : bytes.subspan(copied);
        if (base::checksum(Bytes(head, copied), rest) != header.checksum) return cause = Drop::damaged, false;
    }
    const bool is_data = (header.flags & flag::data) != 0;
    const std::size_t ack_bytes = std::size_t{header.ack_words} * 8;
    const bool is_filled = is_data || (header.flags & flag::probe) != 0;
    if (is_filled ? header.ack_words != 0 : bytes.size() != sizeof header + ack_bytes)
        return cause = Drop::malformed, false;
    return true;
}

} // namespace kumi::reliable
