#include "kumi/device/udp/seal/crypto.hpp"

#include "kumi/base/assert.hpp"
#include "kumi/base/system/keys.hpp"

#if KUMI_HAVE_OPENSSL
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#endif
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace kumi::device::udp::crypto {

bool has_fast_aes() noexcept {
#if defined(__aarch64__)
    return (::getauxval(AT_HWCAP) & HWCAP_AES) != 0 && (::getauxval(AT_HWCAP) & HWCAP_PMULL) != 0;
#elif defined(__x86_64__)
    return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#else
    return false;
#endif
}

#if KUMI_HAVE_OPENSSL

namespace {

unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }
int length(Bytes bytes) { return static_cast<int>(bytes.size()); }

struct Deleter {
    void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
    void operator()(EVP_PKEY_CTX* context) const noexcept { EVP_PKEY_CTX_free(context); }
};
using KeyHolder = std::unique_ptr<EVP_PKEY, Deleter>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Deleter>;

} // namespace

bool is_available() noexcept { return true; }

Secret::~Secret() { OPENSSL_cleanse(bytes.data(), bytes.size()); }

// ---- agreeing on a secret

struct PrivateKey::State {
    KeyHolder key;
};

PrivateKey::PrivateKey(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<PrivateKey> PrivateKey::make() {
    Secret random;
    if (auto filled = base::fill_with_random(random.bytes, "making a key for a network"); !filled)
        return filled.error();
    auto state = std::make_unique<State>();
    state->key.reset(
        EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, raw(random.bytes.data()), random.bytes.size()));
    PrivateKey made(std::move(state));
    std::size_t bytes = made.public_key_.size();
    if (!made.state_->key ||
        EVP_PKEY_get_raw_public_key(made.state_->key.get(), raw(made.public_key_.data()), &bytes) != 1 ||
        bytes != made.public_key_.size())
        return error("OpenSSL has no X25519 here; encrypt = false turns encryption off");
    return made;
}

std::optional<Secret> PrivateKey::agree(const PublicKey& theirs) const noexcept {
    const KeyHolder other(EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, raw(theirs.data()), theirs.size()));
    const KeyContext context(EVP_PKEY_CTX_new(state_->key.get(), nullptr));
    Secret shared;
    std::size_t bytes = shared.bytes.size();
    const bool is_made = other && context && EVP_PKEY_derive_init(context.get()) == 1 &&
                         EVP_PKEY_derive_set_peer(context.get(), other.get()) == 1 &&
                         EVP_PKEY_derive(context.get(), raw(shared.bytes.data()), &bytes) == 1 &&
                         bytes == shared.bytes.size();
    // also fails if `theirs` is one of the few points that give the same secret with every key
    if (!is_made) return std::nullopt;
    return shared;
}

std::optional<Secret> derive(Bytes secret, Bytes salt, Bytes info) noexcept {
    const KeyContext context(EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nullptr));
    Secret made;
    std::size_t bytes = made.bytes.size();
    const bool is_made =
        context && EVP_PKEY_derive_init(context.get()) == 1 &&
        EVP_PKEY_CTX_set_hkdf_md(context.get(), EVP_sha256()) == 1 &&
        (salt.empty() || EVP_PKEY_CTX_set1_hkdf_salt(context.get(), raw(salt.data()), length(salt)) == 1) &&
        EVP_PKEY_CTX_set1_hkdf_key(context.get(), raw(secret.data()), length(secret)) == 1 &&
        EVP_PKEY_CTX_add1_hkdf_info(context.get(), raw(info.data()), length(info)) == 1 &&
        EVP_PKEY_derive(context.get(), raw(made.bytes.data()), &bytes) == 1 && bytes == made.bytes.size();
    if (!is_made) return std::nullopt;
    return made;
}

// ---- packets

/// OpenSSL's state of a key.
struct Aead::State {
    static EVP_CIPHER_CTX* of(State* state) noexcept { return reinterpret_cast<EVP_CIPHER_CTX*>(state); }
};
void Aead::StateDeleter::operator()(State* state) const noexcept { EVP_CIPHER_CTX_free(State::of(state)); }

bool Aead::set(Cipher cipher, const Secret& key, Use use) noexcept {
    state_.reset(reinterpret_cast<State*>(EVP_CIPHER_CTX_new()));
    const EVP_CIPHER* const kind = cipher == Cipher::aes_256_gcm ? EVP_aes_256_gcm() : EVP_chacha20_poly1305();
    const bool is_set = state_ && EVP_CipherInit_ex(State::of(state_.get()), kind, nullptr, raw(key.bytes.data()),
                                                    nullptr, use == Use::closes ? 1 : 0) == 1;
    if (!is_set) state_.reset();
    return is_set;
}

void Aead::close(const Nonce& nonce, Bytes clear, Bytes head, Bytes body, std::byte* out) noexcept {
    EVP_CIPHER_CTX* const context = State::of(state_.get());
    int bytes = 0;
    bool is_done = EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, raw(nonce.data())) == 1 &&
                   EVP_EncryptUpdate(context, nullptr, &bytes, raw(clear.data()), length(clear)) == 1;
    for (const Bytes piece : {head, body}) {
        if (piece.empty()) continue;
        is_done = is_done && EVP_EncryptUpdate(context, raw(out), &bytes, raw(piece.data()), length(piece)) == 1;
        out += piece.size();
    }
    is_done = is_done && EVP_EncryptFinal_ex(context, raw(out), &bytes) == 1 &&
              EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, tag_bytes, out) == 1;
    KUMI_ASSERT(is_done);
}

bool Aead::open(const Nonce& nonce, Bytes clear, MutableBytes content) noexcept {
    EVP_CIPHER_CTX* const context = State::of(state_.get());
    std::byte* const tag = content.data() + content.size();
    int bytes = 0;
    return EVP_DecryptInit_ex(context, nullptr, nullptr, nullptr, raw(nonce.data())) == 1 &&
           EVP_DecryptUpdate(context, nullptr, &bytes, raw(clear.data()), length(clear)) == 1 &&
           (content.empty() ||
            EVP_DecryptUpdate(context, raw(content.data()), &bytes, raw(content.data()), length(content)) == 1) &&
           EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, tag_bytes, tag) == 1 &&
           EVP_DecryptFinal_ex(context, raw(tag), &bytes) == 1;
}

#else

bool is_available() noexcept { return false; }
Secret::~Secret() = default;

struct PrivateKey::State {};
PrivateKey::PrivateKey(std::unique_ptr<State> state) : state_(std::move(state)) {}
Result<PrivateKey> PrivateKey::make() {
    return error("this Kumi was built without OpenSSL and cannot encrypt; install libssl-dev and build again");
}
std::optional<Secret> PrivateKey::agree(const PublicKey&) const noexcept { return std::nullopt; }
std::optional<Secret> derive(Bytes, Bytes, Bytes) noexcept { return std::nullopt; }

struct Aead::State {};
void Aead::StateDeleter::operator()(State*) const noexcept {}
bool Aead::set(Cipher, const Secret&, Use) noexcept { return false; }
void Aead::close(const Nonce&, Bytes, Bytes, Bytes, std::byte*) noexcept { KUMI_ASSERT(false); }
bool Aead::open(const Nonce&, Bytes, MutableBytes) noexcept { return false; }

#endif

PrivateKey::PrivateKey(PrivateKey&&) noexcept = default;
PrivateKey& PrivateKey::operator=(PrivateKey&&) noexcept = default;
PrivateKey::~PrivateKey() = default;
Aead::Aead() noexcept = default;
Aead::Aead(Aead&&) noexcept = default;
Aead& Aead::operator=(Aead&&) noexcept = default;
Aead::~Aead() = default;

} // namespace kumi::device::udp::crypto
