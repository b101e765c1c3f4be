#pragma once

// What Kumi uses of OpenSSL; crypto.cpp is the only source that knows it. A build without OpenSSL has is_available()
// false, and everything else here fails.

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

/// 32 bytes that are erased when they are not needed any more.
struct Secret {
    std::array<std::byte, 32> bytes{};

    Secret() = default;
    Secret(const Secret&) = default;
    Secret& operator=(const Secret&) = default;
    ~Secret();
};

enum class Cipher : std::uint32_t { aes_256_gcm = 1, chacha20_poly1305 = 2 };

bool is_available() noexcept;
/// The processor has instructions for AES. Without them ChaCha20 is faster, and takes the same time whatever the key
/// is.
bool has_fast_aes() noexcept;

/// A key for X25519 that lives as long as this object.
class PrivateKey {
public:
    static Result<PrivateKey> make();
    PrivateKey(PrivateKey&&) noexcept;
    PrivateKey& operator=(PrivateKey&&) noexcept;
    ~PrivateKey();

    const PublicKey& public_key() const noexcept { return public_key_; }
    /// What only this key's owner and that one's can compute; nothing if `theirs` is no sound public key.
    std::optional<Secret> agree(const PublicKey& theirs) const noexcept;

private:
    struct State;
    explicit PrivateKey(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
    PublicKey public_key_{};
};

/// HKDF with SHA-256 (RFC 5869): a secret for the purpose that `info` names, which tells nothing about others.
std::optional<Secret> derive(Bytes secret, Bytes salt, Bytes info) noexcept;

/// One key, for packets in one direction.
class Aead {
public:
    enum class Use : std::uint8_t { closes, opens };

    Aead() noexcept;
    Aead(Aead&&) noexcept;
    Aead& operator=(Aead&&) noexcept;
    ~Aead();

    /// False: out of memory, or OpenSSL was built or is set up without that cipher.
    bool set(Cipher cipher, const Secret& key, Use use) noexcept;
    explicit operator bool() const noexcept { return state_ != nullptr; }

    /// Encrypts head and body to `out`, one behind the other, and a tag behind them; vouches for `clear`, too.
    void close(const Nonce& nonce, Bytes clear, Bytes head, Bytes body, std::byte* out) noexcept;
    /// Decrypts `content`, which a tag follows, in place. False: somebody else made it.
    bool open(const Nonce& nonce, Bytes clear, MutableBytes content) noexcept;

private:
    struct State;
    struct StateDeleter {
        void operator()(State* state) const noexcept;
    };
    std::unique_ptr<State, StateDeleter> state_;
};

} // namespace kumi::device::udp::crypto
