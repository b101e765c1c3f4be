#include "kumi/device/udp/seal/crypto.hpp"

#include "skips.hpp"

#include <gtest/gtest.h>
#include <string>

namespace kumi::device::udp::crypto {
namespace {

std::vector<std::byte> bytes_from(std::string_view hex) {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        bytes.push_back(static_cast<std::byte>(std::stoul(std::string(hex.substr(i, 2)), nullptr, 16)));
    return bytes;
}

class CryptoTest : public testing::Test {
protected:
    void SetUp() override {
        if (!is_available()) KUMI_SKIP(skips::built_without("OpenSSL"));
    }
};

TEST_F(CryptoTest, derives_what_rfc_5869_says) {
    const auto ikm = bytes_from("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b");
    const auto derived = [&](std::string_view salt, std::string_view info) {
        const auto made = derive(ikm, bytes_from(salt), bytes_from(info));
        EXPECT_TRUE(made);
        return made ? std::vector<std::byte>(made->bytes.begin(), made->bytes.end()) : std::vector<std::byte>{};
    };
    EXPECT_EQ(derived("000102030405060708090a0b0c", "f0f1f2f3f4f5f6f7f8f9"),
              bytes_from("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"));
    EXPECT_EQ(derived("", ""), bytes_from("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"));
}

TEST_F(CryptoTest, two_agree_and_a_third_does_not) {
    const auto one = PrivateKey::make(), two = PrivateKey::make(), three = PrivateKey::make();
    ASSERT_TRUE(one && two && three);
    const auto at_one = one->agree(two->public_key()), at_two = two->agree(one->public_key());
    const auto at_three = three->agree(two->public_key());
    ASSERT_TRUE(at_one && at_two && at_three);
    EXPECT_EQ(at_one->bytes, at_two->bytes);
    EXPECT_NE(at_one->bytes, at_three->bytes);
}

TEST_F(CryptoTest, a_point_of_small_order_is_refused) {
    const auto own = PrivateKey::make();
    ASSERT_TRUE(own);
    PublicKey point{};
    EXPECT_FALSE(own->agree(point)) << "0";
    point[0] = std::byte{1};
    EXPECT_FALSE(own->agree(point)) << "1";
}

TEST_F(CryptoTest, what_is_clear_is_vouched_for_and_what_is_not_cannot_be_read) {
    for (const Cipher cipher : {Cipher::aes_256_gcm, Cipher::chacha20_poly1305}) {
        Secret key;
        key.bytes[0] = std::byte{7};
        Aead closing, opening;
        ASSERT_TRUE(closing.set(cipher, key, Aead::Use::closes) && opening.set(cipher, key, Aead::Use::opens));
        const std::string clear = "header", head = "a mess", body = "age";
        std::vector<std::byte> out(9 + tag_bytes);
        closing.close({}, bytes_of(std::string_view(clear)), bytes_of(std::string_view(head)),
                      bytes_of(std::string_view(body)), out.data());
        const auto opened = [&](std::string_view said, const Nonce& nonce) {
            std::vector<std::byte> copy = out;
            if (!opening.open(nonce, bytes_of(said), MutableBytes(copy).first(9))) return std::string();
            return std::string(reinterpret_cast<const char*>(copy.data()), 9);
        };
        EXPECT_EQ(opened("header", {}), "a message");
        EXPECT_EQ(opened("Header", {}), "");
        Nonce other{};
        other[11] = std::byte{1};
        EXPECT_EQ(opened("header", other), "");
        EXPECT_EQ(opened("header", {}), "a message") << "a failure leaves nothing behind";
        EXPECT_NE(std::string(reinterpret_cast<const char*>(out.data()), 9), "a message");
    }
}

} // namespace
} // namespace kumi::device::udp::crypto
