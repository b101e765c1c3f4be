// What leaves, in which series, and when.

#include "kumi/reliable/endpoint/endpoint.hpp"

#include "simulation/wire.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace kumi::reliable {
namespace {

using namespace std::chrono_literals;
using simulation::Random;

/// Two endpoints, whose packets the test carries by hand.
struct TwoEnds {
    explicit TwoEnds(std::uint32_t packet_bytes = 1472, EndpointOptions options = {}) : packet_bytes(packet_bytes) {
        for (const Node node : {0u, 1u}) {
            options.self = node;
            options.nodes = 2;
            options.token = 77;
            options.incarnation = 5;
            ends[node] = std::make_unique<Endpoint>(options);
        }
        for (const Node node : {0u, 1u})
            for (const Node peer : {0u, 1u}) {
                Introduction introduction = ends[peer]->introduction();
                introduction.packet_bytes = packet_bytes;
                ends[node]->introduce(peer, introduction);
            }
    }

    Endpoint& operator[](Node node) { return *ends[node]; }
    bool send(Node from, std::size_t bytes) {
        return ends[from]->try_send(1 - from, Bytes(std::vector<std::byte>(bytes, std::byte{3})), now);
    }
    /// The next series of `from`, or none.
    bool next(Node from) {
        if (!ends[from]->next_series(series, now)) return false;
        check_series();
        return true;
    }
    PacketHeader header(std::size_t index) const {
        PacketHeader found;
        std::memcpy(&found, series.packets[index].head, sizeof found);
        return found;
    }
    /// What every series promises.
    void check_series() {
        ASSERT_GE(series.count, 1u);
        ASSERT_LE(series.count, Sender::series_max);
        std::size_t all = 0;
        for (std::size_t i = 0; i < series.count; ++i) {
            const OutPacket& packet = series.packets[i];
            std::vector<std::byte> bytes(packet.head, packet.head + packet.head_bytes);
            bytes.insert(bytes.end(), packet.body.begin(), packet.body.end());
            all += bytes.size();
            ASSERT_LE(bytes.size(), packet_bytes);
            const std::size_t first = series.packets[0].bytes();
            if (i + 1 < series.count) ASSERT_EQ(bytes.size(), first) << "all but the last are of one size";
            else ASSERT_LE(bytes.size(), first);
            Bytes rest = bytes;
            PacketHeader parsed;
            Drop cause;
            ASSERT_TRUE(parse(rest, 77, Checked::heads, parsed, cause)) << name_of(cause);
            ASSERT_EQ(parsed.bytes, bytes.size());
            ASSERT_EQ(parsed.source, 1 - series.to);
            ASSERT_EQ(parsed.destination, series.to);
            ASSERT_EQ(parsed.source_incarnation, 5u);
            ASSERT_EQ(parsed.destination_incarnation, 5u);
            ASSERT_EQ(parsed.transmission, header(0).transmission + i);
            if ((parsed.flags & flag::data) != 0) {
                ASSERT_EQ((parsed.flags & flag::retransmission) != 0, series.is_retransmission);
            } else {
                ASSERT_EQ(series.count, 1u);
            }
        }
        if (series.count > 1) {
            ASSERT_LE(all, 62'900u) << "one system call takes no more";
        }
    }
    void deliver(std::size_t count) {
        Endpoint& to = *ends[series.to];
        for (std::size_t i = 0; i < count; ++i) {
            const OutPacket& packet = series.packets[i];
            std::vector<std::byte> bytes(packet.head, packet.head + packet.head_bytes);
            bytes.insert(bytes.end(), packet.body.begin(), packet.body.end());
            to.on_packet(bytes, now);
            for (Arrival arrival; to.next_message(arrival, now);) {
                sizes.push_back(arrival.bytes.size());
                if (arrival.block != nullptr) to.release(arrival.block);
            }
        }
    }
    /// Carries all that `from` may send now; answers how many packets.
    std::size_t carry(Node from) {
        std::size_t count = 0;
        while (next(from)) {
            ends[from]->on_sent(series, series.count, series.count > 1, now);
            count += series.count;
            deliver(series.count);
        }
        return count;
    }
    /// Until both have nothing more to say.
    void settle() {
        for (int i = 0; i < 100; ++i) {
            for (const Node node : {0u, 1u}) ends[node]->flush(), carry(node);
            now += 2ms;
            for (const Node node : {0u, 1u}) ends[node]->on_time(now);
        }
    }

    std::uint32_t packet_bytes;
    std::unique_ptr<Endpoint> ends[2];
    Instant now = Instant{} + 1h;
    Series series;
    std::vector<std::size_t> sizes; // of messages that arrived
};

TEST(EndpointOut, packets_of_a_series_are_of_one_size_but_the_last_and_fit_one_system_call) {
    for (const std::uint32_t packet_bytes : {512u, 984u, 1472u, 8968u, 31'440u, 31'456u, 65'472u}) {
        TwoEnds two(packet_bytes);
        Random random(packet_bytes);
        std::vector<std::size_t> said;
        for (int i = 0; i < 200; ++i) {
            const std::size_t bytes = random.below(random.chance(0.5) ? 300 : 100'000);
            if (two.send(0, bytes)) said.push_back(bytes);
            if (random.chance(0.3)) two[0].flush();
            if (random.chance(0.3)) two.carry(0), two.carry(1);
            two.now += 20us;
            for (const Node node : {0u, 1u}) two[node].on_time(two.now);
        }
        two.settle();
        if (HasFatalFailure()) return;
        EXPECT_EQ(two.sizes, said) << packet_bytes;
        EXPECT_TRUE(two[0].all_arrived());
        EXPECT_EQ(two[0].counters(1).repairs_sent, 0u);
    }
}

TEST(EndpointOut, a_message_waits_for_company_for_50_us_after_the_last_and_no_longer) {
    TwoEnds two;
    ASSERT_TRUE(two.send(0, 8));
    EXPECT_TRUE(two[0].has_ready()) << "nothing is under way";
    ASSERT_EQ(two.carry(0), 1u);
    two.now += 50us;
    ASSERT_TRUE(two.send(0, 8));
    EXPECT_FALSE(two[0].has_ready());
    EXPECT_EQ(two.carry(0), 0u);
    two.now += 1ns;
    ASSERT_TRUE(two.send(0, 8));
    EXPECT_TRUE(two[0].has_ready()) << "and brings the one that waited";
    EXPECT_EQ(two.carry(0), 1u);
    EXPECT_EQ(two.sizes.size(), 3u);
    ASSERT_TRUE(two.send(0, 8));
    EXPECT_EQ(two.carry(0), 0u);
    two[0].flush();
    EXPECT_TRUE(two[0].has_ready());
    EXPECT_EQ(two.carry(0), 1u);
    EXPECT_EQ(two.sizes.size(), 4u);
}

TEST(EndpointOut, a_full_packet_does_not_wait_for_company) {
    TwoEnds two;
    ASSERT_TRUE(two.send(0, 8));
    ASSERT_EQ(two.carry(0), 1u);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(two.send(0, 600)); // two fit a packet
    EXPECT_EQ(two.carry(0), 1u);
    EXPECT_EQ(two.sizes.size(), 3u);
}

TEST(EndpointOut, what_did_not_leave_is_offered_again) {
    TwoEnds two;
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(two.send(0, 8));
        two[0].flush();
    }
    ASSERT_TRUE(two.next(0));
    const Sequence first = two.header(0).transmission;
    two[0].on_sent(two.series, 0, false, two.now);
    EXPECT_TRUE(two[0].has_ready());
    ASSERT_TRUE(two.next(0));
    ASSERT_EQ(two.series.count, 3u);
    EXPECT_EQ(two.header(0).transmission, first) << "nothing has left";
    two[0].on_sent(two.series, 1, false, two.now);
    two.deliver(1);
    ASSERT_TRUE(two.next(0));
    EXPECT_EQ(two.series.count, 2u);
    EXPECT_EQ(two.header(0).sequence, 1u);
    EXPECT_EQ(two.header(0).transmission, first + 1);
    two[0].on_sent(two.series, 2, false, two.now);
    two.deliver(2);
    EXPECT_EQ(two.sizes.size(), 3u);
    EXPECT_EQ(two[0].counters(1).packets_sent, 3u);
}

TEST(EndpointOut, an_acknowledgement_that_did_not_leave_is_offered_again) {
    TwoEnds two;
    ASSERT_TRUE(two.send(0, 8));
    two.carry(0);
    EXPECT_FALSE(two.next(1)) << "it waits for an answer that would carry it";
    EXPECT_EQ(two[1].next_deadline(), two.now + 1ms);
    EXPECT_EQ(two[1].next_ack_deadline(), two.now + 1ms);
    two.now += 1ms;
    two[1].on_time(two.now);
    ASSERT_TRUE(two.next(1));
    EXPECT_EQ(two.header(0).flags & flag::data, 0);
    two[1].on_sent(two.series, 0, false, two.now);
    ASSERT_TRUE(two.next(1));
    EXPECT_EQ(two.header(0).flags & flag::data, 0);
    two[1].on_sent(two.series, 1, false, two.now);
    two.deliver(1);
    EXPECT_TRUE(two[0].all_arrived());
    EXPECT_FALSE(two.next(1));
    EXPECT_EQ(two[1].counters(0).bare_acks_sent, 1u);
    EXPECT_EQ(two[1].next_ack_deadline(), never);
}

TEST(EndpointOut, the_short_way_of_a_small_message_is_open_when_nothing_else_is_to_be_said) {
    TwoEnds two;
    const auto now_or_never = [&](std::size_t bytes = 8) {
        return two[0].try_send_now(1, Bytes(std::vector<std::byte>(bytes)), two.now).size();
    };
    ASSERT_TRUE(two.send(0, 8));
    two.settle();
    EXPECT_EQ(now_or_never(two[0].sender(1).append_bytes_max() + 1), 0u) << "too large";
    ASSERT_EQ(two[0].next_deadline(), never);
    EXPECT_EQ(now_or_never(two[0].sender(1).append_bytes_max()), 1472u);
    EXPECT_EQ(two[0].next_deadline(), two[0].sender(1).timeout_deadline()) << "then it is sent again";
    EXPECT_LT(two[0].next_deadline(), never);
    EXPECT_EQ(now_or_never(), 0u) << "one is under way";
    two[0].on_not_sent(1); // it did not leave
    EXPECT_TRUE(two[0].has_ready());
    EXPECT_EQ(two.carry(0), 1u);
    EXPECT_EQ(two.sizes.size(), 2u);
    two.settle();
    EXPECT_EQ(two[0].counters(1).packets_sent, 3u);
    // Behind a gap in what came, only a packet of its own tells of it.
    ASSERT_TRUE(two.send(1, 8));
    ASSERT_TRUE(two.next(1));
    two[1].on_sent(two.series, 1, false, two.now); // and is lost
    ASSERT_TRUE(two.send(1, 8));
    two[1].flush();
    two.carry(1);
    EXPECT_EQ(now_or_never(), 0u);
    two.settle();
    EXPECT_GT(now_or_never(), 0u);
    two[0].on_not_sent(1);
    two.settle();
    two[0].give_up(1);
    EXPECT_EQ(now_or_never(), 0u);
}

TEST(EndpointOut, goodbye_is_said_twice_to_those_that_were_talked_to_and_are_there) {
    EndpointOptions options;
    options.nodes = 4;
    options.token = 0x1234'5678'9ABC'DEF0u; // as forged() has it
    options.incarnation = 1;
    Endpoint end(options);
    for (Node node = 0; node < 4; ++node) end.introduce(node, end.introduction());
    const Instant now = Instant{} + 1h;
    Series series;
    for (const Node node : {1u, 3u})
        end.on_packet(simulation::forged({.source = node, .destination = 0, .transmission = 1}, {}), now);
    end.give_up(3);
    std::vector<Node> told;
    for (const bool more : {true, false}) {
        while (end.next_farewell(series, more)) {
            PacketHeader header;
            std::memcpy(&header, series.packets[0].head, sizeof header);
            EXPECT_NE(header.flags & flag::farewell, 0);
            told.push_back(series.to);
        }
        told.push_back(99);
    }
    EXPECT_EQ(told, (std::vector<Node>{1, 99, 1, 99}));
}

TEST(EndpointOut, two_packets_fit_what_a_peer_grants_at_any_time_or_they_are_the_smallest) {
    for (const std::uint32_t guaranteed :
         {2 * weight_of(512), 2 * weight_of(1000), 2 * weight_of(1000) - 1, 2 * weight_of(1472), 1u << 20}) {
        Endpoint end(EndpointOptions{.nodes = 2});
        end.introduce(0, {.credit_guaranteed = guaranteed});
        end.introduce(1, {.credit_guaranteed = guaranteed, .packet_bytes = 1472});
        const std::uint32_t bytes = end.packet_bytes(1);
        EXPECT_EQ(bytes % 8, 0u);
        EXPECT_LE(2 * weight_of(bytes), guaranteed);
        EXPECT_TRUE(bytes == 1472 || 2 * weight_of(bytes + 8) > guaranteed) << bytes;
        end.set_packet_bytes(1, 65'472, Instant{});
        EXPECT_LE(2 * weight_of(end.packet_bytes(1)), guaranteed);
        end.set_packet_bytes(1, 600, Instant{});
        EXPECT_LE(end.packet_bytes(1), 600u);
    }
}

TEST(EndpointOut, room_that_is_made_and_a_peer_that_goes_are_seen_by_who_was_refused) {
    TwoEnds two;
    std::uint64_t rooms = two[0].rooms_made();
    ASSERT_TRUE(two.send(0, 8));
    EXPECT_EQ(two[0].rooms_made(), rooms);
    two.settle();
    EXPECT_NE(two[0].rooms_made(), rooms);
    rooms = two[0].rooms_made();
    two[0].give_up(1);
    EXPECT_NE(two[0].rooms_made(), rooms);
    EXPECT_EQ(two[0].gone_count(), 1u);
    two[0].give_up(1);
    EXPECT_EQ(two[0].gone_count(), 1u);
}

TEST(EndpointOut, the_last_packet_that_may_leave_asks_for_an_answer_and_those_before_it_do_not) {
    EndpointOptions options;
    options.receive_bytes = 16 << 10; // the peer grants two packets
    TwoEnds two(1472, options);
    ASSERT_TRUE(two.send(0, 20'000));
    ASSERT_TRUE(two.next(0));
    ASSERT_EQ(two.series.count, 2u);
    EXPECT_EQ(two.header(0).flags & flag::ack_now, 0);
    EXPECT_NE(two.header(1).flags & flag::ack_now, 0);
    two[0].on_sent(two.series, 2, true, two.now);
    two.deliver(2);
    EXPECT_EQ(two.carry(1), 1u) << "it is answered at once";
    two.settle();
    EXPECT_EQ(two.sizes, std::vector<std::size_t>{20'000});
}

} // namespace
} // namespace kumi::reliable
