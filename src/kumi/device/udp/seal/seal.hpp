#pragma once

// Encryption of packets between two nodes: only these two can read or make them.
//
//   on the wire:  SealHeader | the packet, encrypted | a tag of 16 bytes that authenticates both
//
// Every node makes a key pair (X25519) and a random salt for every channel that it opens, and sends the public key to
// the others through boot. When two nodes first send to each other, each derives the secrets of the two directions from
// the key exchange, the job's secret, the network, both salts and both node numbers (HKDF). So a third node cannot read
// their packets or forge them, and no two channels, networks, incarnations or directions share a key.
//
// Packets of one direction are numbered, and the number is the nonce. Numbers never start again while the channel
// lives, so no key is used with one nonce twice. A number that was seen before, or is too old to tell, is refused.
//
// Keys are replaced after a number of packets or a time: the secret of a direction gives its key and the next secret,
// and is then erased. The sender starts to use a new key when the receiver has reported that it saw the current one. So
// the two are never more than one key apart, and the receiver needs three keys: the last (for late packets), the
// current, and the next.

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/base/system/keys.hpp"
#include "kumi/device/udp/options.hpp"
#include "kumi/device/udp/seal/crypto.hpp"
#include "kumi/pm/node.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kumi::device::udp {

struct SealHeader {
    std::uint64_t name;   // of the job on this network; reveals nothing about the job's token
    std::uint32_t source;
    std::uint16_t bytes;  // of the whole sealed packet
    std::uint8_t epoch;   // of the key: the number of keys that the direction had before, modulo 256
    std::uint8_t seen;    // the latest epoch that the source saw from the destination
    std::uint64_t number; // of this packet from source to destination
};
static_assert(sizeof(SealHeader) == 24);
inline constexpr std::size_t seal_bytes = sizeof(SealHeader) + crypto::tag_bytes;

/// What a node sends to the others through boot.
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

    /// Makes this node's keys for one channel. An error in builds without encryption.
    static Result<std::unique_ptr<Seal>> make(const Options& options, const base::JobKeys& keys, pm::Node self);
    ~Seal();

    const SealOffer& offer() const noexcept { return offer_; }
    /// Takes the offers of all nodes, by node. Must be called before close() and open().
    void meet(std::vector<SealOffer> offers);

    /// Encrypts head and body for `to` into `out`, which has room for seal_bytes more. Returns the bytes used. 0: there
    /// is no key, because the public key of `to` is not valid, or there was no memory at the first packet.
    std::size_t close(pm::Node to, Bytes head, Bytes body, std::byte* out, Instant time) noexcept;

    /// Decrypts the sealed packet at the front of `bytes` in place; `packet` is its content.
    Opened open(MutableBytes bytes, Bytes& packet) noexcept;
    /// The size in the header of bytes that open() did not call truncated.
    static std::size_t bytes_of_sealed(Bytes bytes) noexcept;

    /// How many keys have been used for packets to `node`.
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
    crypto::Secret network_; // identifies the network; derived from the job's secret
    std::uint64_t name_ = 0;
    pm::Node self_;
    crypto::PrivateKey own_;
    SealOffer offer_{};
    std::vector<Peer> peers_; // by node
};

} // namespace kumi::device::udp
