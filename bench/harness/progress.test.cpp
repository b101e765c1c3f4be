#include "harness/progress.hpp"

#include "kumi/base/system/descriptor.hpp"

#include <algorithm>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace kumi::bench {
namespace {

using std::chrono::seconds;

constexpr Instant start{seconds(1000)};

TEST(Progress, estimates_nothing_before_anything_is_done) {
    Estimate estimate(start);
    EXPECT_EQ(estimate.left(start), std::nullopt);
    estimate.on_step({"first", 1, 7, 0}, start + seconds(5));
    EXPECT_EQ(estimate.left(start + seconds(6)), std::nullopt);
    estimate.on_step({"second", 1, 7, 0.01}, start + seconds(6));
    EXPECT_EQ(estimate.left(start + seconds(6)), std::nullopt) << "a hundredth of a round tells too little";
}

TEST(Progress, estimates_by_the_part_that_is_done_in_the_first_round) {
    Estimate estimate(start);
    estimate.on_step({"", 1, 3, 0.25}, start + seconds(5)); // so a round takes 20 s
    EXPECT_EQ(estimate.left(start + seconds(5)), seconds(15 + 2 * 20));
    estimate.on_step({"", 1, 3, 0.25}, start + seconds(8)); // the next contestant in the same part
    EXPECT_EQ(estimate.left(start + seconds(8)), seconds(12 + 2 * 20));
}

TEST(Progress, estimates_by_the_rounds_that_are_complete_afterwards) {
    Estimate estimate(start);
    estimate.on_step({"", 1, 4, 0.5}, start + seconds(1));
    estimate.on_step({"", 2, 4, 0}, start + seconds(30));
    EXPECT_EQ(estimate.left(start + seconds(30)), seconds(3 * 30));
    EXPECT_EQ(estimate.left(start + seconds(40)), seconds(20 + 2 * 30));
    estimate.on_step({"", 3, 4, 0}, start + seconds(80)); // the second took 50
    EXPECT_EQ(estimate.left(start + seconds(80)), seconds(2 * 40)) << "the mean of both";
    EXPECT_EQ(estimate.left(start + seconds(500)), seconds(40)) << "late, but one round is still to come";
}

TEST(Progress, tells_times_as_precisely_as_they_are_known) {
    EXPECT_EQ(readable_time(seconds(0)), "a few seconds");
    EXPECT_EQ(readable_time(seconds(9)), "a few seconds");
    EXPECT_EQ(readable_time(seconds(10)), "about 10 s");
    EXPECT_EQ(readable_time(seconds(36)), "about 40 s");
    EXPECT_EQ(readable_time(seconds(100)), "about 2 min");
    EXPECT_EQ(readable_time(seconds(3569)), "about 59 min");
    EXPECT_EQ(readable_time(seconds(3570)), "about 1 h 0 min");
    EXPECT_EQ(readable_time(seconds(4800)), "about 1 h 20 min");
}

TEST(Progress, names_the_benchmark_the_round_what_is_measured_and_the_time_that_is_left) {
    EXPECT_EQ(progress_text("udp", {"tcp bulk veth", 2, 7, 0.5}, seconds(180), 100),
              "kumi bench udp: round 2 of 7, tcp bulk veth; about 3 min left");
    EXPECT_EQ(progress_text("udp", {"tcp bulk veth", 1, 7, 0}, std::nullopt, 100),
              "kumi bench udp: round 1 of 7, tcp bulk veth");
    EXPECT_EQ(progress_text("simulated", {"4 of 9: kumi", 1, 1, 0}, std::nullopt, 100),
              "kumi bench simulated: 4 of 9: kumi");
}

TEST(Progress, keeps_the_time_where_the_terminal_is_narrow) {
    EXPECT_EQ(progress_text("udp", {"tcp bulk veth", 2, 7, 0.5}, seconds(180), 50),
              "kumi bench udp: round 2 of 7,...; about 3 min left");
    for (std::size_t columns = 0; columns < 60; ++columns)
        EXPECT_LE(progress_text("udp", {"tcp bulk veth", 2, 7, 0.5}, seconds(180), columns).size(), columns);
}

/// What a line of progress writes.
class Lines : public testing::Test {
protected:
    void SetUp() override {
        int ends[2];
        ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
        out_ = base::Descriptor(ends[0]);
        in_ = base::Descriptor(ends[1]);
    }
    std::string written() const {
        std::string text(4096, '\0');
        const ssize_t got = ::read(out_.get(), text.data(), text.size());
        text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
        return text;
    }
    base::Descriptor out_, in_;
};

TEST_F(Lines, replace_each_other_on_a_terminal_and_are_removed) {
    ProgressLine line("udp", in_.get(), true, start);
    line.show({"one", 1, 2, 0}, start);
    EXPECT_EQ(written(), "\r\033[Kkumi bench udp: round 1 of 2, one");
    line.show({"two", 1, 2, 0.5}, start + seconds(40));
    EXPECT_EQ(written(), "\r\033[Kkumi bench udp: round 1 of 2, two; about 2 min left");
    line.clear();
    EXPECT_EQ(written(), "\r\033[K");
}

TEST_F(Lines, are_few_and_plain_in_a_log) {
    ProgressLine line("udp", in_.get(), false, start);
    for (int i = 0; i <= 100; ++i) line.show({"one", 1, 2, i / 200.0}, start + seconds(i));
    line.clear();
    const std::string text = written();
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text; // after 30, 60 and 90 s
    EXPECT_TRUE(text.starts_with("kumi bench udp: round 1 of 2, one; about 6 min left\n")) << text;
    EXPECT_EQ(text.find_first_of("\r\033"), text.npos);
}

} // namespace
} // namespace kumi::bench
