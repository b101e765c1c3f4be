#include "kumi/launch/host/pmi/packed_text.hpp"

#include <gtest/gtest.h>
#include <string>

namespace kumi::launch::host {
namespace {

std::string packed(const std::string& text) {
    const auto length = static_cast<std::uint32_t>(text.size() + 1);
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(length >> shift & 255);
    return bytes + text + '\0';
}

TEST(PackedText, is_the_longest_of_several_without_its_length) {
    const std::string long_text(97, '-'); // whose length is a letter
    EXPECT_EQ(longest_text(packed("short") + packed(long_text) + packed("other")), long_text);
    EXPECT_EQ(longest_text(std::string("\1\0\7", 3) + packed("Z\303\274rich\n")), "Z\303\274rich\n");
    EXPECT_EQ(longest_text(packed("the end")), "the end");
}

TEST(PackedText, of_anything_else_is_empty) {
    EXPECT_EQ(longest_text(""), "");
    EXPECT_EQ(longest_text("abc"), "");
    EXPECT_EQ(longest_text("just a text without a length, and without an end"), "");
    EXPECT_EQ(longest_text(packed("cut short").substr(0, 10)), "");
    EXPECT_EQ(longest_text(std::string(100, '\0')), "");
}

} // namespace
} // namespace kumi::launch::host
