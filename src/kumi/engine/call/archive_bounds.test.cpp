// Lengths inside of messages: exactly what is there is read, and one more is refused.

#include "kumi/engine/call/archive.hpp"
#include "kumi/engine/call/parameters.hpp"

#include <array>
#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <list>
#include <string>
#include <vector>

namespace kumi::engine::bounds_test {
namespace {

struct Pair {
    std::uint64_t first = 0, second = 0;
};

/// A container's length, and then so many bytes.
std::vector<std::byte> with_length(std::uint64_t length, std::size_t bytes) {
    std::vector<std::byte> all(sizeof length + bytes, std::byte{1});
    std::memcpy(all.data(), &length, sizeof length);
    return all;
}

template <class T>
bool is_read(const std::vector<std::byte>& bytes) {
    // An allocation of its own: a sanitizer sees what reads past its end.
    const std::vector<std::byte> exactly(bytes.begin(), bytes.end());
    try {
        T value{};
        read_archive(exactly, value);
        return true;
    } catch (const BadBytes&) {
        return false;
    }
}

/// Elements of that size: three of them are there.
template <class T>
void expect_exact(std::size_t element) {
    EXPECT_TRUE((is_read<T>(with_length(3, 3 * element))));
    EXPECT_FALSE((is_read<T>(with_length(4, 3 * element)))) << "one more";
    EXPECT_FALSE((is_read<T>(with_length(2, 3 * element)))) << "one less: there are more bytes than values";
    EXPECT_FALSE((is_read<T>(with_length(3, 3 * element - 1)))) << "a byte is missing";
    EXPECT_FALSE((is_read<T>(with_length(3, 3 * element + 1)))) << "a byte too many";
    for (const std::uint64_t length :
         {std::uint64_t{1} << 32, std::uint64_t{1} << 61, (std::uint64_t{1} << 61) + 3, ~std::uint64_t{0}})
        EXPECT_FALSE((is_read<T>(with_length(length, 3 * element)))) << length << ": times the size it may wrap";
    EXPECT_TRUE((is_read<T>(with_length(0, 0))));
    EXPECT_FALSE((is_read<T>(std::vector<std::byte>(7)))) << "not even a length";
}

TEST(ArchiveBounds, a_container_is_as_long_as_its_bytes) {
    expect_exact<std::string>(1);
    expect_exact<std::u32string>(4);
    expect_exact<std::vector<std::uint8_t>>(1);
    expect_exact<std::vector<double>>(8);
    expect_exact<std::vector<Pair>>(16);
    expect_exact<std::vector<bool>>(1);
    expect_exact<std::list<std::uint32_t>>(4);
    expect_exact<std::deque<Pair>>(16);
}

TEST(ArchiveBounds, values_end_where_the_bytes_do) {
    EXPECT_TRUE((is_read<Pair>(std::vector<std::byte>(16))));
    EXPECT_FALSE((is_read<Pair>(std::vector<std::byte>(15))));
    EXPECT_FALSE((is_read<Pair>(std::vector<std::byte>(17))));
    EXPECT_TRUE((is_read<std::array<double, 3>>(std::vector<std::byte>(24))));
    EXPECT_FALSE((is_read<std::array<double, 3>>(std::vector<std::byte>(23))));
    EXPECT_TRUE((is_read<bool>(std::vector<std::byte>(1, std::byte{1}))));
    EXPECT_FALSE((is_read<bool>(std::vector<std::byte>(1, std::byte{2}))));
}

template <class... Types>
bool is_unpacked(std::size_t bytes) {
    const std::vector<std::byte> exactly(bytes);
    bool was_called = false;
    const bool answer = Unpack<Types...>::apply(exactly, [&](const Types&...) { was_called = true; });
    EXPECT_EQ(answer, was_called);
    return answer;
}

TEST(ParameterBounds, arguments_of_a_handler_are_as_long_as_they_were_packed) {
    EXPECT_EQ((packed_bytes<std::uint64_t, char>), 16u);
    EXPECT_TRUE((is_unpacked<std::uint64_t, char>(16)));
    EXPECT_FALSE((is_unpacked<std::uint64_t, char>(15)));
    EXPECT_FALSE((is_unpacked<std::uint64_t, char>(17)));
    EXPECT_FALSE((is_unpacked<std::uint64_t, char>(9))) << "they are filled up";
    EXPECT_TRUE((is_unpacked<>(0)));
    EXPECT_FALSE((is_unpacked<>(1)));
}

TEST(ParameterBounds, a_payload_has_any_length_behind_the_arguments) {
    EXPECT_FALSE((is_unpacked<std::uint32_t, Bytes>(7)));
    EXPECT_TRUE((is_unpacked<std::uint32_t, Bytes>(8)));
    EXPECT_TRUE((is_unpacked<std::uint32_t, Bytes>(9)));
    EXPECT_TRUE((is_unpacked<Bytes>(0)));
    const std::vector<std::byte> bytes(11, std::byte{5});
    EXPECT_TRUE((Unpack<std::uint32_t, Bytes>::apply(bytes, [&](std::uint32_t number, Bytes payload) {
        EXPECT_EQ(number, 0x05050505u);
        EXPECT_EQ(payload.data(), bytes.data() + 8);
        EXPECT_EQ(payload.size(), 3u);
    })));
}

} // namespace
} // namespace kumi::engine::bounds_test
