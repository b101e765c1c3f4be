#include "kumi/device/udp/seal.hpp"

#include "kumi/base/assert.hpp"

#include <cstring>

#if KUMI_HAVE_OPENSSL
#include <openssl/evp.h>
#include <openssl/hmac.h>
#endif

namespace kumi::device::udp {

std::size_t Seal::bytes_of_sealed(Bytes bytes) noexcept {
    SealHeader header{};
    read_value(bytes, header);
    return header.bytes;
}

bool ReplayWindow::is_new(std::uint64_t number) const noexcept {
    if (number >= next_) return true;
    if (next_ - number > width) return false;
    return (bits_[number / 64 % (width / 64)] >> (number % 64) & 1) == 0;
}

void ReplayWindow::note(std::uint64_t number) noexcept {
    if (number >= next_) {
        const std::uint64_t ahead = number - next_;
        if (ahead >= width) std::memset(bits_, 0, sizeof bits_);
        else
            for (std::uint64_t i = next_; i <= number; ++i) bits_[i / 64 % (width / 64)] &= ~(std::uint64_t{1} << (i % 64));
        next_ = number + 1;
    }
    bits_[number / 64 % (width / 64)] |= std::uint64_t{1} << (number % 64);
}

#if KUMI_HAVE_OPENSSL

namespace {

using Key = std::array<unsigned char, 32>;

struct ContextDeleter {
    void operator()(EVP_CIPHER_CTX* context) const noexcept { EVP_CIPHER_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_CIPHER_CTX, ContextDeleter>;

/// HKDF-Expand (RFC 5869) of the secret, one block: the secret is uniformly random already.
Key derive(const base::JobKeys& keys, pm::Node node, std::uint32_t incarnation) {
    unsigned char info[8 + 8 + 8 + 1] = {'k', 'u', 'm', 'i', ' ', 'u', 'd', 'p'};
    std::memcpy(info + 8, &keys.token, 8);
    std::memcpy(info + 16, &node, 4);
    std::memcpy(info + 20, &incarnation, 4);
    info[24] = 1;
    Key key;
    unsigned bytes = key.size();
    const unsigned char* made = HMAC(EVP_sha256(), keys.secret.data(), static_cast<int>(keys.secret.size()), info, sizeof info,
                                     key.data(), &bytes);
    KUMI_ASSERT(made != nullptr && bytes == key.size());
    return key;
}

using Nonce = std::array<unsigned char, 12>;

Nonce nonce_of(pm::Node destination, std::uint64_t number) {
    Nonce nonce;
    std::memcpy(nonce.data(), &destination, 4);
    std::memcpy(nonce.data() + 4, &number, 8);
    return nonce;
}

unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }

} // namespace

struct Seal::State {
    std::uint64_t token;
    pm::Node self;
    Context closing;
    std::vector<std::uint64_t> numbers; // of the next packet, by destination
    std::vector<Context> opening;       // by source
    std::vector<ReplayWindow> windows;
};

Seal::Seal(std::unique_ptr<State> state) : state_(std::move(state)) {}
Seal::~Seal() = default;

Result<std::unique_ptr<Seal>> Seal::make(const base::JobKeys& keys, pm::Node self, std::uint32_t incarnation,
                                         const std::vector<std::uint32_t>& incarnations) {
    auto state = std::make_unique<State>();
    state->token = keys.token;
    state->self = self;
    const auto context_for = [&](pm::Node node, std::uint32_t life, bool closing) {
        Context context(EVP_CIPHER_CTX_new());
        const Key key = derive(keys, node, life);
        if (context && EVP_CipherInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key.data(), nullptr, closing ? 1 : 0) != 1)
            context.reset();
        return context;
    };
    state->closing = context_for(self, incarnation, true);
    bool complete = state->closing != nullptr;
    for (pm::Node node = 0; node < incarnations.size(); ++node) {
        state->opening.push_back(context_for(node, incarnations[node], false));
        complete = complete && state->opening.back() != nullptr;
    }
    if (!complete) return error("udp: OpenSSL has no AES-256-GCM here; encrypt = false does without");
    state->numbers.resize(incarnations.size());
    state->windows.resize(incarnations.size());
    return std::unique_ptr<Seal>(new Seal(std::move(state)));
}

std::size_t Seal::close(pm::Node to, Bytes head, Bytes body, std::byte* out) noexcept {
    const auto all = static_cast<std::uint32_t>(head.size() + body.size() + seal_bytes);
    const SealHeader header{state_->token, state_->self, all, state_->numbers[to]++};
    const Nonce nonce = nonce_of(to, header.number);
    EVP_CIPHER_CTX* context = state_->closing.get();
    std::memcpy(out, &header, sizeof header);
    int bytes = 0;
    std::byte* at = out + sizeof header;
    bool done = EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, nonce.data()) == 1 &&
                EVP_EncryptUpdate(context, nullptr, &bytes, raw(out), sizeof header) == 1 &&
                EVP_EncryptUpdate(context, raw(at), &bytes, raw(head.data()), static_cast<int>(head.size())) == 1;
    at += head.size();
    if (!body.empty()) done = done && EVP_EncryptUpdate(context, raw(at), &bytes, raw(body.data()), static_cast<int>(body.size())) == 1;
    at += body.size();
    done = done && EVP_EncryptFinal_ex(context, raw(at), &bytes) == 1 &&
           EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, seal_tag_bytes, at) == 1;
    KUMI_ASSERT(done);
    return static_cast<std::size_t>(at + seal_tag_bytes - out);
}

Seal::Opened Seal::open(MutableBytes datagram, Bytes& packet) noexcept {
    SealHeader header;
    if (!read_value(datagram, header)) return Opened::truncated;
    if (header.token != state_->token) return Opened::foreign;
    if (header.bytes < seal_bytes || header.bytes > datagram.size()) return Opened::truncated;
    datagram = datagram.first(header.bytes);
    if (header.source >= state_->opening.size()) return Opened::forged;
    if (!state_->windows[header.source].is_new(header.number)) return Opened::replayed;
    const Nonce nonce = nonce_of(state_->self, header.number);
    EVP_CIPHER_CTX* context = state_->opening[header.source].get();
    std::byte* const content = datagram.data() + sizeof header;
    const std::size_t content_bytes = datagram.size() - seal_bytes;
    int bytes = 0;
    const bool genuine =
        EVP_DecryptInit_ex(context, nullptr, nullptr, nullptr, nonce.data()) == 1 &&
        EVP_DecryptUpdate(context, nullptr, &bytes, raw(datagram.data()), sizeof header) == 1 &&
        EVP_DecryptUpdate(context, raw(content), &bytes, raw(content), static_cast<int>(content_bytes)) == 1 &&
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, seal_tag_bytes, content + content_bytes) == 1 &&
        EVP_DecryptFinal_ex(context, raw(content + content_bytes), &bytes) == 1;
    if (!genuine) return Opened::forged;
    state_->windows[header.source].note(header.number);
    packet = Bytes(content, content_bytes);
    return Opened::yes;
}

#else

struct Seal::State {};
Seal::Seal(std::unique_ptr<State> state) : state_(std::move(state)) {}
Seal::~Seal() = default;

Result<std::unique_ptr<Seal>> Seal::make(const base::JobKeys&, pm::Node, std::uint32_t, const std::vector<std::uint32_t>&) {
    return error("udp: this Kumi was built without OpenSSL and cannot encrypt; install libssl-dev and build again");
}
std::size_t Seal::close(pm::Node, Bytes, Bytes, std::byte*) noexcept { return 0; }
Seal::Opened Seal::open(MutableBytes, Bytes&) noexcept { return Opened::forged; }

#endif

} // namespace kumi::device::udp
