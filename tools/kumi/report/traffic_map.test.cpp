#include "report/traffic_map.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <string_view>

namespace kumi::tools {
namespace {

using Sent = std::vector<std::vector<boot::TrafficEntry>>;

boot::TrafficEntry sent(std::uint32_t to, std::string_view device, std::uint64_t messages, std::uint64_t bytes) {
    boot::TrafficEntry made{};
    made.to = to;
    boot::put_text(made.device, device);
    made.messages = messages;
    made.bytes = bytes;
    return made;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(TrafficMap, rows_send_and_columns_receive) {
    const Sent traffic{
        {sent(1, "shmem", 5, 100'000), sent(2, "udp", 1200, 1)}, {}, {sent(0, "udp", 999, 0), sent(1, "udp", 0, 0)}};
    EXPECT_EQ(draw_traffic(traffic), "who talks to whom: messages sent, darker for more bytes\n"
                                     "  from \\ to        0        1        2\n"
                                     "          0        .    ██ S5 ░░ U1.2k\n"
                                     "          1        .        .        .\n"
                                     "          2  ░░ U999        .        .\n"
                                     "  S = shmem: 5 messages, 97.7 KiB\n"
                                     "  U = udp: 2199 messages, 1 B\n");
}

TEST(TrafficMap, a_job_that_sent_nothing_says_so) {
    EXPECT_EQ(draw_traffic(Sent{{}, {sent(0, "udp", 0, 0)}}),
              "who talks to whom: messages sent, darker for more bytes\n"
              "  from \\ to        0        1\n"
              "          0        .        .\n"
              "          1        .        .\n"
              "  nobody sent anything\n");
}

TEST(TrafficMap, counts_have_three_digits_at_most) {
    for (const auto& [count, text] : {std::pair{std::uint64_t{999}, "S999"},
                                      {1000, "S1.0k"},
                                      {9949, "S9.9k"},
                                      {9950, "S10k"},
                                      {999'499, "S999k"},
                                      {999'500, "S1.0M"},
                                      {12'000'000'000, "S12G"},
                                      {7'000'000'000'000, "S7.0T"}})
        EXPECT_TRUE(has(draw_traffic(Sent{{sent(0, "shmem", count, 1)}}), std::string(" ") + text + "\n")) << count;
}

TEST(TrafficMap, devices_with_the_same_letter_get_different_ones) {
    const std::string text =
        draw_traffic(Sent{{sent(0, "mint", 1, 1), sent(1, "myrinet", 2, 1), sent(2, "2nd", 3, 1)}, {}, {}});
    EXPECT_TRUE(has(text, "  M = mint: ")) << text;
    EXPECT_FALSE(has(text, "  M = myrinet: ")) << text;
    EXPECT_TRUE(has(text, " = myrinet: 2 messages")) << text;
    EXPECT_TRUE(has(text, "  A = 2nd: ")) << text;
}

TEST(TrafficMap, up_to_16_nodes_have_a_matrix_and_more_a_list_of_the_busiest_pairs) {
    Sent traffic(16);
    traffic[15].push_back(sent(3, "udp", 7, 2048));
    EXPECT_TRUE(has(draw_traffic(traffic), "from \\ to")) << draw_traffic(traffic);
    traffic.resize(17);
    traffic[16].push_back(sent(0, "shmem", 1, 4096));
    traffic[2].push_back(sent(5, "shmem", 0, 0));
    EXPECT_EQ(draw_traffic(traffic), "who talks to whom: messages sent, darker for more bytes\n"
                                     "     16 -> 0     S      1 messages, 4 KiB\n"
                                     "     15 -> 3     U      7 messages, 2 KiB\n"
                                     "  S = shmem: 1 messages, 4 KiB\n"
                                     "  U = udp: 7 messages, 2 KiB\n");
}

TEST(TrafficMap, of_many_pairs_20_are_listed_and_the_others_counted) {
    Sent traffic(21);
    for (std::uint32_t node = 0; node < 20; ++node) traffic[node].push_back(sent(20, "udp", 1, 1));
    const auto pairs_in = [](const std::string& text) {
        std::size_t found = 0;
        for (std::size_t at = 0; (at = text.find(" -> ", at)) != std::string::npos; ++at) ++found;
        return found;
    };
    EXPECT_EQ(pairs_in(draw_traffic(traffic)), 20u);
    EXPECT_FALSE(has(draw_traffic(traffic), "quieter"));
    traffic[20].push_back(sent(0, "udp", 1, 1));
    EXPECT_EQ(pairs_in(draw_traffic(traffic)), 20u);
    EXPECT_TRUE(has(draw_traffic(traffic), "  and 1 quieter pairs\n"));
}

} // namespace
} // namespace kumi::tools
