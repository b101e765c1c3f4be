#include "kumi/reliable/endpoint/endpoint.hpp"

#include "simulation/wire.hpp"

#include <gtest/gtest.h>

namespace kumi::reliable {
namespace {

using namespace std::chrono_literals;
using simulation::NetworkOptions;
using simulation::Wire;
using simulation::forged;

// ---- packets

TEST(Endpoint, a_packet_of_the_largest_size_leaves) {
    NetworkOptions options;
    options.packet_bytes = packet_bytes_max;
    Wire wire(options);
    ASSERT_TRUE(wire.send_bytes(0, 1, 200'000));
    EXPECT_TRUE(wire.arrives(1, 10ms));
}

TEST(Endpoint, what_is_ready_sets_no_deadline_in_the_past) {
    Wire wire;
    wire.refuse_sending(1, 50ms);
    ASSERT_TRUE(wire.say(0, 1, "hello"));
    wire.run_for(10ms);
    EXPECT_TRUE(wire[1].has_ready());
    EXPECT_GT(wire[1].next_deadline(), wire.now(1));
    wire.run_for(100ms);
    EXPECT_TRUE(wire[0].all_arrived());
}

TEST(Endpoint, a_small_window_is_kept_to) {
    NetworkOptions options;
    options.endpoint.window_packets_max = 8;
    Wire wire(options);
    Sequence lowest_unsent = 0;
    wire.on_packet = [&](const PacketHeader& header) {
        if (header.source == 0 && (header.flags & flag::data) != 0)
            lowest_unsent = std::max(lowest_unsent, header.sequence + 1);
    };
    wire.cut(0, 1, true);
    ASSERT_TRUE(wire.send_bytes(0, 1, 100'000));
    wire.wake(0);
    wire.run_for(1ms);
    EXPECT_LE(lowest_unsent, 8u);
    wire.cut(0, 1, false);
    EXPECT_TRUE(wire.arrives(1, 1s));
    EXPECT_EQ(wire[1].drops().of(Drop::beyond_window), 0u);
}

TEST(Endpoint, packets_made_larger_still_fit_what_the_peer_grants) {
    NetworkOptions options;
    options.endpoint.receive_bytes = 32 << 10;
    options.socket_bytes = 1 << 20;
    Wire wire(options);
    wire[0].set_packet_bytes(1, packet_bytes_max, wire.now(0));
    ASSERT_TRUE(wire.send_bytes(0, 1, 100'000));
    EXPECT_TRUE(wire.arrives(1, 1s));
}

TEST(Endpoint, data_that_goes_back_does_not_make_what_arrived_behind_a_gap_look_lost) {
    Wire wire;
    bool lost = false;
    wire.loses = [&](const PacketHeader& header) {
        if (header.source == 0) return (header.flags & flag::data) != 0 && !std::exchange(lost, true);
        return (header.flags & flag::data) == 0; // whatever tells of the gap
    };
    ASSERT_TRUE(wire.send_bytes(0, 1, 50'000));
    wire.wake(0);
    for (int i = 0; i < 20; ++i) {
        ASSERT_TRUE(wire.say(1, 0, "something"));
        wire.wake(1);
        wire.run_for(100us);
    }
    EXPECT_TRUE(wire.arrives(21, 100ms));
    EXPECT_EQ(wire[1].counters(0).duplicates, 0u);
}

TEST(Endpoint, data_that_goes_back_does_not_put_off_telling_of_a_gap) {
    NetworkOptions options;
    Wire wire(options);
    bool lost = false;
    int tellings = 0;
    wire.loses = [&](const PacketHeader& header) {
        if (header.source == 0) return (header.flags & flag::data) != 0 && !std::exchange(lost, true);
        return (header.flags & flag::data) == 0 && ++tellings == 1;
    };
    ASSERT_TRUE(wire.send_bytes(0, 1, 10'000));
    wire.wake(0);
    for (int i = 0; i < 40; ++i) {
        ASSERT_TRUE(wire.say(1, 0, "something"));
        wire.wake(1);
        wire.run_for(50us);
    }
    EXPECT_GE(tellings, 2);
    EXPECT_EQ(wire.sizes.size(), 41u);
    EXPECT_EQ(wire[0].counters(1).timeouts, 0u);
}

TEST(Endpoint, a_peer_that_tells_nonsense_about_the_first_missing_packet_does_not_hang_it) {
    Wire wire;
    wire.cut(0, 1, true);
    wire.on_packet = [](const PacketHeader& header) { EXPECT_LT(header.sequence, 15u) << "there are no more"; };
    ASSERT_TRUE(wire.send_bytes(0, 1, 20'000));
    wire.wake(0);
    wire.run_for(1ms);
    // Sequence 0 has arrived, it says, and yet is expected; and so again, with one that was never sent.
    wire.inject(0, forged({.source = 1, .destination = 0, .expected = 0xFFFF'FFFFu, .transmission = 1}, {1}));
    wire.run_for(100us);
    wire.refuse_sending(0, 1s); // what is sent again waits
    wire.run_for(500ms);
    wire.inject(0, forged({.source = 1, .destination = 0, .expected = 0, .transmission = 2}, {1, ~std::uint64_t{0}}));
    wire.run_for(100ms);
    wire.inject(0, forged({.source = 1, .destination = 0, .expected = 3, .transmission = 3}, {}));
    wire.run_for(1s);
    EXPECT_EQ(wire[0].drops().of(Drop::malformed), 1u);
    wire.inject(0, forged({.source = 1, .destination = 0, .expected = 15, .transmission = 4}, {}));
    wire.run_for(1ms);
    EXPECT_TRUE(wire[0].all_arrived());
    EXPECT_EQ(wire[0].bytes_used(), 0u);
}

// ---- readers that keep messages

/// Endpoints whose readers may keep one message of 64 KiB of each peer.
NetworkOptions for_keepers() {
    NetworkOptions options;
    options.nodes = 3;
    options.endpoint.message_bytes_max = 64 << 10;
    return options;
}

TEST(Endpoint, two_peers_that_waited_for_room_are_read_in_one_go) {
    Wire wire(for_keepers());
    wire.keeps = true;
    for (const Node from : {1u, 2u})
        for (int i = 0; i < 2; ++i) {
            ASSERT_TRUE(wire.send_bytes(from, 0, 60'000));
            wire.wake(from);
        }
    wire.run_for(10ms);
    ASSERT_EQ(wire.kept.size(), 2u);
    EXPECT_TRUE(wire[0].is_stalled());
    wire.keeps = false;
    for (Block* block : wire.kept) wire[0].release(block);
    Arrival arrival;
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(wire[0].next_message(arrival, wire.now(0))) << "message " << i;
        wire[0].release(arrival.block);
    }
    EXPECT_FALSE(wire[0].next_message(arrival, wire.now(0)));
    EXPECT_FALSE(wire[0].is_stalled());
}

TEST(Endpoint, a_message_kept_from_a_peers_earlier_life_may_be_released_in_its_next) {
    Wire wire(for_keepers());
    wire.keeps = true;
    ASSERT_TRUE(wire.send_bytes(1, 0, 60'000));
    ASSERT_TRUE(wire.arrives(1, 10ms));
    wire.restart(1, true);
    wire[0].release(wire.kept[0]);
    wire.keeps = false;
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(wire.send_bytes(1, 0, 60'000));
    EXPECT_TRUE(wire.arrives(4, 100ms));
    wire.run_for(1s);
    EXPECT_EQ(wire[0].receiver(1).held_bytes(), 0u);
    EXPECT_EQ(wire[0].bytes_used(), 0u);
}

TEST(Endpoint, a_peer_that_is_gone_costs_no_memory_but_for_what_can_still_be_read) {
    Wire wire(for_keepers());
    wire.keeps = true;
    wire.loses = [](const PacketHeader& header) { return header.source == 2 && header.sequence == 9; };
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(wire.send_bytes(1, 0, 60'000)); // the second waits for room
    ASSERT_TRUE(wire.send_bytes(2, 0, 60'000));
    wire.wake(1), wire.wake(2);
    wire.run_for(50us);
    ASSERT_EQ(wire.sizes.size(), 1u);
    for (const Node node : {1u, 2u})
        wire.inject(0, forged({.flags = flag::farewell, .source = node, .destination = 0, .transmission = 1000}, {}));
    wire.run_for(100us);
    EXPECT_EQ(wire[0].gone(1), Gone::left);
    EXPECT_EQ(wire[0].receiver(2).held_bytes() + wire[0].receiver(2).aside_bytes(), 0u);
    wire.keeps = false;
    wire[0].release(wire.kept[0]);
    wire.wake(0);
    wire.run_for(1ms);
    wire.wake(0);
    wire.run_for(1ms);
    EXPECT_EQ(wire.sizes.size(), 2u);
    EXPECT_EQ(wire[0].bytes_used(), 0u);
}

TEST(Endpoint, nothing_is_dropped_while_a_reader_keeps_what_it_got) {
    NetworkOptions options = for_keepers();
    options.endpoint.receive_bytes = 8 << 20;
    options.endpoint.window_packets_max = 64;
    Wire wire(options);
    wire.keeps = true;
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(wire.send_bytes(1, 0, 60'000)); // the second waits
    std::size_t said = 2;
    for (int i = 0; i < 300; ++i) {
        said += wire.say(1, 0, "small") ? 1 : 0; // until there is no room for more
        wire[1].flush(); // each in a packet of its own
        wire.wake(1);
        wire.run_for(30us);
    }
    EXPECT_EQ(wire[0].drops().of(Drop::beyond_window), 0u);
    EXPECT_EQ(wire[1].counters(0).repairs_sent, 0u);
    wire.keeps = false;
    wire[0].release(wire.kept[0]);
    wire.wake(0);
    EXPECT_GT(said, 100u);
    EXPECT_TRUE(wire.arrives(said, 1s));
}

// ---- counts that wrap

TEST(Endpoint, sequences_transmissions_and_credit_wrap) {
    NetworkOptions options;
    options.endpoint.first_sequence = 0xFFFF'FFF0u;
    options.faults = {.loss = 0.05, .duplicate = 0.05, .late = 0.05};
    Wire wire(options);
    Sequence highest_transmission = 0xFFFF'FFF0u;
    wire.on_packet = [&](const PacketHeader& header) {
        if (header.source == 0 && is_before(highest_transmission, header.transmission))
            highest_transmission = header.transmission;
    };
    for (std::size_t i = 0; i < 20; ++i) ASSERT_TRUE(wire.send_bytes(0, 1, 1500 * i));
    ASSERT_TRUE(wire.arrives(20, 1s));
    for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(wire.sizes[i], 1500 * i);
    EXPECT_LT(highest_transmission, 10'000u);
    wire.run_for(10s);
    EXPECT_TRUE(wire[0].all_arrived());
    EXPECT_TRUE(wire.is_silent());
}

TEST(Endpoint, a_peer_that_answers_but_grants_nothing_is_not_taken_for_a_bad_path) {
    NetworkOptions options = for_keepers();
    options.endpoint.receive_bytes = 64 << 10;
    Wire wire(options);
    wire.keeps = true;
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(wire.send_bytes(1, 0, 60'000));
    wire.wake(1);
    wire.run_for(2s);
    EXPECT_GE(wire[1].counters(0).timeouts, 3u); // it asks
    EXPECT_GE(wire[1].sender(0).congestion().window_bytes(), Congestion::window_bytes_start);
    wire.keeps = false;
    wire[0].release(wire.kept[0]);
    wire.wake(0);
    EXPECT_TRUE(wire.arrives(5, 10ms));
}

TEST(Endpoint, a_peer_that_never_ends_a_message_does_not_make_it_wait_for_a_reader) {
    Wire wire(for_keepers());
    const std::uint64_t first_piece = 60'000; // of so many bytes, at offset 0
    for (Sequence i = 0; i < 3; ++i)
        wire.inject(0,
                    forged({.flags = flag::data, .source = 1, .destination = 0, .sequence = i, .transmission = i + 1},
                           {first_piece, 7}));
    wire.run_for(1ms);
    EXPECT_FALSE(wire[0].is_stalled());
    EXPECT_EQ(wire[0].receiver(1).held_bytes(), 65'536u);
}

// ---- memory

TEST(Endpoint, a_peer_costs_what_is_stated_and_no_more) {
    const EndpointOptions usual{.message_bytes_max = 1 << 20, .receive_bytes = 1 << 20};
    // Two messages with their headers on the way out, one on the way in, twice the receive buffer; 242 KiB of starts,
    // and the rest is small.
    EXPECT_LE(Endpoint::bytes_per_peer_max(usual), (4u + 1u + 2u) * (1u << 20) + (242u << 10) + (256u << 10));
    EXPECT_LE(Endpoint::bytes_per_idle_peer(), 1536u);
    EXPECT_LE(Sender::slots_bytes_max(1), 40u);
    EXPECT_EQ(Block::data_offset, 64u);
    EXPECT_LE(sizeof(Series), 9216u);
}

TEST(Endpoint, all_that_one_peer_can_make_it_use_is_within_what_is_stated) {
    NetworkOptions options = for_keepers();
    options.endpoint.receive_bytes = 64 << 10;
    Wire wire(options);
    wire.keeps = true;
    wire.cut(0, 2, true);
    // a gap for ever
    wire.loses = [](const PacketHeader& header) { return header.source == 1 && header.sequence == 100; };
    while (wire.send_bytes(1, 0, 30'000)) {}
    std::size_t most = 0;
    for (int i = 0; i < 200; ++i) {
        while (wire.send_bytes(0, 1, 100)) {}
        while (wire.send_bytes(0, 2, 3'000)) {}
        while (std::byte* room = wire[0].try_reserve(2, 10))
            wire[0].commit(2, static_cast<std::size_t>(room != nullptr), wire.now(0));
        wire.wake(0), wire.wake(1);
        wire.run_for(100us);
        most = std::max(most, wire[0].bytes_used());
    }
    EXPECT_GT(most, 1u << 19);
    EXPECT_LE(most, 2 * Endpoint::bytes_per_peer_max(options.endpoint));
    EXPECT_LE(wire[0].sender(2).queue_bytes(), Endpoint::bytes_per_peer_max(options.endpoint));
    for (Block* block : wire.kept) wire[0].release(block);
}

TEST(Endpoint, a_stream_asks_to_be_acknowledged_four_times_per_window_and_no_more) {
    NetworkOptions options;
    options.packet_bytes = 1024;
    options.endpoint.receive_bytes = 4 << 20;
    Wire wire(options);
    std::uint64_t asked = 0;
    std::uint64_t sent = 0;
    std::uint32_t window = Congestion::window_bytes_max;
    wire.on_packet = [&](const PacketHeader& header) {
        if (header.source != 0) return;
        window = std::min(window, wire[0].sender(1).congestion().window_bytes());
        ++sent;
        if ((header.flags & flag::ack_now) != 0) ++asked;
    };
    ASSERT_TRUE(wire.send_bytes(0, 1, 4'000'000));
    ASSERT_TRUE(wire.arrives(1, 100ms));
    EXPECT_GT(sent, 4000u);
    EXPECT_LE(asked, 4 * sent * 1024 / window + 16); // and when it has to wait
}

TEST(Endpoint, a_question_that_could_not_leave_is_asked_as_soon_as_it_can) {
    NetworkOptions options = for_keepers();
    options.endpoint.receive_bytes = 64 << 10;
    Wire wire(options);
    wire.keeps = true;
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(wire.send_bytes(1, 0, 60'000));
    wire.wake(1);
    wire.run_for(2s); // it has no credit left, and asks once in a second
    wire.keeps = false;
    wire.cut(0, 1, true); // that there is credit again is lost
    wire[0].release(wire.kept[0]);
    wire.wake(0);
    wire.run_for(1ms);
    wire.cut(0, 1, false);
    wire.refuse_sending(1, 1500ms);
    wire.run_for(1500ms);
    EXPECT_TRUE(wire.arrives(5, 10ms));
}

} // namespace
} // namespace kumi::reliable
