#include "kumi/base/bytes.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace kumi {
namespace {

std::vector<std::byte> counting(std::size_t count) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i + 1);
    return bytes;
}

/// What lies between two guards after `copy` wrote `count` bytes there; empty if it wrote beside them.
template <class Copy>
std::vector<std::byte> copied(std::size_t count, Copy&& copy) {
    constexpr std::size_t guard = 16;
    std::vector<std::byte> room(count + 2 * guard, std::byte{0xee});
    copy(room.data() + guard);
    for (std::size_t i = 0; i < guard; ++i)
        if (room[i] != std::byte{0xee} || room[guard + count + i] != std::byte{0xee}) return {};
    return {room.begin() + guard, room.begin() + static_cast<std::ptrdiff_t>(guard + count)};
}

TEST(CopyBytes, copies_every_byte_and_none_beside_them) {
    for (std::size_t count = 0; count <= 40; ++count) {
        const auto from = counting(count);
        EXPECT_EQ(copied(count, [&](std::byte* to) { copy_bytes(to, from); }), from) << count;
    }
}

TEST(Pieces, every_part_of_two_pieces_is_what_it_would_be_of_the_whole) {
    const auto whole = counting(40);
    for (const std::size_t cut : {0u, 1u, 7u, 8u, 39u, 40u}) {
        const Pieces pieces(Bytes(whole).first(cut), Bytes(whole).subspan(cut));
        EXPECT_EQ(pieces.size(), whole.size());
        EXPECT_EQ(copied(40, [&](std::byte* to) { pieces.copy_to(to); }), whole) << "cut at " << cut;
        for (std::size_t offset = 0; offset <= 40; ++offset)
            for (std::size_t count = 0; offset + count <= 40; ++count) {
                const Bytes part = Bytes(whole).subspan(offset, count);
                ASSERT_EQ(copied(count, [&](std::byte* to) { pieces.copy_part(to, offset, count); }),
                          std::vector<std::byte>(part.begin(), part.end()))
                    << "cut at " << cut << ", " << count << " from " << offset;
            }
    }
}

TEST(ReadValue, needs_every_byte_of_the_value) {
    const auto bytes = counting(8);
    std::uint64_t value = 0;
    EXPECT_FALSE(read_value(Bytes(bytes).first(7), value));
    EXPECT_EQ(value, 0u);
    EXPECT_TRUE(read_value(bytes, value));
    EXPECT_EQ(std::memcmp(&value, bytes.data(), 8), 0);
}

} // namespace
} // namespace kumi
