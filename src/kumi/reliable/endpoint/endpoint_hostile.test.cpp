// Packets of peers that do not keep to the rules, by one: counted by name, dropped, and what follows still works.

#include "simulation/wire.hpp"

#include <gtest/gtest.h>

namespace kumi::reliable {
namespace {

using namespace std::chrono_literals;
using simulation::forged;
using simulation::NetworkOptions;
using simulation::Wire;

constexpr std::uint64_t record(std::uint32_t bytes, std::uint32_t offset = whole_message) {
    return bytes | std::uint64_t{offset} << 32;
}

/// The header of a packet from node 1 to node 0.
PacketHeader data_header(Sequence sequence) {
    return {.flags = flag::data, .source = 1, .destination = 0, .sequence = sequence, .transmission = sequence + 1};
}

/// A packet from node 1 to node 0 with a message of 8 bytes.
std::vector<std::byte> data_packet(Sequence sequence) { return forged(data_header(sequence), {record(8), 7}); }

/// The same packet with something else in its header, and the checksum that belongs to it.
template <class Change>
std::vector<std::byte> changed(std::vector<std::byte> packet, Change&& change) {
    PacketHeader header;
    std::memcpy(&header, packet.data(), sizeof header);
    change(header);
    header.checksum = 0;
    std::memcpy(packet.data(), &header, sizeof header);
    header.checksum = base::checksum(packet);
    std::memcpy(packet.data(), &header, sizeof header);
    return packet;
}

/// Node 0 is honest. What comes from node 1 is made up here; packets to it get lost.
struct Hostile {
    explicit Hostile(const NetworkOptions& options = {}) : wire(options) { wire.cut(0, 1, true); }

    /// How node 0 takes a packet.
    void take(const std::vector<std::byte>& packet) {
        wire.inject(0, packet);
        wire.run_for(10us);
    }
    std::uint64_t drops(Drop cause) { return wire[0].drops().of(cause); }
    std::uint64_t all_drops() {
        std::uint64_t all = 0;
        for (const std::uint64_t count : wire[0].drops().by_cause) all += count;
        return all;
    }
    std::size_t messages() const { return wire.sizes.size(); }

    Wire wire;
};

TEST(EndpointHostile, a_packet_that_acknowledges_one_more_than_was_sent_is_dropped_whole) {
    Hostile hostile;
    Sequence sent = 0;
    Sequence transmitted = 0;
    hostile.wire.on_packet = [&](const PacketHeader& header) {
        if (header.source != 0) return;
        transmitted = header.transmission;
        if ((header.flags & flag::data) != 0) sent = std::max(sent, header.sequence + 1);
    };
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(hostile.wire.say(0, 1, "hello"));
        hostile.wire.wake(0);
        hostile.wire.run_for(10us);
    }
    ASSERT_EQ(sent, 3u);
    const auto telling = [](Sequence expected, Sequence latest) {
        return changed(data_packet(0),
                       [&](PacketHeader& header) { header.expected = expected, header.latest = latest; });
    };
    hostile.take(telling(sent + 1, transmitted));
    hostile.take(telling(sent, transmitted + 1));
    EXPECT_EQ(hostile.drops(Drop::malformed), 2u);
    EXPECT_EQ(hostile.messages(), 0u) << "nor is its message read";
    EXPECT_FALSE(hostile.wire[0].all_arrived());
    EXPECT_EQ(hostile.wire[0].counters(1).packets_received, 0u);
    hostile.take(telling(sent, transmitted));
    EXPECT_EQ(hostile.messages(), 1u);
    EXPECT_TRUE(hostile.wire[0].all_arrived());
    EXPECT_EQ(hostile.all_drops(), 2u);
}

TEST(EndpointHostile, words_that_name_one_more_than_was_sent_are_dropped) {
    Hostile hostile;
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(hostile.wire.say(0, 1, "hello"));
        hostile.wire.wake(0);
        hostile.wire.run_for(10us);
    }
    const PacketHeader bare{.source = 1, .destination = 0, .expected = 0, .transmission = 1, .latest = 1};
    hostile.take(forged(bare, {0b100})); // sequence 3
    EXPECT_EQ(hostile.drops(Drop::malformed), 1u);
    hostile.take(forged(bare, {0b010})); // sequence 2
    EXPECT_EQ(hostile.drops(Drop::malformed), 1u);
    EXPECT_EQ(hostile.wire[0].counters(1).packets_received, 1u);
}

TEST(EndpointHostile, a_packet_one_beyond_the_window_is_dropped) {
    NetworkOptions options;
    options.endpoint.window_packets_max = 16;
    Hostile hostile(options);
    hostile.take(data_packet(16));
    EXPECT_EQ(hostile.drops(Drop::beyond_window), 1u);
    EXPECT_EQ(hostile.wire[0].bytes_used(), 0u);
    hostile.take(data_packet(15));
    EXPECT_EQ(hostile.drops(Drop::beyond_window), 1u);
    for (Sequence i = 0; i < 15; ++i) hostile.take(data_packet(i));
    EXPECT_EQ(hostile.messages(), 16u);
    EXPECT_EQ(hostile.all_drops(), 1u);
}

TEST(EndpointHostile, pieces_and_messages_that_do_not_add_up_are_dropped) {
    Hostile hostile;
    const std::vector<std::vector<std::uint64_t>> wrong{
        {record(16, 16), 1},          // a piece that begins at the end of its message
        {record(16, 17), 1},          // and one behind it
        {record(16, 8), 1, 2},        // one that ends a word behind the end
        {record(16u << 20 | 1, 0), 1}, // of a message a byte longer than the longest
        {record(9), 1},               // a message of which a byte is missing
        {record(8), 1, record(9), 1}, // and a second such one
        {},                           // nothing
    };
    for (const auto& records : wrong) hostile.take(forged(data_header(0), records));
    EXPECT_EQ(hostile.drops(Drop::malformed), wrong.size());
    EXPECT_EQ(hostile.messages(), 0u);
    EXPECT_EQ(hostile.wire[0].bytes_used(), 0u);
    for (Sequence i = 0; i < 3; ++i) hostile.take(data_packet(i));
    EXPECT_EQ(hostile.messages(), 3u);
}

TEST(EndpointHostile, a_packet_for_another_node_or_from_one_that_does_not_exist_is_misaddressed) {
    Hostile hostile;
    for (const std::uint32_t destination : {1u, 2u, 0xFFFF'FFFFu})
        hostile.take(changed(data_packet(0), [&](PacketHeader& header) { header.destination = destination; }));
    for (const std::uint32_t source : {2u, 3u, 0xFFFF'FFFFu}) // there are two
        hostile.take(changed(data_packet(0), [&](PacketHeader& header) { header.source = source; }));
    EXPECT_EQ(hostile.drops(Drop::misaddressed), 6u);
    EXPECT_EQ(hostile.messages(), 0u);
    hostile.take(data_packet(0));
    EXPECT_EQ(hostile.messages(), 1u);
}

TEST(EndpointHostile, a_packet_of_another_life_of_either_end_is_stale) {
    Hostile hostile;
    for (const std::uint32_t life : {0u, 2u, 0xFFFF'FFFFu})
        hostile.take(changed(data_packet(0), [&](PacketHeader& header) { header.destination_incarnation = life; }));
    for (const std::uint32_t life : {0u, 0xFFFF'FFFFu, 0x8000'0002u}) // earlier ones
        hostile.take(changed(data_packet(0), [&](PacketHeader& header) { header.source_incarnation = life; }));
    EXPECT_EQ(hostile.drops(Drop::stale), 6u);
    EXPECT_EQ(hostile.messages(), 0u);
    EXPECT_EQ(hostile.wire[0].gone(1), Gone::no) << "who was replaced does not end who replaced it";
    hostile.take(data_packet(0));
    EXPECT_EQ(hostile.messages(), 1u);
    hostile.take(changed(data_packet(1), [&](PacketHeader& header) { header.source_incarnation = 2; }));
    EXPECT_EQ(hostile.messages(), 1u);
    EXPECT_EQ(hostile.wire[0].gone(1), Gone::restarted);
}

TEST(EndpointHostile, a_packet_with_another_token_is_foreign_and_one_with_a_wrong_sum_is_damaged) {
    Hostile hostile;
    for (int bit = 0; bit < 64; ++bit)
        hostile.take(changed(data_packet(0), [&](PacketHeader& header) { header.token ^= std::uint64_t{1} << bit; }));
    EXPECT_EQ(hostile.drops(Drop::foreign), 64u);
    auto damaged = data_packet(0);
    damaged.back() ^= std::byte{1};
    hostile.take(damaged);
    EXPECT_EQ(hostile.drops(Drop::damaged), 1u);
    EXPECT_EQ(hostile.messages(), 0u);
    hostile.take(data_packet(0));
    EXPECT_EQ(hostile.messages(), 1u);
}

TEST(EndpointHostile, what_is_dropped_is_no_sign_of_life) {
    NetworkOptions options;
    options.endpoint.silence_max = 5s;
    Hostile hostile(options);
    ASSERT_TRUE(hostile.wire.say(0, 1, "hello"));
    hostile.wire.wake(0);
    const auto beyond = changed(data_packet(0), [](PacketHeader& header) { header.expected = 1000; });
    const auto stale = changed(data_packet(0), [](PacketHeader& header) { header.source_incarnation = 0; });
    auto damaged = data_packet(0);
    damaged.back() ^= std::byte{1};
    for (int i = 0; i < 40; ++i) {
        for (const auto& packet : {beyond, stale, damaged}) hostile.take(packet);
        hostile.wire.run_for(160ms);
    }
    EXPECT_EQ(hostile.wire[0].gone(1), Gone::silent);
}

TEST(EndpointHostile, of_a_peer_that_is_gone_nothing_is_taken) {
    Hostile hostile;
    hostile.take(data_packet(0));
    ASSERT_EQ(hostile.messages(), 1u);
    hostile.wire[0].give_up(1);
    EXPECT_EQ(hostile.wire[0].gone(1), Gone::given_up);
    hostile.take(data_packet(1));
    EXPECT_EQ(hostile.drops(Drop::late), 1u);
    EXPECT_EQ(hostile.messages(), 1u);
}

TEST(EndpointHostile, packets_in_one_datagram_are_taken_one_by_one_up_to_the_first_that_makes_no_sense) {
    Hostile hostile;
    const auto append = [](std::vector<std::byte>& all, const std::vector<std::byte>& more) {
        all.insert(all.end(), more.begin(), more.end());
    };
    std::vector<std::byte> datagram;
    append(datagram, data_packet(0));
    append(datagram, forged({.source = 1, .destination = 0, .transmission = 2}, {})); // a bare one
    append(datagram, data_packet(1));
    append(datagram, data_packet(0)); // a duplicate
    append(datagram, forged(data_header(2), {record(9), 1})); // malformed, but its size is known
    append(datagram, data_packet(2));
    auto foreign = data_packet(3);
    foreign[0] ^= std::byte{1};
    append(datagram, foreign);
    append(datagram, data_packet(3)); // where this begins nobody knows
    hostile.take(datagram);
    EXPECT_EQ(hostile.messages(), 3u);
    EXPECT_EQ(hostile.wire[0].counters(1).duplicates, 1u);
    EXPECT_EQ(hostile.drops(Drop::malformed), 1u);
    EXPECT_EQ(hostile.drops(Drop::foreign), 1u);
}

TEST(EndpointHostile, a_quarter_of_the_credit_used_is_acknowledged_at_once) {
    Hostile hostile;
    const std::vector<std::uint64_t> records = [] {
        std::vector<std::uint64_t> words(1 + 1400 / 8);
        words[0] = record(1400);
        return words;
    }();
    Sequence next = 0;
    // The packets that come until node 0 answers, within less than the usual delay.
    const auto until_answered = [&] {
        const std::uint64_t answered = hostile.wire.bare_packets();
        std::uint32_t count = 0;
        for (; hostile.wire.bare_packets() == answered && count < 1000; ++count) {
            hostile.wire.inject(0, forged(data_header(next++), records));
            hostile.wire.run_for(100ns);
        }
        return count;
    };
    until_answered(); // it is granted more now
    until_answered();
    const std::uint32_t weight = weight_of(sizeof(PacketHeader) + 8 + 1400);
    const std::uint32_t quarter = hostile.wire[0].credits().share() / 4;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(until_answered(), (quarter + weight - 1) / weight);
    EXPECT_LT(hostile.wire.time(), 1ms);
}

} // namespace
} // namespace kumi::reliable
