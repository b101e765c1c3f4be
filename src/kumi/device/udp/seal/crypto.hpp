#pragma once

// What Kumi uses of OpenSSL. Only crypto.cpp includes it. In a build without OpenSSL is_available() is false, and
// everything else here fails.

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

namespace kumi::device::udp::crypto {

using Nonce = std::array<std::byte, 12>;
using PublicKey = std::array<std::byte, 32>;
inline constexpr std::size_t tag_bytes = 16;

/// 32 bytes that are erased when the object is destroyed.
struct Secret {
    std::array<std::byte, 32> bytes{};

    Secret() = default;
    Secret(const Secret&) = default;
    Secret& operator=(const Secret&) = default;
    ~Secret();
};

enum class Cipher : std::uint32_t { aes_256_gcm = 1, chacha20_poly1305 = 2 };

bool is_available() noexcept;
/// True if the processor has instructions for AES. Without them ChaCha20 is faster, and its time does not depend on the
/// key.
bool has_fast_aes() noexcept;

/// A private key for X25519, which exists as long as this object.
class PrivateKey {
public:
    static Result<PrivateKey> make();
    PrivateKey(PrivateKey&&) noexcept;
    PrivateKey& operator=(PrivateKey&&) noexcept;
    ~PrivateKey();

    const PublicKey& public_key() const noexcept { return public_key_; }
    /// The secret that only the owners of this key and of `theirs` can compute. Nothing if `theirs` is not a valid
    /// public key.
    std::optional<Secret> agree(const PublicKey& theirs) const noexcept;

private:
    struct State;
    explicit PrivateKey(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
    PublicKey public_key_{};
};

/// HKDF with SHA-256 (RFC 5869): a secret for the purpose that `info` names, which reveals nothing about others.
std::optional<Secret> derive(Bytes secret, Bytes salt, Bytes info) noexcept;

/// Authenticated encryption with one key, for packets in one direction.
class Aead {
public:
    enum class Use : std::uint8_t { closes, opens };

    Aead() noexcept;
    Aead(Aead&&) noexcept;
    Aead& operator=(Aead&&) noexcept;
    ~Aead();

    /// False: out of memory, or this OpenSSL does not have that cipher.
    bool set(Cipher cipher, const Secret& key, Use use) noexcept;
    explicit operator bool() const noexcept { return state_ != nullptr; }

    /// Encrypts head and body to `out`, one after the other, followed by a tag that authenticates them and `clear`.
    void close(const Nonce& nonce, Bytes clear, Bytes head, Bytes body, std::byte* out) noexcept;
    /// Decrypts `content`, which is followed by its tag, in place. False: it is not authentic.
    bool open(const Nonce& nonce, Bytes clear, MutableBytes content) noexcept;

private:
    struct State;
    struct StateDeleter {
        void operator()(State* state) const noexcept;
    };
    std::unique_ptr<State, StateDeleter> state_;
};

} // namespace kumi::device::udp::crypto
