// What is acknowledged when, and what that costs.

#include "simulation/wire.hpp"

#include <gtest/gtest.h>

namespace kumi::reliable {
namespace {

using namespace std::chrono_literals;
using simulation::NetworkOptions;
using simulation::Wire;

TEST(Acknowledgement, a_reply_carries_it) {
    Wire wire;
    int left = 200;
    wire.on_message = [&](Node at, const Arrival& arrival) {
        if (--left > 0) wire.say(at, arrival.source, "ping or pong");
    };
    ASSERT_TRUE(wire.say(0, 1, "ping"));
    wire.run_for(1s);
    EXPECT_EQ(left, 0);
    EXPECT_EQ(wire.packets(), 201u) << "one for each message, and an acknowledgement for the last";
    EXPECT_EQ(wire.bare_packets(), 1u);
}

TEST(Acknowledgement, one_message_alone_is_acknowledged_within_the_delay) {
    Wire wire;
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    EXPECT_TRUE(wire.run_until([&] { return wire[0].all_arrived(); }, 1030us));
    EXPECT_EQ(wire.packets(), 2u);
}

TEST(Acknowledgement, small_messages_sent_back_to_back_share_a_packet) {
    Wire wire;
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(wire.say(0, 1, "thirty-two bytes of a message..."));
    ASSERT_TRUE(wire.arrives(30, 1ms));
    EXPECT_EQ(wire.packets() - wire.bare_packets(), 2u) << "the first does not wait for the others";
}

TEST(Acknowledgement, a_stream_in_one_direction_needs_at_most_one_for_16_packets) {
    NetworkOptions options;
    options.endpoint.receive_bytes = 4 << 20;
    options.packet_cost = 1us;
    Wire wire(options);
    for (int sent = 0, tries = 0; sent < 16 && tries < 10'000; ++tries) {
        sent += wire.send_bytes(0, 1, 1'000'000) ? 1 : 0;
        wire.wake(0);
        wire.run_for(100us);
    }
    ASSERT_TRUE(wire.arrives(16, 1s));
    EXPECT_EQ(wire[0].counters(1).repairs_sent, 0u);
    EXPECT_LE(wire.bare_packets() * 16, wire.packets());
}

TEST(Acknowledgement, its_delay_is_no_part_of_the_round_trip) {
    NetworkOptions options;
    options.faults.delay_min = options.faults.delay_max = 500us;
    options.endpoint.ack_delay_max = 3ms; // less than the shortest timeout
    Wire wire(options);
    for (int i = 0; i < 20; ++i) {
        ASSERT_TRUE(wire.say(0, 1, "hello"));
        wire.wake(0);
        wire.run_for(20ms);
    }
    EXPECT_GE(wire[0].sender(1).round_trip().smooth(), 1000us);
    EXPECT_LE(wire[0].sender(1).round_trip().smooth(), 1002us);
    EXPECT_EQ(wire[0].counters(1).timeouts, 0u);
}

TEST(Acknowledgement, duplicates_of_every_packet_change_nothing) {
    NetworkOptions options;
    options.faults.duplicate = 1;
    Wire wire(options);
    for (std::size_t i = 0; i < 100; ++i) ASSERT_TRUE(wire.send_bytes(0, 1, i * 50));
    wire.run_for(10s);
    ASSERT_EQ(wire.sizes.size(), 100u);
    for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(wire.sizes[i], i * 50);
    EXPECT_GT(wire[1].counters(0).duplicates, 20u);
    EXPECT_TRUE(wire.is_silent());
}

// ---- gaps

NetworkOptions of_a_millisecond() {
    NetworkOptions options;
    options.faults.delay_min = options.faults.delay_max = 1ms;
    return options;
}

TEST(Repair, a_gap_is_told_at_once_and_closed_within_a_round_trip) {
    Wire wire(of_a_millisecond());
    wire.loses = [](const PacketHeader& header) {
        return header.source == 0 && header.sequence == 5 && (header.flags & flag::retransmission) == 0;
    };
    ASSERT_TRUE(wire.send_bytes(0, 1, 28'000));
    ASSERT_TRUE(wire.arrives(1, 1s));
    EXPECT_LE(wire.time(), 3100us) << "there, back, and there";
    EXPECT_EQ(wire[0].counters(1).repairs_sent, 1u);
    EXPECT_EQ(wire[0].counters(1).timeouts, 0u);
    EXPECT_EQ(wire[1].counters(0).duplicates, 0u);
}

TEST(Repair, several_gaps_are_closed_at_once) {
    Wire wire(of_a_millisecond());
    wire.loses = [](const PacketHeader& header) {
        return header.source == 0 && header.sequence % 3 == 1 && (header.flags & flag::retransmission) == 0;
    };
    ASSERT_TRUE(wire.send_bytes(0, 1, 60'000));
    ASSERT_TRUE(wire.arrives(1, 1s));
    EXPECT_LE(wire.time(), 3100us);
    EXPECT_EQ(wire[1].counters(0).duplicates, 0u);
}

TEST(Repair, a_repair_that_is_lost_is_repaired_without_the_timer_while_traffic_goes_on) {
    Wire wire(of_a_millisecond());
    int losses = 0;
    wire.loses = [&](const PacketHeader& header) {
        return header.source == 0 && header.sequence == 5 && (header.flags & flag::data) != 0 && ++losses <= 3;
    };
    for (int i = 0; i < 60; ++i) {
        ASSERT_TRUE(wire.send_bytes(0, 1, 1'000));
        wire.wake(0);
        wire.run_for(250us);
    }
    ASSERT_TRUE(wire.arrives(60, 1s));
    EXPECT_EQ(losses, 4);
    EXPECT_EQ(wire[0].counters(1).timeouts, 0u);
}

TEST(Repair, the_end_of_a_burst_that_is_lost_is_sent_again_after_a_timeout) {
    Wire wire(of_a_millisecond());
    wire.loses = [](const PacketHeader& header) {
        return header.source == 0 && header.sequence == 9 && (header.flags & flag::retransmission) == 0;
    };
    ASSERT_TRUE(wire.send_bytes(0, 1, 14'000)); // ten packets
    ASSERT_TRUE(wire.arrives(1, 1s));
    EXPECT_EQ(wire[0].counters(1).timeouts, 1u);
    EXPECT_LE(wire.time(), 40ms);
}

TEST(Repair, packets_that_overtake_each_other_a_little_are_soon_not_taken_for_lost) {
    NetworkOptions options;
    options.faults.delay_min = 100us;
    options.faults.delay_max = 140us;
    Wire wire(options);
    for (int i = 0; i < 3000; ++i) {
        ASSERT_TRUE(wire.send_bytes(0, 1, 1'000));
        wire.wake(0);
        wire.run_for(20us);
    }
    ASSERT_TRUE(wire.arrives(3000, 1s));
    EXPECT_GT(wire[1].counters(0).overtaken, 300u);
    EXPECT_LE(wire[0].counters(1).repairs_sent, 300u) << "a tenth";
}

// ---- credit

TEST(Credit, a_sender_that_never_hears_of_more_asks_for_it) {
    NetworkOptions options;
    options.endpoint.receive_bytes = 16 << 10;
    Wire wire(options);
    wire.loses = [&](const PacketHeader& header) {
        return header.source == 1 && wire.time() < 50ms && header.credit > 5'000;
    };
    ASSERT_TRUE(wire.send_bytes(0, 1, 100'000));
    wire.wake(0);
    wire.run_for(50ms);
    EXPECT_TRUE(wire.sizes.empty());
    EXPECT_TRUE(wire.arrives(1, 200ms));
}

TEST(Credit, many_to_one_never_overruns_what_the_receiver_has) {
    for (const Node senders : {2u, 4u, 8u, 30u}) {
        NetworkOptions options;
        options.nodes = senders + 1;
        options.endpoint.receive_bytes = 256 << 10;
        options.packet_cost = 3us; // it cannot keep up
        Wire wire(options);
        for (Node from = 1; from <= senders; ++from)
            for (int i = 0; i < 4; ++i) {
                ASSERT_TRUE(wire.send_bytes(from, 0, 100'000));
                wire.wake(from);
            }
        ASSERT_TRUE(wire.arrives(senders * 4, 10s));
        EXPECT_EQ(wire.overflows(), 0u) << senders << " senders";
        EXPECT_LE(wire.socket_bytes_most(), options.endpoint.receive_bytes);
        EXPECT_GT(wire.socket_bytes_most(), options.endpoint.receive_bytes / 4) << "it was used";
        for (Node from = 1; from <= senders; ++from) EXPECT_EQ(wire[from].counters(0).repairs_sent, 0u);
    }
}

TEST(Credit, senders_that_come_and_go_do_not_overrun_either) {
    NetworkOptions options;
    options.nodes = 9;
    options.endpoint.receive_bytes = 256 << 10;
    options.packet_cost = 3us;
    Wire wire(options);
    simulation::Random random(7);
    std::size_t sent = 0;
    for (int i = 0; i < 200; ++i) {
        for (Node from = 1; from < options.nodes; ++from)
            if (random.chance(0.3) && wire.send_bytes(from, 0, random.below(100'000))) ++sent, wire.wake(from);
        wire.run_for(random.time(0us, random.chance(0.2) ? Duration{300ms} : Duration{2ms}));
    }
    ASSERT_TRUE(wire.arrives(sent, 10s));
    EXPECT_EQ(wire.overflows(), 0u);
}

// ---- congestion

/// Sends a megabyte after the other for a while.
void stream(Wire& wire, Duration duration) {
    wire.on_turn = [&](Node node) {
        if (node == 0)
            while (wire.send_bytes(0, 1, 100'000)) {}
    };
    wire.wake(0);
    wire.run_for(duration);
    wire.on_turn = nullptr;
}

TEST(CongestionOnTheWire, a_fifth_lost_shrinks_the_window_and_it_recovers) {
    Wire wire(of_a_millisecond());
    stream(wire, 100ms);
    EXPECT_GT(wire[0].sender(1).congestion().window_bytes(), Congestion::window_bytes_start);
    wire.faults().loss = 0.2;
    stream(wire, 300ms);
    EXPECT_LT(wire[0].sender(1).congestion().window_bytes(), Congestion::window_bytes_start / 2);
    wire.faults().loss = 0;
    stream(wire, 500ms);
    EXPECT_GT(wire[0].sender(1).congestion().window_bytes(), Congestion::window_bytes_start);
}

TEST(CongestionOnTheWire, one_in_a_hundred_lost_at_random_changes_nothing) {
    for (const std::uint32_t packet_bytes : {1472u, 8968u, packet_bytes_max}) {
        NetworkOptions options = of_a_millisecond();
        options.packet_bytes = packet_bytes;
        options.endpoint.receive_bytes = 4 << 20;
        Wire wire(options);
        wire.faults().loss = 0.01;
        stream(wire, 300ms);
        EXPECT_GT(wire[0].counters(1).repairs_sent, 3u);
        EXPECT_EQ(wire[0].counters(1).congested, 0u) << packet_bytes;
    }
}

TEST(CongestionOnTheWire, packets_are_paced_only_when_it_is_congested) {
    Wire wire(of_a_millisecond());
    const auto is_paced = [&] { return wire[0].sender(1).congestion().paced_until() > Instant{}; };
    stream(wire, 100ms);
    EXPECT_FALSE(is_paced());
    wire.faults().loss = 0.3;
    stream(wire, 100ms);
    EXPECT_TRUE(is_paced());
}

TEST(CongestionOnTheWire, a_narrow_link_is_filled_and_not_flooded) {
    NetworkOptions options = of_a_millisecond();
    options.link_bytes_per_us = 12.5; // 100 Mbit/s
    options.link_queue_bytes = 64 << 10;
    Wire wire(options);
    stream(wire, 2s);
    const double got = static_cast<double>(wire.sizes.size()) * 100'000;
    EXPECT_GT(got, 0.7 * 2e6 * 12.5);
    EXPECT_LT(wire[0].counters(1).repairs_sent * 4, wire[0].counters(1).packets_sent);
}

} // namespace
} // namespace kumi::reliable
