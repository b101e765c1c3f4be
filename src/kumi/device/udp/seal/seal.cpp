#include "kumi/device/udp/seal/seal.hpp"

#include "kumi/base/assert.hpp"
#include "kumi/device/udp/seal/replay_window.hpp"
#include "kumi/reliable/packet.hpp"

#include <cstring>
#include <new>

namespace kumi::device::udp {
namespace {

using crypto::Aead;
using crypto::Cipher;
using crypto::Nonce;
using crypto::Secret;

static_assert(reliable::packet_bytes_max + seal_bytes <= 0xFFFF); // SealHeader::bytes

/// What the first secret of a direction is derived from.
struct Purpose {
    char label[16] = "kumi udp pair";
    std::uint64_t token;
    std::array<std::byte, 32> network;
    crypto::PublicKey source_key;
    crypto::PublicKey destination_key;
    std::uint32_t source;
    std::uint32_t destination;
    Cipher cipher;
    std::uint32_t reserved = 0;
};
static_assert(sizeof(Purpose) == 16 + 8 + 3 * 32 + 16);

Nonce nonce_of(std::uint64_t number) {
    Nonce nonce{};
    std::memcpy(nonce.data() + 4, &number, 8);
    return nonce;
}

std::optional<Secret> derive(const Secret& secret, std::string_view purpose) noexcept {
    return crypto::derive(secret.bytes, {}, bytes_of(purpose));
}

} // namespace

/// The state of both directions between this node and another.
struct Seal::Pair {
    Cipher cipher = Cipher::aes_256_gcm;

    // To the other node.
    Secret secret_out; // gives the next key
    Secret key_out;    // only while Rekeying::on_use is set
    Aead closing;
    std::uint64_t epoch_out = 0;
    std::uint64_t packets = 0; // encrypted with this key
    std::uint64_t number = 0;  // of the next packet
    Instant since{};           // time of this key's first packet
    bool is_seen = false;      // the other node has seen this epoch

    // From it.
    Secret secret_in; // gives the key after `next`, or after `current` if there is no next yet
    std::uint64_t epoch_in = 0;
    Aead late, current, next;
    ReplayWindow window;

    /// Makes the first key of each direction.
    bool start(bool is_watched) noexcept {
        return advance_out(is_watched) && make_key(secret_in, current, Aead::Use::opens, nullptr);
    }

    bool advance_out(bool is_watched) noexcept {
        if (!make_key(secret_out, closing, Aead::Use::closes, is_watched ? &key_out : nullptr)) return false;
        packets = 0;
        is_seen = false;
        return true;
    }

    /// Makes the key that `secret` gives, and replaces `secret` by the following one. False if there was no memory:
    /// nothing has changed then.
    bool make_key(Secret& secret, Aead& aead, Aead::Use use, Secret* kept) noexcept {
        const auto key = derive(secret, "kumi udp key");
        const auto following = derive(secret, "kumi udp next");
        Aead made;
        if (!key || !following || !made.set(cipher, *key, use)) return false;
        aead = std::move(made);
        secret = *following;
        if (kept != nullptr) *kept = *key;
        return true;
    }

    /// The key for a packet of that epoch (modulo 256); null if there is none.
    Aead* opening_for(std::uint8_t epoch) noexcept {
        switch (static_cast<std::int8_t>(epoch - static_cast<std::uint8_t>(epoch_in))) {
        case 0: return &current;
        case -1: return late ? &late : nullptr;
        case 1: return next || make_key(secret_in, next, Aead::Use::opens, nullptr) ? &next : nullptr;
        default: return nullptr;
        }
    }

    /// A packet with the key `next` was authentic: the sender uses that key now.
    void turn_to_next() noexcept {
        late = std::move(current);
        current = std::move(next);
        next = Aead();
        ++epoch_in;
    }
};

struct Seal::Peer {
    SealOffer offer;
    std::unique_ptr<Pair> pair{}; // after the first packet
    bool is_hopeless = false;     // no key can be agreed on
};

Seal::Seal(const Options& options, const base::JobKeys& keys, pm::Node self, crypto::PrivateKey own)
    : rekeying_(options.rekeying), keys_(keys), self_(self), own_(std::move(own)) {}
Seal::~Seal() = default;

Result<std::unique_ptr<Seal>> Seal::make(const Options& options, const base::JobKeys& keys, pm::Node self) {
    auto own = crypto::PrivateKey::make();
    if (!own) return error("udp: {}", own.error().text());
    std::unique_ptr<Seal> seal(new Seal(options, keys, self, *std::move(own)));
    seal->offer_.key = seal->own_.public_key();
    seal->offer_.prefers_aes = options.prefers_aes.value_or(crypto::has_fast_aes()) ? 1 : 0;
    if (auto filled = base::fill_with_random(seal->offer_.salt, "making a salt for a network's keys"); !filled)
        return filled.error();
    const std::string purpose = "kumi udp network " + options.network;
    const auto network = crypto::derive(keys.secret, {}, bytes_of(std::string_view(purpose)));
    const auto name = network ? derive(*network, "kumi udp name") : std::nullopt;
    if (!name) return error("udp: OpenSSL has no HKDF here; encrypt = false turns encryption off");
    seal->network_ = *network;
    std::memcpy(&seal->name_, name->bytes.data(), sizeof seal->name_);
    return seal;
}

void Seal::meet(std::vector<SealOffer> offers) {
    peers_.clear();
    peers_.reserve(offers.size());
    for (const SealOffer& offer : offers) peers_.push_back({.offer = offer});
}

// ---- agreeing

Seal::Pair* Seal::pair_with(pm::Node node) noexcept {
    Peer& peer = peers_[node];
    if (peer.pair != nullptr || peer.is_hopeless) return peer.pair.get();
    std::unique_ptr<Pair> pair(new (std::nothrow) Pair);
    if (pair != nullptr && agree(*pair, node)) peer.pair = std::move(pair);
    else peer.is_hopeless = true;
    return peer.pair.get();
}

bool Seal::agree(Pair& pair, pm::Node node) noexcept {
    const SealOffer& theirs = peers_[node].offer;
    const auto shared = own_.agree(theirs.key);
    if (!shared) return false;
    pair.cipher = offer_.prefers_aes != 0 && theirs.prefers_aes != 0 ? Cipher::aes_256_gcm : Cipher::chacha20_poly1305;
    const auto out = secret_of(*shared, self_, node, pair.cipher);
    const auto in = secret_of(*shared, node, self_, pair.cipher);
    if (!out || !in) return false;
    pair.secret_out = *out;
    pair.secret_in = *in;
    return pair.start(rekeying_.on_use != nullptr);
}

std::optional<Secret> Seal::secret_of(const Secret& shared, pm::Node source, pm::Node destination,
                                      Cipher cipher) const noexcept {
    const SealOffer& from = peers_[source].offer;
    const SealOffer& to = peers_[destination].offer;
    struct Secrets {
        Secret shared;
        Secret job;
    } secrets{shared, {}};
    secrets.job.bytes = keys_.secret;
    const std::array salts{from.salt, to.salt};
    const Purpose purpose{.token = keys_.token,
                          .network = network_.bytes,
                          .source_key = from.key,
                          .destination_key = to.key,
                          .source = source,
                          .destination = destination,
                          .cipher = cipher};
    return crypto::derive(Bytes(secrets.shared.bytes.data(), sizeof secrets), std::as_bytes(std::span(salts)),
                          bytes_of(purpose));
}

// ---- packets

std::size_t Seal::close(pm::Node to, Bytes head, Bytes body, std::byte* out, Instant time) noexcept {
    Pair* const pair = pair_with(to);
    if (pair == nullptr) return 0;
    if (pair->packets == 0) pair->since = time;
    const bool is_due = pair->packets >= rekeying_.packets || time - pair->since >= rekeying_.after;
    if (is_due && pair->is_seen && pair->advance_out(rekeying_.on_use != nullptr)) [[unlikely]] {
        ++pair->epoch_out;
        pair->since = time;
    }
    const SealHeader header{.name = name_,
                            .source = self_,
                            .bytes = static_cast<std::uint16_t>(head.size() + body.size() + seal_bytes),
                            .epoch = static_cast<std::uint8_t>(pair->epoch_out),
                            .seen = static_cast<std::uint8_t>(pair->epoch_in),
                            .number = pair->number++};
    ++pair->packets;
    const Nonce nonce = nonce_of(header.number);
    if (rekeying_.on_use) [[unlikely]] rekeying_.on_use(pair->key_out.bytes, nonce);
    std::memcpy(out, &header, sizeof header);
    pair->closing.close(nonce, Bytes(out, sizeof header), head, body, out + sizeof header);
    return header.bytes;
}

Seal::Opened Seal::open(MutableBytes datagram, Bytes& packet) noexcept {
    SealHeader header;
    if (!read_value(datagram, header)) return Opened::truncated;
    if (header.name != name_) return Opened::foreign;
    if (header.bytes < seal_bytes || header.bytes > datagram.size()) return Opened::truncated;
    datagram = datagram.first(header.bytes);
    Pair* const pair = header.source < peers_.size() ? pair_with(header.source) : nullptr;
    if (pair == nullptr) return Opened::forged;
    if (!pair->window.is_new(header.number)) return Opened::replayed;
    Aead* const aead = pair->opening_for(header.epoch);
    const MutableBytes content = datagram.subspan(sizeof header, datagram.size() - seal_bytes);
    if (aead == nullptr || !aead->open(nonce_of(header.number), datagram.first(sizeof header), content))
        return Opened::forged;
    // Not of an older packet, which may report an epoch of 256 epochs ago.
    if (pair->window.is_newest(header.number))
        pair->is_seen = header.seen == static_cast<std::uint8_t>(pair->epoch_out);
    pair->window.note(header.number);
    if (aead == &pair->next) pair->turn_to_next();
    packet = content;
    return Opened::yes;
}

std::size_t Seal::bytes_of_sealed(Bytes bytes) noexcept {
    SealHeader header{};
    read_value(bytes, header);
    return header.bytes;
}

std::uint64_t Seal::keys_used(pm::Node node) const noexcept {
    const Pair* const pair = peers_[node].pair.get();
    return pair == nullptr ? 0 : pair->epoch_out + 1;
}

} // namespace kumi::device::udp
