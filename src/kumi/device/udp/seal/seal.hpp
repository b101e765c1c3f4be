#pragma once

// Packets that only two nodes can read or make.
//
//   on the wire:  SealHeader | the packet, encrypted | 16 bytes that prove both
//
// Every node makes a key pair (X25519) and a random salt for every channel that it opens, and tells the others the
// public half through the boot. When two nodes first talk, each makes from both halves the secrets of the two
// directions, mixed with the job's secret, the network, both salts and both node numbers (HKDF). So a third node cannot
// read what they say or speak for them, and no two channels, networks, lives or directions share a key.
//
// Packets of one direction are numbered, and the number is the nonce. It never starts again while the channel lives, so
// no key meets a nonce twice. A number that has been seen, or is too old to tell, is refused.
//
// Keys are replaced after so many packets or so much time: the secret of a direction makes its key and the next secret,
// and is forgotten. Its sender begins with a new key once the receiver has said that it saw the last one. So the two
// are never more than one key apart, and the receiver needs three: for packets that are late, the current one, the
// next.

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/keys.hpp"
#include "kumi/base/result.hpp"
#include "kumi/device/udp/options.hpp"
#include "kumi/device/udp/seal/crypto.hpp"
#include "kumi/pm/node.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kumi::device::udp {

struct SealHeader {
    std::uint64_t name;   // of the job on this network; it tells nothing of the job's token
    std::uint32_t source;
    std::uint16_t bytes;  // of the sealed packet, all told
    std::uint8_t epoch;   // of its key: how many the direction had before, the last 8 bits
    std::uint8_t seen;    // the latest epoch of the other direction that its receiver saw
    std::uint64_t number; // of this packet from source to destination
};
static_assert(sizeof(SealHeader) == 24);
inline constexpr std::size_t seal_bytes = sizeof(SealHeader) + crypto::tag_bytes;

/// What a node tells the others through the boot.
struct SealOffer {
    crypto::PublicKey key;
    std::array<std::byte, 16> salt;
    std::uint32_t prefers_aes;
    std::uint32_t reserved;
};
static_assert(sizeof(SealOffer) == 56);

class Seal {
public:
    enum class Opened : std::uint8_t { yes, truncated, foreign, forged, replayed };

    /// Makes this node's keys for one channel. An error where this build has no encryption.
    static Result<std::unique_ptr<Seal>> make(const Options& options, const base::JobKeys& keys, pm::Node self);
    ~Seal();

    const SealOffer& offer() const noexcept { return offer_; }
    /// What every node offers, by node. Comes before close() and open().
    void meet(std::vector<SealOffer> offers);

    /// Seals head and body for `to` into `out`, which has room for seal_bytes more; answers the bytes used. 0: there is
    /// no key, because what `to` offered is none, or because there was no memory when the two first talked.
    std::size_t close(pm::Node to, Bytes head, Bytes body, std::byte* out, Instant time) noexcept;

    /// Opens the sealed packet that `bytes` start with, in place; `packet` is what was in it.
    Opened open(MutableBytes bytes, Bytes& packet) noexcept;
    /// What the header says, of bytes that open() did not call truncated.
    static std::size_t bytes_of_sealed(Bytes bytes) noexcept;

    /// Keys that packets to `node` have had so far.
    std::uint64_t keys_used(pm::Node node) const noexcept;

private:
    struct Pair;
    struct Peer;

    Seal(const Options& options, const base::JobKeys& keys, pm::Node self, crypto::PrivateKey own);

    Pair* pair_with(pm::Node node) noexcept;
    bool agree(Pair& pair, pm::Node node) noexcept;
    std::optional<crypto::Secret> secret_of(const crypto::Secret& shared, pm::Node source, pm::Node destination,
                                            crypto::Cipher cipher) const noexcept;

    Rekeying rekeying_;
    base::JobKeys keys_;
    crypto::Secret network_; // names the network, to those who know the job's secret
    std::uint64_t name_ = 0;
    pm::Node self_;
    crypto::PrivateKey own_;
    SealOffer offer_{};
    std::vector<Peer> peers_; // by node
};

} // namespace kumi::device::udp
