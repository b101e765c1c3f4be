// The sending half alone: what may leave, what an acknowledgement may say, and what is sent again when.

#include "kumi/reliable/credits.hpp"
#include "kumi/reliable/receiver.hpp"
#include "kumi/reliable/sender.hpp"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

namespace kumi::reliable {
namespace {

using namespace std::chrono_literals;

constexpr Instant midnight = Instant{} + 24h;
constexpr std::uint32_t plenty = 1u << 30;

SenderOptions sending(Sequence first = 0) {
    return {.packet_bytes = 1024,
            .window_packets_max = 2048,
            .queue_bytes = 1 << 19,
            .credit_guaranteed = plenty,
            .first_sequence = first,
            .hold_max = 50us};
}

std::vector<std::byte> some_bytes(std::size_t bytes, unsigned which = 0) {
    std::vector<std::byte> content(bytes);
    for (std::size_t i = 0; i < bytes; ++i) content[i] = static_cast<std::byte>(i * 5 + i / 256 + which);
    return content;
}

/// A packet as the peer would see it.
struct SentPacket {
    PacketHeader header;
    std::vector<std::byte> content; // the records
    Sequence transmission;
};

struct OneSender {
    explicit OneSender(const SenderOptions& options = sending())
        : first(options.first_sequence), sender(pool, options, counters), transmission(first + 1) {}

    /// A message in a packet of its own.
    void say(std::size_t bytes = 8, unsigned which = 0) {
        ASSERT_TRUE(sender.try_append(Bytes(some_bytes(bytes, which))));
        sender.close_open_packet();
    }
    /// One series, of which `left` leave at most.
    std::vector<SentPacket> series(Instant now, std::size_t left = Sender::series_max, bool in_burst = false) {
        std::vector<SentPacket> packets;
        alignas(8) Sender::Heads heads;
        sender.forget_prepared();
        PacketHeader header{};
        OutPacket packet;
        while (packets.size() < Sender::series_max &&
               sender.next_packet(packet_bytes_max, now, header, packet, heads)) {
            std::vector<std::byte> all(packet.head, packet.head + packet.head_bytes);
            all.insert(all.end(), packet.body.begin(), packet.body.end());
            EXPECT_EQ(all.size(), header.bytes);
            packets.push_back({header,
                               {all.begin() + sizeof header, all.end()},
                               transmission + static_cast<Sequence>(packets.size())});
        }
        packets.resize(std::min(packets.size(), left));
        if (packets.empty()) return packets;
        sender.on_sent(packets.size(), transmission, in_burst, now);
        transmission += static_cast<Sequence>(packets.size());
        return packets;
    }
    /// All that may leave.
    std::vector<SentPacket> all(Instant now = midnight) {
        std::vector<SentPacket> packets;
        for (auto more = series(now); !more.empty(); more = series(now))
            packets.insert(packets.end(), more.begin(), more.end());
        return packets;
    }
    struct News {
        Sequence expected;
        Sequence latest;
        std::vector<std::uint64_t> words{};
        std::uint32_t credit = 0; // beyond the first
        std::uint32_t held_us = 0;
    };
    /// Sequences and transmissions are told from the first on.
    bool hear(const News& news, Instant now = midnight) {
        PacketHeader header{};
        header.expected = first + news.expected;
        header.latest = first + news.latest;
        header.credit = first + news.credit;
        header.held_us = news.held_us;
        const Bytes words(reinterpret_cast<const std::byte*>(news.words.data()), news.words.size() * 8);
        return sender.on_ack(header, words, transmission, now);
    }
    std::vector<Sequence> sequences(const std::vector<SentPacket>& packets) const {
        std::vector<Sequence> all;
        for (const SentPacket& packet : packets) all.push_back(packet.header.sequence - first);
        return all;
    }

    Sequence first;
    BlockPool pool{1 << 20};
    PeerCounters counters;
    Sender sender;
    Sequence transmission; // the next
};

using Sequences = std::vector<Sequence>;

// ---- what an acknowledgement may say

TEST(Sender, an_acknowledgement_of_one_more_than_was_sent_is_refused_and_changes_nothing) {
    for (const Sequence first : {0u, 0xFFFF'FFFEu}) {
        OneSender one(sending(first));
        for (int i = 0; i < 4; ++i) one.say();
        ASSERT_EQ(one.series(midnight, 3).size(), 3u); // the fourth is cut, and has not left
        const std::size_t waiting = one.sender.queue_bytes();
        for (const Sequence beyond : {4u, 5u, 1000u, 0x7000'0000u}) {
            ASSERT_FALSE(one.hear({.expected = beyond, .latest = 0, .credit = plenty + 1})) << beyond;
            ASSERT_FALSE(one.hear({.expected = beyond, .latest = 3})) << beyond;
            EXPECT_EQ(one.sender.queue_bytes(), waiting);
            EXPECT_TRUE(one.sender.waits_for_peer());
        }
        EXPECT_TRUE(one.hear({.expected = 3, .latest = 3}));
        EXPECT_LT(one.sender.queue_bytes(), waiting);
        EXPECT_EQ(one.sequences(one.all()), Sequences{3});
        EXPECT_TRUE(one.hear({.expected = 4, .latest = 4}));
        EXPECT_TRUE(one.sender.idle());
        EXPECT_EQ(one.pool.bytes_used(), 0u);
    }
}

TEST(Sender, before_anything_was_sent_nothing_can_be_acknowledged) {
    OneSender one;
    ASSERT_FALSE(one.hear({.expected = 1, .latest = 0}));
    one.say();
    PacketHeader header{};
    OutPacket packet;
    Sender::Heads heads;
    ASSERT_TRUE(one.sender.next_packet(packet_bytes_max, midnight, header, packet, heads)); // and never left
    ASSERT_FALSE(one.hear({.expected = 1, .latest = 0}));
    EXPECT_FALSE(one.sender.idle());
}

TEST(Sender, a_transmission_that_was_never_made_cannot_have_arrived) {
    for (const Sequence first : {0u, 0xFFFF'FFFEu}) {
        OneSender one(sending(first));
        for (int i = 0; i < 3; ++i) one.say();
        one.all(); // transmissions 1 to 3
        EXPECT_FALSE(one.hear({.expected = 1, .latest = 4}));
        EXPECT_FALSE(one.hear({.expected = 1, .latest = 1000}));
        EXPECT_FALSE(one.sender.has_repairs()) << "nothing was overtaken by what never left";
        EXPECT_TRUE(one.hear({.expected = 1, .latest = 3}));
        EXPECT_TRUE(one.sender.has_repairs()) << "the second left before the third, and is missing";
    }
}

TEST(Sender, words_may_name_the_last_packet_that_was_sent_and_not_the_next) {
    for (const Sequence first : {0u, 0xFFFF'FFFEu})
        for (const Sequence sent : {5u, 65u, 66u, 130u}) {
            OneSender one(sending(first));
            for (Sequence i = 0; i <= sent; ++i) one.say();
            for (Sequence left = sent; left > 0; left -= std::min(left, 64u))
                one.series(midnight, left); // the last does not leave
            ASSERT_EQ(one.transmission - first, sent + 1);
            // Bit 0 stands for sequence 1.
            std::vector<std::uint64_t> last(3), beyond(3);
            last[(sent - 2) / 64] = std::uint64_t{1} << ((sent - 2) % 64);
            beyond[(sent - 1) / 64] = std::uint64_t{1} << ((sent - 1) % 64);
            EXPECT_FALSE(one.hear({.expected = 0, .latest = 1, .words = beyond})) << sent;
            EXPECT_TRUE(one.hear({.expected = 0, .latest = sent, .words = last})) << sent;
            EXPECT_EQ(one.series(midnight).size(), std::min<std::size_t>(sent - 1, 64)) << "all others are lost";
        }
}

TEST(Sender, an_old_acknowledgement_that_comes_late_takes_nothing_back) {
    OneSender one;
    for (int i = 0; i < 6; ++i) one.say();
    one.all();
    EXPECT_TRUE(one.hear({.expected = 4, .latest = 4, .credit = plenty + 5000}));
    const std::size_t waiting = one.sender.queue_bytes();
    EXPECT_TRUE(
        one.hear({.expected = 0, .latest = 2, .words = {0b111}, .credit = 1000})); // 1, 2 and 3 have arrived, it says
    EXPECT_EQ(one.sender.queue_bytes(), waiting);
    EXPECT_FALSE(one.sender.has_repairs());
    EXPECT_TRUE(one.hear({.expected = 6, .latest = 6}));
    EXPECT_TRUE(one.sender.idle());
    EXPECT_EQ(one.pool.bytes_used(), 0u);
}

TEST(Sender, what_arrived_behind_a_gap_is_given_back_when_the_gap_is_closed) {
    OneSender one;
    for (int i = 0; i < 4; ++i) one.say();
    one.all();
    const std::size_t block = one.sender.queue_bytes() / 4;
    EXPECT_TRUE(one.hear({.expected = 0, .latest = 4, .words = {0b111}}));
    EXPECT_EQ(one.sender.queue_bytes(), 4 * block);
    EXPECT_EQ(one.sequences(one.all()), Sequences{0});
    EXPECT_TRUE(one.hear({.expected = 4, .latest = 5}));
    EXPECT_TRUE(one.sender.idle());
    EXPECT_EQ(one.pool.bytes_used(), 0u);
}

// ---- credit

TEST(Sender, packets_leave_up_to_the_credit_and_not_a_byte_beyond) {
    for (const Sequence first : {0u, 0xFFFF'FF00u}) {
        const std::uint32_t weight = weight_of(sizeof(PacketHeader) + 16); // of a message of 8 bytes
        SenderOptions options = sending(first);
        options.credit_guaranteed = 2 * weight;
        OneSender one(options);
        for (int i = 0; i < 6; ++i) one.say();
        EXPECT_EQ(one.all().size(), 2u);
        EXPECT_TRUE(one.hear({.expected = 1, .latest = 1, .credit = 3 * weight - 1}));
        EXPECT_EQ(one.all().size(), 0u);
        EXPECT_TRUE(one.hear({.expected = 1, .latest = 1, .credit = 3 * weight}));
        EXPECT_EQ(one.all().size(), 1u);
        EXPECT_TRUE(one.hear({.expected = 2, .latest = 2, .credit = weight})) << "an old one";
        EXPECT_TRUE(one.hear({.expected = 3, .latest = 3, .credit = 5 * weight + 1}));
        EXPECT_EQ(one.all().size(), 2u);
    }
}

TEST(Sender, a_packet_alone_needs_credit_too) {
    const std::uint32_t bytes = sizeof(PacketHeader) + 16;
    SenderOptions options = sending();
    options.credit_guaranteed = 3 * weight_of(bytes) - 1;
    OneSender one(options);
    one.say();
    one.all();
    ASSERT_TRUE(one.hear({.expected = 1, .latest = 1}));
    EXPECT_NE(one.sender.send_alone(bytes, one.transmission++, midnight), nullptr);
    ASSERT_TRUE(one.hear({.expected = 2, .latest = 2}));
    EXPECT_EQ(one.sender.send_alone(bytes, one.transmission, midnight), nullptr);
    ASSERT_TRUE(one.hear({.expected = 2, .latest = 2, .credit = 3 * weight_of(bytes)}));
    EXPECT_NE(one.sender.send_alone(bytes, one.transmission++, midnight), nullptr);
    ASSERT_TRUE(one.hear({.expected = 3, .latest = 3}));
}

TEST(Sender, a_sender_that_was_quiet_for_20_ms_has_only_its_own_part_left) {
    const std::uint32_t weight = weight_of(sizeof(PacketHeader) + 16);
    for (const bool is_quiet : {false, true}) {
        SenderOptions options = sending();
        options.credit_guaranteed = 2 * weight;
        OneSender one(options);
        one.say();
        one.all();
        ASSERT_TRUE(one.hear({.expected = 1, .latest = 1, .credit = 20 * weight}));
        for (int i = 0; i < 10; ++i) one.say();
        const Instant later = midnight + CreditPool::quiet_sender + (is_quiet ? Duration{1} : Duration{0});
        EXPECT_EQ(one.all(later).size(), is_quiet ? 2u : 10u);
    }
}

TEST(Sender, one_that_has_something_under_way_is_not_quiet) {
    const std::uint32_t weight = weight_of(sizeof(PacketHeader) + 16);
    SenderOptions options = sending();
    options.credit_guaranteed = 2 * weight;
    OneSender one(options);
    one.say();
    one.say();
    one.all();
    ASSERT_TRUE(one.hear({.expected = 1, .latest = 1, .credit = 20 * weight}));
    for (int i = 0; i < 10; ++i) one.say();
    EXPECT_EQ(one.all(midnight + 30ms).size(), 10u);
}

TEST(Sender, one_without_credit_asks_for_it_again_and_again_and_stops_when_it_has_some) {
    const std::uint32_t weight = weight_of(sizeof(PacketHeader) + 16);
    SenderOptions options = sending();
    options.credit_guaranteed = weight;
    OneSender one(options);
    one.say();
    one.all();
    ASSERT_TRUE(one.hear({.expected = 1, .latest = 1}));
    one.say();
    EXPECT_EQ(one.all().size(), 0u);
    const Instant asks = one.sender.deadline(midnight);
    EXPECT_EQ(asks, midnight + 20ms);
    EXPECT_FALSE(one.sender.on_time(asks - 1ns));
    EXPECT_TRUE(one.sender.on_time(asks));
    EXPECT_EQ(one.sender.deadline(asks), asks + 40ms);
    EXPECT_TRUE(one.sender.on_time(asks + 40ms));
    EXPECT_EQ(one.sender.timeouts_in_a_row(), 2u);
    ASSERT_TRUE(one.hear({.expected = 1, .latest = 1, .credit = 2 * weight}, asks + 50ms));
    EXPECT_EQ(one.sender.deadline(asks + 50ms), never);
    EXPECT_EQ(one.sender.timeouts_in_a_row(), 0u);
    EXPECT_EQ(one.all(asks + 50ms).size(), 1u);
}

// ---- windows

TEST(Sender, no_more_leaves_than_the_congestion_window_has) {
    OneSender one;
    ASSERT_TRUE(one.sender.try_append_long(Bytes(some_bytes(400'000)))); // packets of 1024 bytes
    EXPECT_EQ(one.all().size(), Congestion::window_bytes_start / 1024);
    EXPECT_TRUE(one.hear({.expected = 1, .latest = 1}));
    EXPECT_EQ(one.all().size(), 1u);
    EXPECT_TRUE(one.hear({.expected = 11, .latest = 11}));
    EXPECT_EQ(one.all().size(), 10u);
}

TEST(Sender, a_packet_larger_than_the_window_leaves_alone) {
    SenderOptions options = sending();
    options.packet_bytes = 65'472;
    OneSender one(options);
    ASSERT_TRUE(one.sender.try_append_long(Bytes(some_bytes(200'000))));
    ASSERT_EQ(one.series(midnight, 1).size(), 1u);
    Instant now = midnight;
    for (int i = 0; i < 10; ++i) { // silence makes the window as small as it gets
        now = one.sender.deadline(now);
        one.sender.on_time(now);
    }
    ASSERT_EQ(one.sender.congestion().window_bytes(), Congestion::window_bytes_min);
    ASSERT_EQ(one.sequences(one.series(now)), Sequences{0}); // a repair
    now += 1s;
    EXPECT_TRUE(one.series(now).empty()) << "while the first is under way";
    ASSERT_TRUE(one.hear({.expected = 1, .latest = 2}, now));
    EXPECT_EQ(one.sequences(one.series(now)), Sequences{1});
    EXPECT_TRUE(one.series(now + 1s).empty());
}

TEST(Sender, no_more_packets_are_under_way_than_the_peer_has_places_for) {
    for (const Sequence first : {0u, 0xFFFF'FFFCu}) {
        SenderOptions options = sending(first);
        options.window_packets_max = 8;
        OneSender one(options);
        for (int i = 0; i < 12; ++i) one.say();
        EXPECT_EQ(one.sequences(one.all()), (Sequences{0, 1, 2, 3, 4, 5, 6, 7}));
        // What has arrived behind a gap still has its place.
        EXPECT_TRUE(one.hear({.expected = 0, .latest = 8, .words = {0b111'1111}}));
        EXPECT_EQ(one.sequences(one.all()), Sequences{0});
        EXPECT_TRUE(one.hear({.expected = 1, .latest = 9}));
        EXPECT_EQ(one.sequences(one.all()), (Sequences{8, 9, 10, 11}));
    }
}

TEST(Sender, packets_are_the_same_when_they_are_sent_again_however_many_there_are) {
    for (const Sequence first : {0u, 0xFFFF'FFC0u}) {
        OneSender one(sending(first));
        for (unsigned i = 0; i < 300; ++i) one.say(8 + i % 50, i); // the table of packets grows meanwhile
        const auto sent = one.all();
        ASSERT_EQ(sent.size(), 300u);
        // Only the last has arrived.
        std::vector<std::uint64_t> words(5);
        words[298 / 64] = std::uint64_t{1} << (298 % 64);
        EXPECT_TRUE(one.hear({.expected = 0, .latest = 300, .words = words}));
        const auto again = one.all();
        ASSERT_EQ(again.size(), 299u);
        for (std::size_t i = 0; i < again.size(); ++i) {
            ASSERT_EQ(again[i].header.sequence, sent[i].header.sequence);
            ASSERT_EQ(again[i].content, sent[i].content) << i;
            ASSERT_NE(again[i].header.flags & flag::retransmission, 0);
            ASSERT_EQ(sent[i].header.flags & flag::retransmission, 0);
        }
        EXPECT_EQ(one.counters.repairs_sent, 299u);
    }
}

TEST(Sender, after_losses_and_repairs_a_whole_window_may_leave_again) {
    OneSender one;
    Instant now = midnight;
    Sequence done = 0, sent = 0;
    for (int round = 0; round < 50; ++round) {
        now += 1ms;
        for (int i = 0; i < 20; ++i) one.say();
        sent += static_cast<Sequence>(one.all(now).size());
        const Sequence before = one.transmission - 1;
        // The first is lost; the second comes late, after it was taken for lost.
        EXPECT_TRUE(one.hear({.expected = done, .latest = before, .words = {0x7FFFE}}, now));
        EXPECT_TRUE(one.hear({.expected = done, .latest = before, .words = {0x7FFFF}}, now));
        one.sender.on_time(now += 10ms);
        one.all(now);
        EXPECT_TRUE(one.hear({.expected = done += 20, .latest = one.transmission - 1}, now));
        ASSERT_TRUE(one.sender.idle());
    }
    ASSERT_EQ(sent, done);
    const std::uint32_t window = one.sender.congestion().window_bytes();
    ASSERT_TRUE(one.sender.try_append_long(Bytes(some_bytes(window + 20'000))));
    EXPECT_EQ(one.all(now + 1s).size(), window / 1024);
}

// ---- what is lost

TEST(Sender, what_left_before_the_latest_that_arrived_is_lost_and_what_left_after_it_is_not) {
    OneSender one;
    for (int i = 0; i < 6; ++i) one.say();
    one.all();
    EXPECT_TRUE(one.hear({.expected = 1, .latest = 4, .words = {0b10}})); // 0 and 3 have arrived
    EXPECT_EQ(one.sequences(one.all()), (Sequences{1, 2})) << "4 and 5 may still come";
    EXPECT_TRUE(one.hear({.expected = 1, .latest = 5, .words = {0b110}}));
    EXPECT_TRUE(one.all().empty()) << "the repairs left later than that";
    EXPECT_TRUE(one.hear({.expected = 1, .latest = 8, .words = {0b111}})); // 2's repair, not 1's
    EXPECT_EQ(one.sequences(one.all()), (Sequences{1, 5}));
}

TEST(Sender, repairs_leave_before_new_packets_and_in_a_series_of_their_own) {
    OneSender one;
    for (int i = 0; i < 3; ++i) one.say();
    one.all();
    for (int i = 0; i < 2; ++i) one.say();
    EXPECT_TRUE(one.hear({.expected = 0, .latest = 3, .words = {0b10}}));
    EXPECT_TRUE(one.sender.has_repairs());
    EXPECT_EQ(one.sequences(one.series(midnight, 1)), Sequences{0}) << "one of two leaves";
    EXPECT_EQ(one.sequences(one.series(midnight)), Sequences{1});
    EXPECT_FALSE(one.sender.has_repairs());
    EXPECT_EQ(one.sequences(one.series(midnight)), (Sequences{3, 4}));
}

TEST(Sender, of_a_series_that_left_in_part_the_rest_is_offered_again) {
    OneSender one;
    for (int i = 0; i < 5; ++i) one.say();
    EXPECT_EQ(one.sequences(one.series(midnight, 2)), (Sequences{0, 1}));
    EXPECT_EQ(one.sequences(one.series(midnight)), (Sequences{2, 3, 4}));
    EXPECT_TRUE(one.hear({.expected = 5, .latest = 5}));
    EXPECT_TRUE(one.sender.idle());
}

TEST(Sender, a_series_has_64_packets_at_most) {
    OneSender one;
    for (int i = 0; i < 100; ++i) one.say();
    PacketHeader header{};
    OutPacket packet;
    Sender::Heads heads;
    for (std::size_t i = 0; i < Sender::series_max; ++i)
        ASSERT_TRUE(one.sender.next_packet(packet_bytes_max, midnight, header, packet, heads));
    EXPECT_FALSE(one.sender.next_packet(packet_bytes_max, midnight, header, packet, heads));
    EXPECT_TRUE(one.sender.has_more_after_prepared());
}

TEST(Sender, only_packets_with_room_for_them_are_given) {
    OneSender one;
    one.say(100);
    PacketHeader header{};
    OutPacket packet;
    Sender::Heads heads;
    const std::size_t bytes = sizeof header + record_bytes(100);
    EXPECT_FALSE(one.sender.next_packet(bytes - 1, midnight, header, packet, heads));
    EXPECT_TRUE(one.sender.next_packet(bytes, midnight, header, packet, heads));
}

TEST(Sender, once_packets_overtook_each_other_it_waits_before_it_repairs) {
    OneSender one;
    for (int i = 0; i < 3; ++i) one.say();
    one.all();
    EXPECT_TRUE(
        one.hear({.expected = 0, .latest = 2, .words = {0b1}}, midnight + 1ms)); // a round trip of a millisecond
    EXPECT_TRUE(one.sender.has_repairs());
    EXPECT_TRUE(one.hear({.expected = 3, .latest = 3}, midnight + 1ms)); // it was only late
    EXPECT_FALSE(one.sender.has_repairs());
    EXPECT_TRUE(one.sender.idle());
    EXPECT_EQ(one.counters.repairs_sent, 0u);

    for (int i = 0; i < 10; ++i) one.say();
    const Instant then = midnight + 10ms;
    one.all(then); // sequences 3 to 12, transmissions 4 to 13
    EXPECT_TRUE(one.hear({.expected = 3, .latest = 5, .words = {0b1}, .held_us = 0}, then + 1ms));
    EXPECT_FALSE(one.sender.has_repairs());
    const Instant suspected = one.sender.deadline(then + 1ms);
    EXPECT_EQ(suspected, then + 1ms + one.sender.round_trip().smooth() / 2);
    one.sender.on_time(suspected - 1ns);
    EXPECT_FALSE(one.sender.has_repairs());
    one.sender.on_time(suspected);
    EXPECT_TRUE(one.sender.has_repairs());
    EXPECT_EQ(one.sequences(one.all(suspected)), Sequences{3});
}

TEST(Sender, by_how_many_packets_overtake_is_learnt_and_no_more_is_waited_for) {
    OneSender one;
    for (int i = 0; i < 3; ++i) one.say();
    one.all();
    EXPECT_TRUE(one.hear({.expected = 0, .latest = 2, .words = {0b1}}));
    EXPECT_TRUE(one.hear({.expected = 3, .latest = 3})); // overtaken once: by 4 is borne with
    for (int i = 0; i < 10; ++i) one.say();
    one.all(); // sequences 3 to 12, transmissions 4 to 13
    EXPECT_TRUE(one.hear({.expected = 3, .latest = 8, .words = {0b1111}}));
    EXPECT_FALSE(one.sender.has_repairs()) << "by 4";
    EXPECT_TRUE(one.hear({.expected = 3, .latest = 9, .words = {0b1'1111}}));
    EXPECT_TRUE(one.sender.has_repairs()) << "by 5";
}

TEST(Sender, a_repair_that_was_needless_is_counted_and_makes_it_wait_longer) {
    OneSender one;
    for (int i = 0; i < 3; ++i) one.say();
    one.all();
    EXPECT_TRUE(one.hear({.expected = 0, .latest = 2, .words = {0b1}}));
    EXPECT_EQ(one.sequences(one.all()), Sequences{0}); // transmission 4
    EXPECT_TRUE(one.hear({.expected = 3, .latest = 3})); // the first came after all, before the repair
    EXPECT_EQ(one.counters.repairs_needless, 1u);
    for (int i = 0; i < 3; ++i) one.say();
    one.all();
    EXPECT_TRUE(one.hear({.expected = 3, .latest = 6, .words = {0b1}}));
    EXPECT_FALSE(one.sender.has_repairs());
}

// ---- time

TEST(Sender, without_an_answer_the_first_packet_is_sent_again_after_a_timeout_that_doubles) {
    OneSender one;
    for (int i = 0; i < 3; ++i) one.say();
    one.all();
    Instant due = midnight + 20ms; // as long as no round trip is known
    Duration wait = 20ms;
    for (unsigned i = 1; i <= 8; ++i) {
        EXPECT_EQ(one.sender.deadline(midnight), due);
        EXPECT_FALSE(one.sender.on_time(due - 1ns));
        EXPECT_FALSE(one.sender.has_repairs());
        EXPECT_FALSE(one.sender.on_time(due));
        const auto repairs = one.series(due);
        ASSERT_EQ(one.sequences(repairs), Sequences{0});
        EXPECT_NE(repairs[0].header.flags & flag::ack_now, 0) << "the peer is to answer at once";
        EXPECT_EQ(one.sender.timeouts_in_a_row(), i);
        EXPECT_EQ(one.counters.timeouts, i);
        wait = std::min<Duration>(wait * 2, 250ms);
        due += wait;
    }
    EXPECT_TRUE(one.hear({.expected = 1, .latest = 1}, due));
    EXPECT_EQ(one.sender.timeouts_in_a_row(), 0u);
    EXPECT_EQ(one.sender.deadline(due), due + one.sender.round_trip().timeout(0))
        << "the others have their whole time again";
    EXPECT_TRUE(one.hear({.expected = 3, .latest = 3}, due));
    EXPECT_EQ(one.sender.deadline(due), never);
}

TEST(Sender, packets_that_follow_do_not_put_the_timeout_off) {
    OneSender one;
    one.say();
    one.all();
    for (int i = 1; i < 10; ++i) {
        one.say();
        one.all(midnight + i * 1ms);
    }
    EXPECT_EQ(one.sender.deadline(midnight), midnight + 20ms);
}

TEST(Sender, the_third_timeout_in_silence_halves_the_window_and_an_answer_starts_the_count_anew) {
    OneSender one;
    for (int i = 0; i < 3; ++i) one.say();
    one.all();
    Instant now = midnight;
    const auto time_out = [&] {
        now = one.sender.deadline(now);
        one.sender.on_time(now);
        one.all(now);
    };
    time_out(), time_out();
    EXPECT_EQ(one.sender.congestion().window_bytes(), Congestion::window_bytes_start);
    EXPECT_TRUE(
        one.hear({.expected = 0, .latest = one.transmission - 1}, now)); // something arrived, though nothing new
    time_out(), time_out();
    EXPECT_EQ(one.sender.congestion().window_bytes(), Congestion::window_bytes_start);
    time_out();
    EXPECT_EQ(one.sender.congestion().window_bytes(), Congestion::window_bytes_start / 2);
}

TEST(Sender, the_round_trip_is_measured_by_the_latest_transmission_without_the_time_that_it_was_held) {
    OneSender one;
    one.say();
    one.say();
    one.series(midnight, 1);
    one.series(midnight + 3ms);
    EXPECT_TRUE(one.hear({.expected = 2, .latest = 2, .held_us = 500}, midnight + 5ms));
    EXPECT_EQ(one.sender.round_trip().smooth(), 1500us) << "by the second, which was held for half a millisecond";
    one.say();
    one.series(midnight + 10ms);
    EXPECT_TRUE(one.hear({.expected = 3, .latest = 3, .held_us = 2000}, midnight + 11ms));
    EXPECT_EQ(one.sender.round_trip().smooth(), 1500us)
        << "a peer that held it longer than it was under way is not believed";
}

// ---- messages in

TEST(Sender, a_message_leaves_at_once_when_nothing_is_under_way_or_nothing_has_left_for_50_us) {
    OneSender one;
    ASSERT_TRUE(one.sender.try_append(Bytes(some_bytes(8))));
    EXPECT_TRUE(one.sender.is_urgent(midnight)) << "nothing is under way";
    one.sender.close_open_packet();
    EXPECT_FALSE(one.sender.is_urgent(midnight)) << "it is about to leave, with whatever comes";
    one.all();
    EXPECT_FALSE(one.sender.is_urgent(midnight + 50us));
    EXPECT_TRUE(one.sender.is_urgent(midnight + 50us + 1ns));
    EXPECT_TRUE(one.hear({.expected = 1, .latest = 1}));
    EXPECT_TRUE(one.sender.is_urgent(midnight));
}

TEST(Sender, small_messages_share_a_packet_until_it_is_exactly_full) {
    OneSender one;
    const std::size_t room = 1024 - sizeof(PacketHeader);
    ASSERT_TRUE(one.sender.try_append(Bytes(some_bytes(100)))); // a record of 112 bytes
    ASSERT_TRUE(one.sender.try_append(Bytes(some_bytes(room - 112 - sizeof(RecordHeader)))));
    EXPECT_FALSE(one.sender.has_closed());
    ASSERT_TRUE(one.sender.try_append(Bytes(some_bytes(0)))) << "even an empty one needs another packet";
    EXPECT_TRUE(one.sender.has_closed());
    one.sender.close_open_packet();
    const auto packets = one.all();
    ASSERT_EQ(packets.size(), 2u);
    EXPECT_EQ(packets[0].header.bytes, 1024u);
    EXPECT_EQ(packets[1].header.bytes, sizeof(PacketHeader) + sizeof(RecordHeader));
}

TEST(Sender, the_largest_small_message_fills_a_packet_and_none_is_larger_than_8_kib) {
    for (const std::uint32_t packet_bytes : {512u, 1024u, 8192u, 8200u, 65'472u}) {
        SenderOptions options = sending();
        options.packet_bytes = packet_bytes;
        OneSender one(options);
        one.say(one.sender.append_bytes_max());
        const auto packets = one.all();
        ASSERT_EQ(packets.size(), 1u);
        EXPECT_EQ(packets[0].header.bytes, std::min(packet_bytes, 8192u));
    }
}

TEST(Sender, pieces_of_long_messages_lie_where_their_headers_say_and_nothing_old_leaves_with_them) {
    for (const bool is_copied : {true, false})
        for (const std::size_t bytes : {960u, 961u, 967u, 968u, 1920u, 1921u, 2883u}) {
            OneSender one;
            for (const std::size_t size : {1024u, 2048u, 4096u}) { // memory that others have written to
                Block* const used = one.pool.take(size);
                std::memset(used->data(), 0xFF, used->capacity());
                one.pool.give_back(used);
            }
            const auto message = some_bytes(bytes, 9);
            if (is_copied) {
                ASSERT_TRUE(one.sender.try_append_long({Bytes(message).first(70), Bytes(message).subspan(70)}));
            } else {
                std::byte* const room = one.sender.try_reserve(bytes + 20);
                ASSERT_NE(room, nullptr);
                std::memset(room, 0xFF, bytes + 20);
                std::memcpy(room, message.data(), bytes);
                one.sender.commit(bytes);
            }
            one.sender.close_open_packet();
            const auto packets = one.all();
            std::vector<std::byte> got(bytes);
            std::size_t at = 0;
            for (const SentPacket& packet : packets) {
                RecordHeader record;
                ASSERT_TRUE(read_value(packet.content, record));
                const auto content = Bytes(packet.content).subspan(sizeof record);
                if (record.offset == whole_message) record.offset = 0;
                EXPECT_EQ(record.bytes, bytes);
                ASSERT_EQ(record.offset, at);
                ASSERT_LE(packet.header.bytes, 1024u);
                const std::size_t piece = std::min(content.size(), bytes - at);
                ASSERT_EQ(padded(piece), content.size());
                std::memcpy(got.data() + at, content.data(), piece);
                for (std::size_t i = piece; i < content.size(); ++i)
                    EXPECT_EQ(content[i], std::byte{0}) << "of " << bytes << " bytes";
                at += piece;
            }
            EXPECT_EQ(got, message) << bytes;
            EXPECT_EQ(packets.size(), (bytes + 959) / 960);
        }
}

// ---- starts

using Messages = std::vector<std::vector<std::byte>>;

/// A message that is filled in place, and where it lies.
std::byte* fill(OneSender& one, const std::vector<std::byte>& message) {
    std::byte* const room = one.sender.try_reserve(message.size());
    if (room != nullptr) {
        std::memcpy(room, message.data(), message.size());
        one.sender.commit(message.size());
    }
    return room;
}

/// What a receiver makes of the packets.
Messages received(const std::vector<SentPacket>& packets) {
    BlockPool pool{0};
    PeerCounters counters;
    Receiver receiver(pool, {.window_packets_max = 2048, .message_bytes_max = 1 << 20, .held_bytes_max = 1 << 20},
                      counters);
    Messages messages;
    for (const SentPacket& packet : packets) {
        EXPECT_EQ(receiver.on_data(packet.header, packet.content, midnight), Receiver::Verdict::next);
        Bytes records = packet.content;
        for (Arrival arrival; receiver.next_message(records, arrival);) {
            messages.emplace_back(arrival.bytes.begin(), arrival.bytes.end());
            if (arrival.block == nullptr) continue;
            receiver.on_released(*arrival.block);
            pool.give_back(arrival.block);
        }
    }
    return messages;
}

bool is_starts(const SentPacket& packet) {
    RecordHeader record;
    return read_value(packet.content, record) && record.offset != whole_message && record.offset % 8 == starts_mark;
}

/// Packets of 1,472 bytes, which hold 21 starts.
SenderOptions usual_packets() {
    SenderOptions options = sending();
    options.packet_bytes = 1472;
    return options;
}

/// The largest series in which packets lie one behind the other in memory.
std::size_t longest_run(Sender& sender) {
    alignas(8) Sender::Heads heads;
    PacketHeader header{};
    OutPacket packet;
    const std::byte* end = nullptr;
    std::size_t longest = 0, run = 0;
    for (std::size_t i = 0; i < Sender::series_max; ++i) {
        if (!sender.next_packet(packet_bytes_max, midnight, header, packet, heads)) break;
        run = packet.body.empty() && packet.head == end ? run + 1 : 1;
        longest = std::max(longest, run);
        end = packet.head + packet.head_bytes;
    }
    sender.forget_prepared();
    return longest;
}

TEST(Sender, pieces_of_a_message_that_was_filled_in_place_leave_as_one_piece_of_memory) {
    OneSender one(usual_packets());
    const auto message = some_bytes(65 * 1472, 3);
    std::byte* const room = fill(one, message);
    ASSERT_NE(room, nullptr);
    EXPECT_EQ(longest_run(one.sender), 21u);
    EXPECT_EQ(std::memcmp(room, message.data(), message.size()), 0) << "a series that does not leave changes nothing";
    const auto packets = one.all();
    EXPECT_EQ(std::memcmp(room, message.data(), message.size()), 0) << "what was lent is put back";
    EXPECT_EQ(received(packets), Messages{message});
    std::vector<std::size_t> starts;
    for (std::size_t i = 0; i < packets.size(); ++i) {
        if (is_starts(packets[i])) starts.push_back(i);
        EXPECT_EQ(packets[i].header.bytes, i + 1 < packets.size() ? 1472u : packets[i].header.bytes);
    }
    EXPECT_EQ(starts, (std::vector<std::size_t>{0, 22, 44}));
    EXPECT_TRUE(one.hear({.expected = static_cast<Sequence>(packets.size()),
                          .latest = static_cast<Sequence>(packets.size())}));
    EXPECT_TRUE(one.sender.idle());
    EXPECT_EQ(one.pool.bytes_used(), 0u);
    EXPECT_EQ(one.sender.queue_bytes(), 0u);
}

TEST(Sender, behind_starts_nothing_old_leaves) {
    OneSender one(usual_packets());
    Block* const used = one.pool.take(1472); // memory that others have written to
    std::memset(used->data(), 0xFF, used->capacity());
    one.pool.give_back(used);
    fill(one, some_bytes(16 * 1472));
    const auto packets = one.all();
    ASSERT_TRUE(is_starts(packets[0]));
    constexpr std::size_t heads = sizeof(RecordHeader) + sizeof(StartsHeader);
    const Bytes rest = Bytes(packets[0].content).subspan(heads + 16 * std::size_t{start_bytes});
    ASSERT_EQ(packets[0].content.size(), 1472 - sizeof(PacketHeader));
    EXPECT_TRUE(std::ranges::all_of(rest, [](std::byte left) { return left == std::byte{0}; }));
}

TEST(Sender, packets_of_starts_are_checked_whole_and_those_of_pieces_are_not) {
    for (const bool in_fragments : {false, true}) {
        OneSender one(usual_packets());
        fill(one, some_bytes(20 * 1472));
        Sender::Heads heads;
        PacketHeader header{};
        OutPacket packet;
        ASSERT_TRUE(one.sender.next_packet(packet_bytes_max, midnight, header, packet, heads)); // now it is cut
        one.sender.forget_prepared();
        if (in_fragments) one.sender.set_packet_bytes(512);
        for (std::size_t i = 0; i < (in_fragments ? 4u : 1u); ++i) {
            ASSERT_TRUE(one.sender.next_packet(packet_bytes_max, midnight, header, packet, heads));
            EXPECT_FALSE(packet.is_piece) << "they say where pieces lie";
        }
        if (in_fragments) continue;
        ASSERT_TRUE(one.sender.next_packet(packet_bytes_max, midnight, header, packet, heads));
        EXPECT_TRUE(packet.is_piece);
    }
}

TEST(Sender, messages_of_all_sizes_that_were_filled_in_place_arrive_as_they_were) {
    for (const std::uint32_t packet_bytes : {1152u, 1160u, 1472u, 2048u, 2056u})
        for (std::size_t packets = 15; packets < 50; packets += 5)
            for (const int more : {-65, -64, -63, -8, -1, 0, 1, 8, 63, 64, 65}) {
                SenderOptions options = sending();
                options.packet_bytes = packet_bytes;
                OneSender one(options);
                const auto message = some_bytes(packets * packet_bytes + static_cast<std::size_t>(more), 4);
                std::byte* const room = fill(one, message);
                ASSERT_NE(room, nullptr);
                const auto sent = one.all();
                ASSERT_EQ(received(sent), Messages{message}) << packet_bytes << ' ' << message.size();
                ASSERT_EQ(std::memcmp(room, message.data(), message.size()), 0);
                const bool has_starts =
                    packet_bytes >= 1160 && packet_bytes <= 2048 && message.size() >= std::size_t{16} * packet_bytes;
                ASSERT_EQ(is_starts(sent[0]), has_starts) << packet_bytes << ' ' << message.size();
            }
}

// ---- pieces that leave together, whose limits are looked at once

/// Fills a message of `packets` packets in place, or copies it.
void give(OneSender& one, const std::vector<std::byte>& message, bool in_place) {
    if (in_place) ASSERT_NE(fill(one, message), nullptr);
    else ASSERT_TRUE(one.sender.try_append_long(Bytes(message)));
}

TEST(Sender, as_many_pieces_leave_as_each_limit_allows_and_not_one_more) {
    constexpr std::uint32_t weight = weight_of(1472);
    const auto message = some_bytes(150 * 1400, 6);
    for (const bool in_place : {false, true}) {
        for (std::uint32_t count = 1; count < 100; ++count)
            for (const std::uint32_t more : {0u, 1u, weight - 1}) {
                SenderOptions options = usual_packets();
                options.credit_guaranteed = count * weight + more;
                OneSender one(options);
                give(one, message, in_place);
                ASSERT_EQ(one.all().size(), count) << "of credit";
                ASSERT_TRUE(one.hear({.expected = count, .latest = count, .credit = count * weight + weight}));
                ASSERT_EQ(one.all().size(), 1u);
            }
        for (const std::uint32_t places : {2u, 8u, 64u, 128u}) {
            SenderOptions options = usual_packets();
            options.window_packets_max = places;
            OneSender one(options);
            give(one, message, in_place);
            EXPECT_EQ(one.all().size(), places);
            ASSERT_TRUE(one.hear({.expected = 2, .latest = 2}));
            EXPECT_EQ(one.all().size(), 2u);
        }
        for (std::uint32_t others = 1; others < 60; ++others) { // in the congestion window
            OneSender one(usual_packets());
            for (std::uint32_t i = 0; i < others; ++i) one.say(1000);
            give(one, some_bytes(200 * 1472), in_place);
            const std::size_t left = Congestion::window_bytes_start - others * (sizeof(PacketHeader) + 1008);
            ASSERT_EQ(one.all().size(), others + left / 1472);
        }
    }
}

TEST(Sender, long_messages_arrive_as_they_were_however_many_pieces_of_a_series_leave) {
    for (const bool in_place : {false, true})
        for (std::size_t at_once = 1; at_once <= Sender::series_max; ++at_once) {
            OneSender one(usual_packets());
            Messages said;
            for (const std::size_t bytes : {40 * 1472u, 33'333u, 21 * 1472u + 8u, 60 * 1400u, 9'000u}) {
                said.push_back(some_bytes(bytes, static_cast<unsigned>(bytes)));
                give(one, said.back(), in_place);
            }
            std::vector<SentPacket> packets;
            for (auto more = one.series(midnight, at_once); !more.empty(); more = one.series(midnight, at_once)) {
                packets.insert(packets.end(), more.begin(), more.end());
                const auto count = static_cast<Sequence>(packets.size());
                ASSERT_TRUE(one.hear({.expected = count, .latest = count}));
            }
            ASSERT_EQ(received(packets), said) << at_once;
            EXPECT_TRUE(one.sender.idle());
            EXPECT_EQ(one.pool.bytes_used(), 0u);
        }
}

TEST(Sender, a_piece_is_repaired_with_its_start_in_its_place) {
    OneSender one(usual_packets());
    const auto message = some_bytes(20 * 1472, 5);
    std::byte* const room = fill(one, message);
    const auto sent = one.all();
    const auto count = static_cast<Sequence>(sent.size());
    ASSERT_GT(count, 20u);
    EXPECT_TRUE(one.hear({.expected = 0, .latest = count, .words = {std::uint64_t{1} << (count - 2)}}));
    EXPECT_EQ(longest_run(one.sender), 1u) << "repairs are gathered";
    const auto again = one.all();
    ASSERT_EQ(again.size(), count - 1);
    for (std::size_t i = 0; i < again.size(); ++i) EXPECT_EQ(again[i].content, sent[i].content) << i;
    EXPECT_EQ(std::memcmp(room, message.data(), message.size()), 0);
}

TEST(Sender, a_message_with_starts_that_has_not_arrived_is_named_once_and_whole) {
    OneSender one(usual_packets());
    const auto first = some_bytes(40 * 1024, 6), second = some_bytes(30 * 1024, 7);
    fill(one, first);
    fill(one, second);
    for (std::size_t left : {1u, 3u, 20u, 64u}) {
        Messages named;
        one.sender.each_unarrived([&](Bytes message) { named.emplace_back(message.begin(), message.end()); });
        EXPECT_EQ(named, (Messages{first, second})) << left;
        one.series(midnight, left);
    }
}

TEST(Sender, without_memory_for_starts_a_message_leaves_all_the_same) {
    OneSender one(usual_packets());
    const auto message = some_bytes(40 * 1024, 8);
    fill(one, message);
    one.pool.limit(one.pool.bytes_used());
    const auto packets = one.all();
    EXPECT_FALSE(is_starts(packets[0]));
    EXPECT_EQ(received(packets), Messages{message});
    EXPECT_FALSE(one.sender.found_no_memory()) << "nobody waits for it";
}

TEST(Sender, a_message_in_full_room_takes_no_more_of_it_for_its_starts) {
    SenderOptions options = usual_packets();
    options.queue_bytes = 4096;
    OneSender one(options);
    ASSERT_NE(fill(one, some_bytes(32 * 1024)), nullptr);
    ASSERT_FALSE(one.all().empty());
    EXPECT_NE(fill(one, some_bytes(32 * 1024)), nullptr) << "there is room for two";
}

TEST(Sender, pieces_whose_starts_have_left_stay_as_they_are_when_packets_become_smaller_or_larger) {
    for (const std::uint32_t bytes : {1480u, 2048u, 8000u}) {
        OneSender one(usual_packets());
        const auto message = some_bytes(90 * 1472, 9);
        fill(one, message);
        auto packets = one.series(midnight, 5);
        one.sender.set_packet_bytes(bytes);
        const auto more = one.all();
        packets.insert(packets.end(), more.begin(), more.end());
        EXPECT_EQ(received(packets), Messages{message});
    }
    OneSender one(usual_packets()); // now they leave in fragments
    const auto message = some_bytes(16 * 1472, 10);
    std::byte* const room = fill(one, message);
    ASSERT_EQ(one.series(midnight, 1).size(), 1u);
    one.sender.set_packet_bytes(512);
    std::vector<std::byte> records;
    const auto fragments = one.series(midnight);
    ASSERT_EQ(fragments.size(), 4u);
    for (const SentPacket& fragment : fragments)
        records.insert(records.end(), fragment.content.begin() + sizeof(FragmentHeader), fragment.content.end());
    RecordHeader record;
    ASSERT_TRUE(read_value(records, record));
    EXPECT_EQ(record.offset, start_bytes);
    ASSERT_EQ(records.size(), 1472 - sizeof(PacketHeader));
    EXPECT_EQ(std::memcmp(records.data() + sizeof record, message.data() + start_bytes, 1472 - piece_head_bytes), 0);
    EXPECT_EQ(std::memcmp(room, message.data(), message.size()), 0);
}

TEST(Sender, a_message_that_is_cleared_while_its_starts_are_lent_is_gone) {
    OneSender one(usual_packets());
    fill(one, some_bytes(40 * 1024));
    Sender::Heads heads;
    PacketHeader header{};
    OutPacket packet;
    for (int i = 0; i < 20; ++i)
        ASSERT_TRUE(one.sender.next_packet(packet_bytes_max, midnight, header, packet, heads));
    one.sender.clear();
    EXPECT_EQ(one.pool.bytes_used(), 0u);
    one.sender.forget_prepared();
    EXPECT_TRUE(one.all().empty());
}

// ---- long messages that leave while they are copied

TEST(Sender, of_a_message_that_is_being_copied_what_is_copied_may_leave_and_no_more) {
    for (const std::uint32_t packet_bytes : {512u, 1472u, 8968u, 65'472u}) {
        SenderOptions options = sending();
        options.packet_bytes = packet_bytes;
        OneSender one(options);
        const auto message = some_bytes(230'001, 11);
        const std::size_t of_part = std::max<std::size_t>(1, Sender::series_bytes_max / packet_bytes);
        std::vector<SentPacket> packets;
        std::size_t parts = 0;
        const auto send = [&] {
            for (auto more = one.series(midnight); !more.empty(); more = one.series(midnight))
                packets.insert(packets.end(), more.begin(), more.end());
            EXPECT_TRUE(one.hear({.expected = static_cast<Sequence>(packets.size()),
                                  .latest = static_cast<Sequence>(packets.size())}));
            EXPECT_EQ(packets.size(), ++parts * of_part) << "the burst that is copied";
        };
        ASSERT_TRUE(one.sender.try_append_long(Bytes(message), send));
        const auto rest = one.all();
        ASSERT_FALSE(rest.empty()) << "nothing is told of the last part";
        packets.insert(packets.end(), rest.begin(), rest.end());
        EXPECT_EQ(received(packets), Messages{message}) << packet_bytes;
        EXPECT_EQ(parts, (packets.size() - 1) / of_part);
        EXPECT_TRUE(one.hear({.expected = static_cast<Sequence>(packets.size()),
                              .latest = static_cast<Sequence>(packets.size())}));
        EXPECT_TRUE(one.sender.idle());
        EXPECT_EQ(one.pool.bytes_used(), 0u);
    }
}

TEST(Sender, a_message_that_is_being_copied_keeps_the_size_of_its_packets) {
    OneSender one(usual_packets());
    const auto message = some_bytes(230'000, 12);
    ASSERT_TRUE(one.sender.try_append_long(Bytes(message), [&] { one.sender.set_packet_bytes(8968); }));
    EXPECT_EQ(received(one.all()), Messages{message});
}

TEST(Sender, a_peer_that_is_gone_while_a_message_is_being_copied_gets_no_more_of_it) {
    OneSender one;
    int parts = 0;
    ASSERT_TRUE(one.sender.try_append_long(Bytes(some_bytes(300'000)), [&] { one.sender.clear(), ++parts; }));
    EXPECT_EQ(parts, 1);
    EXPECT_TRUE(one.sender.idle());
    EXPECT_EQ(one.pool.bytes_used(), 0u);
    ASSERT_TRUE(one.sender.try_append_long(Bytes(some_bytes(5'000)))) << "the next life";
    EXPECT_EQ(one.all().size(), 6u);
}

TEST(Sender, while_a_message_is_being_copied_the_peer_is_not_asked_to_acknowledge_each_burst_at_once) {
    OneSender one(usual_packets());
    std::size_t asked = 0;
    const auto count = [&] {
        for (auto more = one.series(midnight); !more.empty(); more = one.series(midnight)) {
            EXPECT_FALSE(one.sender.is_stuck_after_prepared(midnight)) << "more is copied";
            asked += static_cast<std::size_t>(std::ranges::count_if(
                more, [](const SentPacket& packet) { return (packet.header.flags & flag::ack_now) != 0; }));
        }
    };
    ASSERT_TRUE(one.sender.try_append_long(Bytes(some_bytes(200'000)), count));
    EXPECT_EQ(asked, 1u) << "for half of the window of 256 KiB";
}

TEST(Sender, messages_have_the_stated_room_or_room_for_two_of_them) {
    SenderOptions options = sending();
    options.queue_bytes = 4096;
    {
        OneSender one(options);
        int taken = 0;
        for (; one.sender.try_append(Bytes(some_bytes(900))); ++taken) one.sender.close_open_packet();
        EXPECT_EQ(taken, 4) << "four packets of 1024";
    }
    {
        OneSender one(options);
        int taken = 0;
        while (one.sender.try_append_long(Bytes(some_bytes(10'000)))) ++taken;
        EXPECT_EQ(taken, 2);
        EXPECT_EQ(one.sender.try_reserve(10'000), nullptr);
        EXPECT_EQ(one.sender.try_reserve(100), nullptr);
    }
    OneSender one(options);
    for (int i = 0; i < 2; ++i) {
        ASSERT_NE(one.sender.try_reserve(4096), nullptr);
        one.sender.commit(4096);
    }
    EXPECT_EQ(one.sender.try_reserve(4096), nullptr);
    EXPECT_FALSE(one.sender.try_append(Bytes(some_bytes(8))));
}

TEST(Sender, a_reservation_that_is_cancelled_leaves_nothing_behind) {
    OneSender one;
    ASSERT_NE(one.sender.try_reserve(5000), nullptr);
    one.sender.cancel();
    EXPECT_TRUE(one.sender.idle());
    EXPECT_EQ(one.sender.queue_bytes(), 0u);
    EXPECT_EQ(one.pool.bytes_used(), 0u);
}

TEST(Sender, messages_keep_their_order_whichever_way_they_come) {
    OneSender one;
    ASSERT_TRUE(one.sender.try_append(Bytes(some_bytes(8, 1))));
    ASSERT_TRUE(one.sender.try_append_long(Bytes(some_bytes(2000, 2))));
    ASSERT_TRUE(one.sender.try_append(Bytes(some_bytes(16, 3))));
    std::byte* const room = one.sender.try_reserve(3000);
    ASSERT_NE(room, nullptr);
    std::memcpy(room, some_bytes(3000, 4).data(), 3000);
    one.sender.commit(3000);
    std::byte* const small = one.sender.try_reserve(24);
    ASSERT_NE(small, nullptr);
    std::memcpy(small, some_bytes(24, 5).data(), 24);
    one.sender.commit(24);
    const std::vector<std::vector<std::byte>> said{some_bytes(8, 1), some_bytes(2000, 2), some_bytes(16, 3),
                                                   some_bytes(3000, 4), some_bytes(24, 5)};
    const auto unarrived = [&] {
        std::vector<std::vector<std::byte>> left;
        one.sender.each_unarrived([&](Bytes message) { left.emplace_back(message.begin(), message.end()); });
        return left;
    };
    EXPECT_EQ(unarrived(), said) << "before they leave";
    one.series(midnight, 2);
    EXPECT_EQ(unarrived(), said) << "while one of them is half cut";
    one.sender.close_open_packet();
    EXPECT_EQ(one.all().size(), 8u); // they have 1, 3, 1, 4 and 1 packets
    EXPECT_EQ(unarrived(), said);
    EXPECT_TRUE(one.hear({.expected = 3, .latest = 3}));
    EXPECT_EQ(unarrived(), (std::vector(said.begin() + 1, said.end()))) << "of the second a piece has not arrived";
    EXPECT_TRUE(one.hear({.expected = 5, .latest = 5}));
    EXPECT_EQ(unarrived(), (std::vector(said.begin() + 3, said.end())));
}

TEST(Sender, what_is_cleared_is_gone_for_good) {
    OneSender one;
    for (int i = 0; i < 5; ++i) one.say();
    one.series(midnight, 2);
    EXPECT_TRUE(one.hear({.expected = 0, .latest = 2, .words = {0b1}}));
    ASSERT_TRUE(one.sender.has_repairs());
    ASSERT_TRUE(one.sender.try_append_long(Bytes(some_bytes(5000))));
    ASSERT_TRUE(one.sender.try_append(Bytes(some_bytes(8))));
    one.sender.clear();
    EXPECT_TRUE(one.sender.idle());
    EXPECT_FALSE(one.sender.waits_for_peer());
    EXPECT_FALSE(one.sender.has_repairs());
    EXPECT_EQ(one.sender.deadline(midnight), never);
    EXPECT_EQ(one.pool.bytes_used(), 0u);
    EXPECT_EQ(one.sender.queue_bytes(), 0u);
    EXPECT_TRUE(one.all().empty());
}

TEST(Sender, a_peer_is_asked_to_acknowledge_at_once_when_half_a_window_has_left) {
    OneSender one;
    ASSERT_TRUE(one.sender.try_append_long(Bytes(some_bytes(400'000)))); // packets of 1024 bytes
    const auto packets = one.all();
    ASSERT_EQ(packets.size(), 256u);
    Sequences asking;
    for (const SentPacket& packet : packets)
        if ((packet.header.flags & flag::ack_now) != 0) asking.push_back(packet.header.sequence);
    EXPECT_EQ(asking, (Sequences{127, 255}));
}

TEST(Sender, one_that_can_send_no_more_before_an_answer_says_so) {
    const std::uint32_t weight = weight_of(sizeof(PacketHeader) + 16);
    SenderOptions options = sending();
    options.credit_guaranteed = 2 * weight;
    OneSender one(options);
    for (int i = 0; i < 3; ++i) one.say();
    PacketHeader header{};
    OutPacket packet;
    Sender::Heads heads;
    ASSERT_TRUE(one.sender.next_packet(packet_bytes_max, midnight, header, packet, heads));
    EXPECT_FALSE(one.sender.is_stuck_after_prepared(midnight)) << "another may leave";
    ASSERT_TRUE(one.sender.next_packet(packet_bytes_max, midnight, header, packet, heads));
    EXPECT_TRUE(one.sender.is_stuck_after_prepared(midnight));
}

TEST(Sender, a_packet_alone_leaves_only_when_nothing_else_does) {
    const std::uint32_t bytes = sizeof(PacketHeader) + 16;
    OneSender one;
    EXPECT_EQ(one.sender.send_alone(bytes, 1, midnight), nullptr) << "the first takes the long way";
    one.say();
    one.all();
    EXPECT_EQ(one.sender.send_alone(bytes, one.transmission, midnight), nullptr) << "one is under way";
    ASSERT_TRUE(one.hear({.expected = 1, .latest = 1}));
    ASSERT_TRUE(one.sender.try_append(Bytes(some_bytes(8))));
    EXPECT_EQ(one.sender.send_alone(bytes, one.transmission, midnight), nullptr) << "one waits for company";
    one.sender.close_open_packet();
    one.all();
    ASSERT_TRUE(one.hear({.expected = 2, .latest = 2}));
    ASSERT_NE(one.sender.try_reserve(100), nullptr);
    EXPECT_EQ(one.sender.send_alone(bytes, one.transmission, midnight), nullptr) << "one is being written";
    one.sender.cancel();
    ASSERT_NE(one.sender.send_alone(bytes, one.transmission++, midnight), nullptr);
    EXPECT_EQ(one.sender.last_sequence(), 2u);
    EXPECT_EQ(one.sender.timeout_deadline(), midnight + one.sender.round_trip().timeout(0));
    EXPECT_TRUE(one.sender.waits_for_peer());
    one.sender.send_again(); // it did not leave
    EXPECT_EQ(one.sequences(one.all()), Sequences{2});
    ASSERT_TRUE(one.hear({.expected = 3, .latest = 4}));
    EXPECT_TRUE(one.sender.idle());
    EXPECT_EQ(one.pool.bytes_used(), 0u);
}

// ---- bursts

TEST(Sender, bursts_that_are_lost_while_single_packets_arrive_are_counted_until_one_arrives) {
    OneSender one;
    const auto lose_a_burst = [&](Sequence first) { // and repair it by single packets
        one.say(), one.say();
        one.series(midnight, 2, true);
        one.say();
        one.series(midnight);
        const Sequence latest = one.transmission - 1;
        EXPECT_TRUE(one.hear({.expected = first, .latest = latest, .words = {0b10}}));
        one.all();
        EXPECT_TRUE(one.hear({.expected = first + 3, .latest = one.transmission - 1}));
    };
    lose_a_burst(0);
    EXPECT_EQ(one.sender.bursts_lost_alone(), 1u);
    lose_a_burst(3);
    EXPECT_EQ(one.sender.bursts_lost_alone(), 2u);
    one.say(), one.say();
    one.series(midnight, 2, true);
    EXPECT_TRUE(one.hear({.expected = 8, .latest = one.transmission - 1}));
    EXPECT_EQ(one.sender.bursts_lost_alone(), 0u) << "they do arrive";
    lose_a_burst(8);
    EXPECT_EQ(one.sender.bursts_lost_alone(), 0u) << "and so their losses mean nothing";
}

TEST(Sender, single_packets_that_are_lost_say_nothing_about_bursts) {
    OneSender one;
    one.say(), one.say();
    one.series(midnight, 2, false);
    EXPECT_TRUE(one.hear({.expected = 0, .latest = 2, .words = {0b1}}));
    one.all();
    EXPECT_TRUE(one.hear({.expected = 2, .latest = 3}));
    EXPECT_EQ(one.sender.bursts_lost_alone(), 0u);
}

// ---- packets of another size

TEST(Sender, packets_of_another_size_begin_with_the_next_message) {
    OneSender one;
    ASSERT_TRUE(one.sender.try_append_long(Bytes(some_bytes(3000))));
    one.sender.set_packet_bytes(512);
    EXPECT_EQ(one.sender.append_bytes_max(), 512 - sizeof(PacketHeader) - sizeof(RecordHeader));
    ASSERT_TRUE(one.sender.try_append_long(Bytes(some_bytes(3000))));
    // What was cut before is too large now, and leaves in parts, one packet at a time. Behind the last one all may
    // leave.
    for (Sequence packet = 0; packet < 3; ++packet) {
        const auto packets = one.all();
        ASSERT_EQ(packets.size(), packet < 2 ? 3u : 3u + 1u + 7u) << packet;
        for (std::size_t i = 0; i < 3; ++i) {
            EXPECT_EQ(packets[i].header.sequence, packet);
            EXPECT_EQ(packets[i].header.flags & flag::fragment, flag::fragment);
            EXPECT_EQ(packets[i].header.flags & flag::ack_now, i == 2 ? flag::ack_now : 0);
        }
        EXPECT_EQ(packets[0].header.bytes, 512u);
        EXPECT_EQ(packets[2].header.bytes, piece_head_bytes + 968 - 2 * 448);
        if (packet < 2) {
            EXPECT_TRUE(one.all().empty());
            EXPECT_TRUE(one.hear({.expected = packet + 1, .latest = 3 * packet + 3}));
            continue;
        }
        EXPECT_EQ(packets[3].header.bytes, piece_head_bytes + 3000 - 3 * 960);
        EXPECT_EQ(packets[4].header.bytes, 512u);
    }
}

TEST(Sender, a_lost_packet_does_not_wait_for_ever_for_one_that_is_under_way_in_parts) {
    OneSender one;
    ASSERT_TRUE(one.sender.try_append_long(Bytes(some_bytes(3000))));
    ASSERT_EQ(one.sequences(one.series(midnight, 1)), Sequences{0}); // whole
    one.sender.set_packet_bytes(512);
    ASSERT_EQ(one.sequences(one.all()), (Sequences{1, 1, 1}));
    Instant now = midnight;
    std::vector<Sequence> sent;
    for (int timeouts = 0; timeouts < 3 && sent.empty(); ++timeouts) { // nothing is heard
        now = one.sender.deadline(now);
        one.sender.on_time(now);
        sent = one.sequences(one.all(now));
    }
    EXPECT_EQ(sent, (Sequences{0, 0, 0}));
}

TEST(Sender, parts_that_did_not_leave_with_one_series_leave_with_the_next) {
    OneSender one;
    ASSERT_TRUE(one.sender.try_append_long(Bytes(some_bytes(900))));
    one.sender.set_packet_bytes(512);
    const auto offset_of = [](const SentPacket& packet) {
        FragmentHeader part;
        std::memcpy(&part, packet.content.data(), sizeof part);
        return part.offset;
    };
    const auto first = one.series(midnight, 1), rest = one.all();
    ASSERT_EQ(first.size(), 1u);
    EXPECT_EQ(offset_of(first[0]), 0u);
    ASSERT_EQ(rest.size(), 2u);
    EXPECT_EQ(offset_of(rest[0]), 448u);
    EXPECT_EQ(offset_of(rest[1]), 896u);
}

TEST(Sender, a_message_that_was_filled_in_place_begins_another_packet_where_it_does_not_fit) {
    OneSender one;
    for (const std::size_t bytes : {56u, 57u}) { // with the first the packet is exactly full
        ASSERT_TRUE(one.sender.try_append(Bytes(some_bytes(896))));
        std::byte* const room = one.sender.try_reserve(bytes);
        ASSERT_NE(room, nullptr);
        std::memcpy(room, some_bytes(bytes).data(), bytes);
        one.sender.commit(bytes);
        one.sender.close_open_packet();
    }
    std::vector<std::uint32_t> sizes;
    for (const SentPacket& packet : one.all()) sizes.push_back(packet.header.bytes);
    EXPECT_EQ(sizes, (std::vector<std::uint32_t>{1024, 960, 128}));
}

TEST(Sender, new_packets_wait_while_they_are_paced_and_repairs_do_not) {
    OneSender one;
    for (int i = 0; i < 300; ++i) one.say(800);
    ASSERT_EQ(one.series(midnight).size(), 64u);
    Instant now = midnight;
    for (int i = 0; i < 3; ++i) one.sender.on_time(now = one.sender.deadline(now)); // silence: it is congested
    ASSERT_EQ(one.sequences(one.series(now)), Sequences{0});
    ASSERT_TRUE(one.hear({.expected = 64, .latest = one.transmission - 1}, now));
    ASSERT_FALSE(one.series(now).empty());
    const Instant until = one.sender.congestion().paced_until();
    ASSERT_GT(until, now);
    EXPECT_TRUE(one.series(now).empty());
    EXPECT_FALSE(one.sender.may_send(now));
    EXPECT_EQ(one.sender.deadline(now), until) << "then it goes on";
    EXPECT_TRUE(one.series(until - 1ns).empty());
    ASSERT_TRUE(
        one.hear({.expected = 64, .latest = one.transmission - 1, .words = {0b1}}, now)); // 64 is lost, 65 is not
    EXPECT_EQ(one.sequences(one.series(now, 1)), Sequences{64});
    while (one.sender.has_repairs()) one.series(now);
    EXPECT_FALSE(one.series(one.sender.congestion().paced_until()).empty());
}

TEST(Sender, packets_that_overtake_no_more_are_repaired_at_once_again) {
    OneSender one;
    for (int i = 0; i < 3; ++i) one.say();
    one.all();
    EXPECT_TRUE(one.hear({.expected = 0, .latest = 2, .words = {0b1}}));
    EXPECT_TRUE(one.hear({.expected = 3, .latest = 3})); // overtaken once: by 4 is borne with
    Sequence sent = 3;
    const auto is_repaired_at_once = [&] {
        for (int i = 0; i < 3; ++i) one.say();
        one.all();
        EXPECT_TRUE(
            one.hear({.expected = sent, .latest = one.transmission - 2, .words = {0b1}})); // the second has arrived
        const bool repairs = one.sender.has_repairs();
        one.all();
        EXPECT_TRUE(one.hear({.expected = sent += 3, .latest = one.transmission - 1}));
        return repairs;
    };
    EXPECT_FALSE(is_repaired_at_once());
    for (int i = 0; i < 4 * 512; ++i) {
        one.say();
        one.all();
        EXPECT_TRUE(one.hear({.expected = ++sent, .latest = one.transmission - 1}));
    }
    EXPECT_TRUE(is_repaired_at_once());
}

TEST(Sender, what_was_overtaken_is_waited_for_100_us_at_least) {
    OneSender one;
    for (int i = 0; i < 3; ++i) one.say();
    one.all();
    EXPECT_TRUE(one.hear({.expected = 0, .latest = 2, .words = {0b1}}, midnight + 20us)); // the round trip
    EXPECT_TRUE(one.hear({.expected = 3, .latest = 3}, midnight + 20us));
    for (int i = 0; i < 3; ++i) one.say();
    one.all(midnight + 1ms);
    EXPECT_TRUE(one.hear({.expected = 3, .latest = 5, .words = {0b1}}, midnight + 1ms + 20us));
    EXPECT_EQ(one.sender.deadline(midnight + 1ms), midnight + 1ms + 120us);
}

} // namespace
} // namespace kumi::reliable
