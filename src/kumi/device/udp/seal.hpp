#pragma once

// Packets that only the job's nodes can read or make: AES-256-GCM. Each node has a key of its own for sending, made
// from the job's secret, its number and its incarnation, so no two lives share one; each packet to a destination has a
// number that never repeats under that key, and a packet whose number has been seen, or is too old to tell, is refused.
//
//   on the wire:  SealHeader | the packet, encrypted | 16 bytes that prove it

#include "kumi/base/bytes.hpp"
#include "kumi/base/keys.hpp"
#include "kumi/base/result.hpp"
#include "kumi/pm/node.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kumi::device::udp {

struct SealHeader {
    std::uint64_t token;
    std::uint32_t source;
    std::uint32_t bytes;  // of the sealed packet, all told
    std::uint64_t number; // of this packet from source to destination
};
static_assert(sizeof(SealHeader) == 24);
inline constexpr std::size_t seal_tag_bytes = 16;
inline constexpr std::size_t seal_bytes = sizeof(SealHeader) + seal_tag_bytes;

/// Remembers which numbers have been seen: the largest, and the 2,048 before it.
class ReplayWindow {
public:
    static constexpr std::uint64_t width = 2048;

    bool is_new(std::uint64_t number) const noexcept;
    void note(std::uint64_t number) noexcept;

private:
    std::uint64_t next_ = 0; // everything from here on is new
    std::uint64_t bits_[width / 64] = {};
};

class Seal {
public:
    enum class Opened : std::uint8_t { yes, truncated, foreign, forged, replayed };

    /// An error where this build has no encryption.
    static Result<std::unique_ptr<Seal>> make(const base::JobKeys& keys, pm::Node self, std::uint32_t incarnation,
                                              const std::vector<std::uint32_t>& incarnations);
    ~Seal();

    /// Seals head and body for `to` into `out`, which has room for seal_bytes more; answers the bytes used.
    std::size_t close(pm::Node to, Bytes head, Bytes body, std::byte* out) noexcept;

    /// Opens the sealed packet that `bytes` start with, in place; `packet` is what was in it.
    Opened open(MutableBytes bytes, Bytes& packet) noexcept;
    /// What the header says, of bytes that open() did not call truncated.
    static std::size_t bytes_of_sealed(Bytes bytes) noexcept;

private:
    struct State;
    explicit Seal(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

} // namespace kumi::device::udp
