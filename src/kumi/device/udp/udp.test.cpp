#include "kumi/device/udp/udp.hpp"

#include <cstdlib>
#include <gtest/gtest.h>

namespace kumi::device::udp {
namespace {

using namespace std::chrono_literals;

constexpr const char* names[] = {"KUMI_UDP_ADDRESS", "KUMI_UDP_PORT", "KUMI_UDP_ENCRYPT", "KUMI_UDP_CHECK",
                                 "KUMI_UDP_BUFFER",  "KUMI_SILENCE",  "KUMI_FAULT"};

/// Nothing is set when a test starts, nor when it ends.
class UdpEnvironment : public testing::Test {
protected:
    UdpEnvironment() { clear(); }
    ~UdpEnvironment() override { clear(); }
    static void clear() {
        for (const char* name : names) ::unsetenv(name);
    }
    static std::string refusal(const char* name, const char* value) {
        ::setenv(name, value, 1);
        const auto options = options_from_environment();
        ::unsetenv(name);
        EXPECT_FALSE(options) << name << "=" << value;
        return options ? "" : options.error().text();
    }
};

TEST_F(UdpEnvironment, an_empty_one_leaves_what_is_usual) {
    const auto options = options_from_environment();
    ASSERT_TRUE(options) << options.error().text();
    EXPECT_EQ(options->address, "127.0.0.1");
    EXPECT_EQ(options->port, 0);
    EXPECT_FALSE(options->encrypt);
    EXPECT_FALSE(options->checks_all);
    EXPECT_EQ(options->buffer_bytes, Options{}.buffer_bytes);
    EXPECT_EQ(options->silence_max, 60s);
    EXPECT_FALSE(options->faults.any());
}

TEST_F(UdpEnvironment, every_word_counts) {
    const char* const values[] = {"::1", "65535", "yes", "yes", "2M", "0", "udp.loss=0.5,udp.seed=9"};
    for (std::size_t i = 0; i < std::size(names); ++i) ::setenv(names[i], values[i], 1);
    const auto options = options_from_environment();
    ASSERT_TRUE(options) << options.error().text();
    EXPECT_EQ(options->address, "::1");
    EXPECT_EQ(options->port, 65'535);
    EXPECT_TRUE(options->encrypt);
    EXPECT_TRUE(options->checks_all);
    EXPECT_EQ(options->buffer_bytes, std::size_t{2} << 20);
    EXPECT_EQ(options->silence_max, 0s);
    EXPECT_EQ(options->faults.loss, 0.5);
    EXPECT_EQ(options->faults.seed, 9u);
}

TEST_F(UdpEnvironment, what_makes_no_sense_is_named_with_what_to_write) {
    for (const char* port : {"", "-1", "65536", "80x", "http", "99999999999999999999"})
        EXPECT_EQ(refusal("KUMI_UDP_PORT", port),
                  std::string("KUMI_UDP_PORT=") + port + ": write a whole number from 0 to 65535");
    for (const char* choice : {"", "1", "true", "Yes"})
        for (const char* name : {"KUMI_UDP_ENCRYPT", "KUMI_UDP_CHECK"})
            EXPECT_EQ(refusal(name, choice), std::string(name) + "=" + choice + ": write yes or no");
    for (const char* seconds : {"", "-1", "1.5", "1000001", "60s"})
        EXPECT_EQ(refusal("KUMI_SILENCE", seconds),
                  std::string("KUMI_SILENCE=") + seconds + ": write a whole number from 0 to 1000000");
    for (const char* size : {"", "much", "-1"})
        EXPECT_EQ(refusal("KUMI_UDP_BUFFER", size).find(std::string("KUMI_UDP_BUFFER=") + size + ": "), 0u);
    EXPECT_EQ(refusal("KUMI_FAULT", "udp.lost=1").find("KUMI_FAULT: udp.lost=1: write "), 0u);
}

TEST_F(UdpEnvironment, the_largest_numbers_are_taken) {
    ::setenv("KUMI_SILENCE", "1000000", 1);
    ::setenv("KUMI_UDP_PORT", "0", 1);
    const auto options = options_from_environment();
    ASSERT_TRUE(options) << options.error().text();
    EXPECT_EQ(options->silence_max, 1'000'000s);
    EXPECT_EQ(options->port, 0);
}

} // namespace
} // namespace kumi::device::udp
