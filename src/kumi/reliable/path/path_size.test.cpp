#include "kumi/reliable/path/path_size.hpp"

#include "simulation/wire.hpp"

#include <gtest/gtest.h>
#include <map>

namespace kumi::reliable {
namespace {

using namespace std::chrono_literals;
using simulation::NetworkOptions;
using simulation::Wire;

/// A path, and the peer at its other end: it answers the probes that pass.
struct Path {
    PathSize size;
    std::uint32_t carries;
    Instant now{std::chrono::hours(1)};
    Sequence transmission = 1;
    unsigned probes = 0;

    /// Sends the probe that is due; false: there is none.
    bool try_one() {
        if (size.next_probe() == never) return false;
        now = std::max(now, size.next_probe());
        ++probes;
        const Sequence number = size.probe_number();
        size.on_probe_sent(number, transmission++);
        if (size.probe_bytes() <= carries) size.on_answer(number, now);
        else EXPECT_TRUE(size.on_latest(transmission++, now)) << "the peer has what was sent behind it";
        return true;
    }
    /// Until nothing is to be tried for now.
    void settle() {
        const Instant start = now;
        while (size.next_probe() != never && size.next_probe() - start < 1min)
            if (!try_one()) break;
    }
};

// ---- the search

TEST(PathSize, nothing_is_tried_where_all_sizes_pass_for_sure) {
    Path path{PathSize(packet_bytes_max, 1472), 1472};
    path.size.begin(path.now);
    EXPECT_EQ(path.size.bytes(), 1472u);
    EXPECT_EQ(path.size.next_probe(), never);
    path.size.doubt(path.now);
    EXPECT_EQ(path.size.next_probe(), never);
}

TEST(PathSize, what_the_hosts_can_send_is_used_after_one_probe_if_it_passes) {
    Path path{PathSize(1200, 8968), 8968};
    EXPECT_EQ(path.size.bytes(), 1200u) << "what surely passes, at first";
    EXPECT_EQ(path.size.next_probe(), never) << "nobody talks to the peer";
    path.size.begin(path.now);
    EXPECT_EQ(path.size.next_probe(), path.now);
    EXPECT_EQ(path.size.probe_bytes(), 8968u);
    path.settle();
    EXPECT_EQ(path.size.bytes(), 8968u);
    EXPECT_EQ(path.probes, 1u);
    EXPECT_EQ(path.size.next_probe(), never);
    EXPECT_FALSE(path.size.take_narrow());
}

TEST(PathSize, the_largest_that_passes_is_found_and_told_once) {
    for (const std::uint32_t carries : {1200u, 1232u, 1472u, 4000u, 8960u}) {
        Path path{PathSize(1200, 8968), carries};
        path.size.begin(path.now);
        path.settle();
        EXPECT_LE(path.size.bytes(), carries);
        EXPECT_GT(path.size.bytes() + 40, carries);
        EXPECT_EQ(path.size.bytes() % 8, 0u);
        EXPECT_GT(path.size.too_large(), carries);
        EXPECT_TRUE(path.size.take_narrow());
        EXPECT_FALSE(path.size.take_narrow());
        EXPECT_LE(path.probes, 40u);
    }
}

TEST(PathSize, a_probe_that_is_lost_twice_says_nothing) {
    Path path{PathSize(1200, 8968), 100};
    path.size.begin(path.now);
    path.try_one();
    EXPECT_EQ(path.size.next_probe(), path.now + 20ms) << "not at once: what lost this one may lose the next";
    path.try_one();
    EXPECT_EQ(path.size.probe_bytes(), 8968u);
    path.carries = 8968;
    path.try_one();
    EXPECT_EQ(path.size.bytes(), 8968u);
}

TEST(PathSize, an_answer_that_was_overtaken_counts_and_one_to_another_size_does_not) {
    Path path{PathSize(1200, 8968), 100};
    path.size.begin(path.now);
    const Sequence first = path.size.probe_number();
    path.try_one();
    path.size.on_answer(first - 1, path.now);
    path.size.on_answer(path.size.probe_number() + 1, path.now);
    EXPECT_EQ(path.size.bytes(), 1200u);
    path.size.on_answer(first, path.now); // while the next waits
    EXPECT_EQ(path.size.bytes(), 8968u);
    Path other{PathSize(1200, 8968), 100};
    other.size.begin(other.now);
    for (int i = 0; i < 3; ++i) other.try_one();
    ASSERT_LT(other.size.probe_bytes(), 8968u);
    other.size.on_answer(first, other.now);
    EXPECT_EQ(other.size.bytes(), 1200u);
}

TEST(PathSize, a_peer_that_says_nothing_lets_no_probe_look_lost) {
    Path path{PathSize(1200, 8968), 8968};
    path.size.begin(path.now);
    path.size.on_probe_sent(path.size.probe_number(), 7);
    EXPECT_EQ(path.size.next_probe(), never);
    EXPECT_FALSE(path.size.on_latest(6, path.now + 1h));
    EXPECT_FALSE(path.size.on_latest(7, path.now + 1h)) << "the probe itself, whose answer is to come";
    EXPECT_EQ(path.size.next_probe(), never);
    EXPECT_TRUE(path.size.on_latest(8, path.now + 1h));
    EXPECT_EQ(path.size.bytes(), 1200u);
}

// ---- change

TEST(PathSize, a_size_that_passes_no_more_is_left_and_the_search_begins_again) {
    Path path{PathSize(1200, 8968), 8968};
    path.size.begin(path.now);
    path.settle();
    path.size.doubt(path.now);
    EXPECT_EQ(path.size.probe_bytes(), 8968u);
    path.settle();
    EXPECT_EQ(path.size.bytes(), 8968u) << "it was in doubt, and passes";
    EXPECT_EQ(path.size.next_probe(), never);
    path.carries = 1472;
    path.size.doubt(path.now);
    for (int i = 0; i < 3; ++i) path.try_one();
    EXPECT_EQ(path.size.bytes(), 1200u) << "surely passes";
    path.settle();
    EXPECT_NEAR(path.size.bytes(), 1472, 40);
    path.carries = 600; // less than what should pass surely
    for (int i = 0; i < 2; ++i) {
        path.size.doubt(path.now);
        for (int probes = 0; probes < 3; ++probes) path.try_one();
    }
    EXPECT_EQ(path.size.bytes(), packet_bytes_min);
    path.settle();
    EXPECT_NEAR(path.size.bytes(), 600, 40);
}

TEST(PathSize, a_doubt_that_is_looked_into_already_starts_nothing_new) {
    Path path{PathSize(1200, 8968), 1000};
    path.size.begin(path.now);
    path.size.doubt(path.now);
    EXPECT_EQ(path.size.probe_bytes(), 1200u);
    path.try_one();
    path.size.doubt(path.now);
    path.try_one();
    path.size.doubt(path.now);
    path.try_one();
    EXPECT_EQ(path.size.bytes(), packet_bytes_min);
}

TEST(PathSize, a_path_that_carries_more_later_is_used) {
    Path path{PathSize(1200, 8968), 1472};
    path.size.begin(path.now);
    path.settle();
    const Instant settled = path.now;
    path.try_one();
    EXPECT_GE(path.now - settled, 9min);
    EXPECT_LT(path.size.bytes(), 1473u);
    path.carries = 8968;
    path.settle();
    EXPECT_EQ(path.size.bytes(), 8968u);
    EXPECT_EQ(path.size.next_probe(), never);
}

TEST(PathSize, a_lower_limit_is_kept_to) {
    Path path{PathSize(1200, 8968), 8968};
    path.size.begin(path.now);
    path.settle();
    path.size.set_limit(4000, path.now);
    EXPECT_EQ(path.size.bytes(), 4000u);
    EXPECT_EQ(path.size.next_probe(), never);
    path.size.set_limit(1000, path.now);
    EXPECT_EQ(path.size.bytes(), 1000u);
    Path searching{PathSize(1200, 8968), 8968};
    searching.size.begin(searching.now);
    searching.size.set_limit(4000, searching.now);
    searching.settle();
    EXPECT_EQ(searching.size.bytes(), 4000u);
}

TEST(PathSize, a_probe_that_left_for_nothing_is_not_waited_for) {
    Path path{PathSize(1200, 8968), 8968};
    path.size.begin(path.now);
    path.settle();
    path.size.doubt(path.now);
    const Sequence number = path.size.probe_number();
    path.size.set_limit(1472, path.now); // the system refused it, and said why
    path.size.on_probe_sent(number, 9);
    EXPECT_FALSE(path.size.is_out());
    EXPECT_FALSE(path.size.on_latest(10, path.now));
    EXPECT_EQ(path.size.bytes(), 1472u);
    EXPECT_EQ(path.size.next_probe(), never);
    Path searching{PathSize(1200, 8968), 8968};
    searching.size.begin(searching.now);
    const Sequence first = searching.size.probe_number();
    searching.size.set_limit(4000, searching.now);
    searching.size.on_probe_sent(first, 9);
    EXPECT_FALSE(searching.size.is_out());
    EXPECT_EQ(searching.size.probe_bytes(), 4000u);
    searching.settle();
    EXPECT_EQ(searching.size.bytes(), 4000u);
}

TEST(PathSize, a_limit_does_not_raise_what_is_known_not_to_pass) {
    Path path{PathSize(1200, 8968), 600};
    path.size.begin(path.now);
    path.size.doubt(path.now);
    path.settle();
    ASSERT_LE(path.size.bytes(), 600u);
    path.size.set_limit(1400, path.now);
    EXPECT_LE(path.size.bytes(), 600u);
}

// ---- between endpoints

NetworkOptions jumbo() {
    NetworkOptions options;
    options.packet_bytes = 8968;
    options.sure_bytes = 1200;
    return options;
}

TEST(PathSizes, between_hosts_whose_switch_carries_less_all_arrives_and_the_path_is_told) {
    NetworkOptions options = jumbo();
    options.path_bytes = 1472;
    Wire wire(options);
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(wire.send_bytes(0, 1, 50'000));
    EXPECT_TRUE(wire.arrives(5, 1s)) << wire.sizes.size();
    for (int i = 0; i < 100; ++i) { // the search goes on with the messages
        ASSERT_TRUE(wire.say(0, 1, "more"));
        wire.wake(0);
        wire.run_for(30ms);
    }
    EXPECT_NEAR(wire[0].packet_bytes(1), 1472, 40);
    EXPECT_EQ(wire[0].next_narrow_path(), 1u);
    EXPECT_EQ(wire[0].next_narrow_path(), std::nullopt);
}

TEST(PathSizes, where_large_packets_pass_they_are_used_at_once) {
    Wire wire(jumbo());
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    EXPECT_TRUE(wire.arrives(1, 1ms));
    wire.run_for(1ms);
    EXPECT_EQ(wire[0].packet_bytes(1), 8968u);
    EXPECT_EQ(wire[1].packet_bytes(0), 8968u) << "in the other direction, too";
    EXPECT_EQ(wire[0].next_narrow_path(), std::nullopt);
}

TEST(PathSizes, packets_under_way_when_the_path_begins_to_lose_large_ones_arrive_in_parts) {
    Wire wire(jumbo());
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    wire.run_for(10ms);
    ASSERT_EQ(wire[0].packet_bytes(1), 8968u);
    wire.set_path_bytes(1472);
    bool had_parts = false;
    wire.on_packet = [&](const PacketHeader& header) {
        had_parts |= (header.flags & (flag::data | flag::fragment)) == (flag::data | flag::fragment);
    };
    std::vector<std::byte> long_one(100'000), small(3000);
    for (std::size_t i = 0; i < long_one.size(); ++i) long_one[i] = static_cast<std::byte>(i * 7 / 5);
    for (std::size_t i = 0; i < small.size(); ++i) small[i] = static_cast<std::byte>(i * 3);
    std::vector<std::vector<std::byte>> got;
    wire.on_message = [&](Node at, const Arrival& arrival) {
        got.emplace_back(arrival.bytes.begin(), arrival.bytes.end());
        if (arrival.block != nullptr) wire[at].release(arrival.block);
    };
    // In all forms in which messages wait: copied long ones, small ones in a packet together, and those that were
    // filled in place.
    ASSERT_TRUE(wire.send(0, 1, long_one));
    ASSERT_TRUE(wire.send(0, 1, small));
    ASSERT_TRUE(wire.send(0, 1, small));
    std::byte* const room = wire[0].try_reserve(1, long_one.size());
    ASSERT_NE(room, nullptr);
    std::memcpy(room, long_one.data(), long_one.size());
    wire[0].commit(1, long_one.size(), wire.now(0));
    wire.wake(0);
    EXPECT_TRUE(wire.run_until([&] { return got.size() == 4; }, 2s)) << got.size();
    EXPECT_EQ(got, (std::vector<std::vector<std::byte>>{long_one, small, small, long_one}));
    EXPECT_TRUE(had_parts);
    EXPECT_LE(wire[0].packet_bytes(1), 1472u);
    wire.run_for(5s);
    EXPECT_TRUE(wire[0].all_arrived());
}

TEST(PathSizes, what_came_in_parts_is_given_back_as_whole_packets) {
    Wire wire(jumbo());
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    wire.run_for(10ms);
    std::map<Sequence, std::uint32_t> weights; // of what node 0 has sent
    bool had_parts = false;
    std::uint32_t line = 0; // to which node 0 may send, says node 1
    wire.on_packet = [&](const PacketHeader& header) {
        const bool is_part = (header.flags & flag::fragment) != 0;
        if (header.source == 1) line = header.credit;
        else if ((header.flags & flag::data) != 0 && !is_part) weights[header.sequence] = weight_of(header.bytes);
        had_parts |= is_part;
    };
    const auto hear_line = [&] { // when all was read
        ASSERT_TRUE(wire.say(0, 1, "last"));
        wire.wake(0);
        wire.run_for(1s);
    };
    ASSERT_NO_FATAL_FAILURE(hear_line());
    weights.clear();
    const std::uint32_t before = line;
    wire.set_path_bytes(1472);
    ASSERT_TRUE(wire.send_bytes(0, 1, 100'000));
    wire.wake(0);
    ASSERT_TRUE(wire.arrives(3, 2s));
    ASSERT_TRUE(had_parts);
    ASSERT_NO_FATAL_FAILURE(hear_line());
    std::uint32_t more = 0;
    for (const auto& [sequence, weight] : weights) more += weight;
    EXPECT_EQ(line - before, more);
}

TEST(PathSizes, where_only_questions_pass_they_are_repeated_until_one_does) {
    Wire wire(jumbo());
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    wire.run_for(10ms);
    wire.set_path_bytes(1472);
    int questions = 0;
    wire.loses = [&](const PacketHeader& header) {
        const bool is_question =
            header.source == 0 && (header.flags & (flag::data | flag::ack_now | flag::probe)) == flag::ack_now;
        return is_question && ++questions <= 3;
    };
    ASSERT_TRUE(wire.send_bytes(0, 1, 100'000));
    wire.wake(0);
    EXPECT_TRUE(wire.arrives(2, 10s));
    EXPECT_GT(questions, 3);
}

TEST(PathSizes, a_peer_that_is_silent_is_not_asked_more_often_because_others_talk) {
    NetworkOptions options = jumbo();
    options.nodes = 3;
    Wire wire(options);
    ASSERT_TRUE(wire.say(0, 2, "hello"));
    wire.run_for(10ms);
    wire.freeze(2, 1h);
    ASSERT_TRUE(wire.send_bytes(0, 2, 100'000));
    int questions = 0;
    wire.on_packet = [&](const PacketHeader& header) {
        questions += header.source == 0 && header.destination == 2 && (header.flags & flag::data) == 0 ? 1 : 0;
    };
    for (int i = 0; i < 3000; ++i) {
        ASSERT_TRUE(wire.say(0, 1, "busy"));
        wire.wake(0);
        wire.run_for(1ms);
    }
    EXPECT_GT(questions, 1);
    EXPECT_LT(questions, 40);
}

TEST(PathSizes, a_peer_that_is_only_busy_is_not_sent_smaller_packets) {
    Wire wire(jumbo());
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    wire.run_for(10ms);
    wire.freeze(1, 20s);
    ASSERT_TRUE(wire.send_bytes(0, 1, 100'000));
    wire.wake(0);
    wire.run_for(21s);
    EXPECT_TRUE(wire.arrives(2, 2s));
    wire.run_for(1s);
    EXPECT_EQ(wire[0].packet_bytes(1), 8968u);
}

} // namespace
} // namespace kumi::reliable
