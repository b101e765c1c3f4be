// The receiving half alone: what it takes, what it refuses by one, and what it says about that.

#include "kumi/reliable/receiver.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>
#include <vector>

namespace kumi::reliable {
namespace {

using namespace std::chrono_literals;
using Verdict = Receiver::Verdict;
using Content = std::vector<std::byte>;

constexpr Instant noon = Instant{} + 12h;
constexpr Duration usual_delay = 1ms;

Content pattern(std::size_t from, std::size_t bytes) {
    Content content(bytes);
    for (std::size_t i = 0; i < bytes; ++i) content[i] = static_cast<std::byte>((from + i) * 7 + 1);
    return content;
}

/// A record as its header describes it, with `content_bytes` behind the header.
Content record_of(std::uint32_t bytes, std::uint32_t offset, std::size_t content_bytes) {
    const RecordHeader header{bytes, offset};
    Content record(sizeof header);
    std::memcpy(record.data(), &header, sizeof header);
    const Content content = pattern(offset == whole_message ? 0 : offset, content_bytes);
    record.insert(record.end(), content.begin(), content.end());
    return record;
}

Content whole_of(std::uint32_t bytes) { return record_of(bytes, whole_message, padded(bytes)); }
Content piece_of(std::uint32_t bytes, std::uint32_t offset, std::uint32_t piece) {
    return record_of(bytes, offset, padded(piece));
}

Content together(Content first, const Content& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

ReceiverOptions receiving(Sequence first = 0) {
    return {.peer = 3,
            .window_packets_max = 16,
            .message_bytes_max = 1000,
            .held_bytes_max = 1024,
            .aside_bytes_max = 1 << 20,
            .first_sequence = first,
            .ack_delay_max = usual_delay};
}

/// A receiver whose messages are read as soon as their turn comes.
struct OneReceiver {
    explicit OneReceiver(const ReceiverOptions& options = receiving())
        : receiver(pool, options, counters), transmission(options.first_sequence) {}
    ~OneReceiver() {
        for (Block* block : kept) pool.give_back(block);
    }

    Verdict take(Sequence sequence, const Content& records, Instant now = noon, std::uint8_t flags = flag::data) {
        PacketHeader header{};
        header.flags = flags;
        header.sequence = sequence;
        header.bytes = static_cast<std::uint16_t>(sizeof header + records.size());
        header.transmission = ++transmission;
        receiver.on_packet(header, now);
        const Verdict verdict = receiver.on_data(header, records, now);
        if (verdict == Verdict::next) read(records);
        read_aside();
        return verdict;
    }
    void read_aside() {
        while (Block* const block = receiver.take_aside()) {
            read(Bytes(block->data(), block->bytes));
            pool.give_back(block);
        }
    }
    void read(Bytes records) {
        Arrival arrival;
        while (receiver.next_message(records, arrival)) {
            EXPECT_EQ(arrival.source, 3u);
            messages.emplace_back(arrival.bytes.begin(), arrival.bytes.end());
            if (arrival.block == nullptr) continue;
            if (keeps) kept.push_back(arrival.block);
            else release(arrival.block);
        }
    }
    void release(Block* block) {
        receiver.on_released(*block);
        pool.give_back(block);
    }
    PacketHeader acknowledgement(bool with_words = true, Instant now = noon) {
        PacketHeader header{};
        receiver.acknowledge(header, with_words, now);
        return header;
    }
    /// The sequences that the words stand for.
    std::set<Sequence> words(std::size_t words_max = ack_words_max) {
        std::uint64_t memory[ack_words_max] = {};
        const std::size_t count = receiver.write_words(reinterpret_cast<std::byte*>(memory), words_max);
        const Sequence expected = acknowledgement().expected;
        std::set<Sequence> told;
        for (std::size_t bit = 0; bit < count * 64; ++bit)
            if ((memory[bit / 64] >> (bit % 64) & 1) != 0) told.insert(expected + 1 + static_cast<Sequence>(bit));
        return told;
    }

    BlockPool pool{0};
    PeerCounters counters;
    Receiver receiver;
    Sequence transmission;
    bool keeps = false;
    std::vector<Block*> kept;
    std::vector<Content> messages;
};

// ---- the window

TEST(Receiver, a_packet_one_beyond_the_window_is_refused_and_the_last_one_within_it_is_put_aside) {
    for (const Sequence first : {0u, 0xFFFF'FFF8u}) { // across the wrap, too
        OneReceiver one(receiving(first));
        for (const Sequence beyond : {16u, 17u, 1000u, 0x7FFF'FFFFu}) {
            EXPECT_EQ(one.take(first + beyond, whole_of(8)), Verdict::beyond_window) << beyond;
            EXPECT_FALSE(one.receiver.has_aside());
            EXPECT_EQ(one.pool.bytes_used(), 0u);
        }
        EXPECT_EQ(one.take(first + 15, whole_of(8)), Verdict::put_aside);
        for (Sequence i = 0; i < 15; ++i) EXPECT_EQ(one.take(first + i, whole_of(8)), Verdict::next);
        EXPECT_EQ(one.messages.size(), 16u);
        EXPECT_EQ(one.take(first + 32, whole_of(8)), Verdict::beyond_window) << "the window has moved by 16";
        EXPECT_EQ(one.take(first + 31, whole_of(8)), Verdict::put_aside);
    }
}

TEST(Receiver, a_packet_that_was_read_is_a_duplicate_however_long_ago) {
    OneReceiver one;
    for (Sequence i = 0; i < 20; ++i) ASSERT_EQ(one.take(i, whole_of(8)), Verdict::next);
    for (const Sequence old : {19u, 3u, 0u, 0xFFFF'FFFFu, 0x8000'0014u})
        EXPECT_EQ(one.take(old, whole_of(8)), Verdict::duplicate) << old;
    EXPECT_EQ(one.messages.size(), 20u);
    EXPECT_EQ(one.counters.duplicates, 5u);
    EXPECT_EQ(one.take(20, whole_of(8)), Verdict::next);
}

TEST(Receiver, packets_in_any_order_and_twice_are_read_once_and_in_order) {
    std::vector<Sequence> order{0, 1, 2, 3, 4};
    do {
        for (const Sequence first : {0u, 0xFFFF'FFFDu}) {
            OneReceiver one(receiving(first));
            for (const Sequence i : order)
                for (const bool again : {false, true}) {
                    const Verdict verdict = one.take(first + i, whole_of(8 + i));
                    EXPECT_EQ(verdict == Verdict::duplicate, again);
                }
            ASSERT_EQ(one.messages.size(), 5u);
            for (std::uint32_t i = 0; i < 5; ++i) EXPECT_EQ(one.messages[i], pattern(0, 8 + i));
            std::uint32_t weight = 0;
            for (std::uint32_t i = 0; i < 5; ++i) weight += weight_of(sizeof(PacketHeader) + record_bytes(8 + i));
            EXPECT_EQ(one.receiver.unacknowledged_weight(), weight) << "however it came";
            EXPECT_EQ(one.acknowledgement().expected, first + 5);
            EXPECT_EQ(one.counters.duplicates, 5u);
            EXPECT_EQ(one.pool.bytes_used(), 0u);
        }
    } while (std::next_permutation(order.begin(), order.end()));
}

// ---- records

/// How a fresh receiver takes these records, in turn and before their turn; what follows must still be read.
void expect_sound(const Content& records, bool is_sound, const char* what) {
    for (const Sequence sequence : {0u, 1u}) {
        OneReceiver one;
        const Verdict sound = sequence == 0 ? Verdict::next : Verdict::put_aside;
        EXPECT_EQ(one.take(sequence, records), is_sound ? sound : Verdict::malformed) << what;
        if (is_sound) continue;
        EXPECT_TRUE(one.messages.empty()) << what;
        EXPECT_EQ(one.pool.bytes_used(), 0u) << what;
        EXPECT_EQ(one.take(0, whole_of(8)), Verdict::next) << what;
        EXPECT_EQ(one.take(1, whole_of(8)), Verdict::next) << what;
        EXPECT_EQ(one.messages.size(), 2u) << what;
    }
}

TEST(Receiver, a_piece_that_begins_at_or_behind_the_end_of_its_message_is_malformed) {
    expect_sound(record_of(64, 56, 8), true, "the last word");
    expect_sound(record_of(57, 56, 8), true, "the last byte");
    expect_sound(record_of(56, 56, 8), false, "one byte behind the last");
    expect_sound(record_of(64, 64, 8), false, "at the end");
    expect_sound(record_of(64, 64, 0), false, "nothing, at the end");
    expect_sound(record_of(64, 65, 8), false, "one behind the end");
    expect_sound(record_of(64, 0xFFFF'FFFEu, 8), false, "far behind the end");
    expect_sound(record_of(0, 0, 8), false, "of a message that has no bytes");
}

TEST(Receiver, a_piece_that_ends_behind_the_end_of_its_message_is_malformed) {
    expect_sound(record_of(64, 0, 64), true, "all of it");
    expect_sound(record_of(64, 0, 72), false, "and a word more");
    expect_sound(record_of(64, 48, 16), true, "to the end");
    expect_sound(record_of(64, 48, 24), false, "a word beyond the end");
    expect_sound(record_of(61, 48, 16), true, "to the end, and what pads the last word");
    expect_sound(record_of(56, 48, 16), false, "of padding there is never a whole word");
}

TEST(Receiver, a_message_longer_than_the_longest_is_malformed) {
    expect_sound(record_of(1000, 0, 504), true, "the longest");
    expect_sound(record_of(1001, 0, 504), false, "a byte longer");
    expect_sound(record_of(0xFFFF'FFFFu, 0, 504), false, "the longest that can be said");
}

TEST(Receiver, a_message_that_is_longer_than_what_is_left_of_its_packet_is_malformed) {
    expect_sound(record_of(8, whole_message, 8), true, "all of it");
    expect_sound(record_of(9, whole_message, 8), false, "a byte is missing");
    expect_sound(record_of(0, whole_message, 0), true, "an empty one");
    expect_sound(record_of(1, whole_message, 0), false, "one byte that is missing");
    expect_sound(record_of(0xFFFF'FFFFu, whole_message, 8), false, "all bytes that can be said");
    expect_sound(together(whole_of(8), record_of(16, whole_message, 16)), true, "a second one");
    expect_sound(together(whole_of(8), record_of(17, whole_message, 16)), false, "a second one that is cut by a byte");
    expect_sound(together(whole_of(8), record_of(16, 0, 16)), false, "a piece behind a message");
    expect_sound(together(record_of(16, 0, 16), whole_of(8)), false, "a message behind a piece");
    expect_sound(together(whole_of(8), record_of(8, whole_message, 16)), false, "a word that belongs to no message");
    expect_sound({}, false, "no records");
}

TEST(Receiver, messages_that_share_a_packet_are_read_one_by_one_as_they_were_sent) {
    Content records;
    for (std::uint32_t bytes = 0; bytes < 40; ++bytes) records = together(std::move(records), whole_of(bytes));
    OneReceiver one;
    EXPECT_EQ(one.take(0, records), Verdict::next);
    ASSERT_EQ(one.messages.size(), 40u);
    for (std::uint32_t bytes = 0; bytes < 40; ++bytes) EXPECT_EQ(one.messages[bytes], pattern(0, bytes));
}

TEST(Receiver, a_long_message_is_put_together_to_the_byte) {
    for (const std::uint32_t bytes : {17u, 24u, 25u, 31u, 32u}) {
        OneReceiver one;
        EXPECT_EQ(one.take(0, piece_of(bytes, 0, 16)), Verdict::next);
        EXPECT_TRUE(one.messages.empty());
        EXPECT_EQ(one.receiver.held_bytes(), 256u);
        EXPECT_EQ(one.take(1, piece_of(bytes, 16, bytes - 16)), Verdict::next);
        ASSERT_EQ(one.messages.size(), 1u) << bytes;
        EXPECT_EQ(one.messages[0], pattern(0, bytes));
        EXPECT_EQ(one.receiver.held_bytes(), 0u);
        EXPECT_EQ(one.pool.bytes_used(), 0u);
    }
}

/// `count` starts of a message, which lie `stride` bytes apart from `offset` on, and `more` bytes behind them.
Content starts_of(std::uint32_t bytes, std::uint32_t offset, std::uint32_t stride, std::uint32_t count,
                  std::size_t more = 0) {
    const RecordHeader record{bytes, offset + starts_mark};
    const StartsHeader starts{stride, count};
    Content content(sizeof record + sizeof starts);
    std::memcpy(content.data(), &record, sizeof record);
    std::memcpy(content.data() + sizeof record, &starts, sizeof starts);
    for (std::uint32_t i = 0; i < count && i < 100; ++i)
        content = together(std::move(content), pattern(offset + std::size_t{i} * stride, start_bytes));
    content.resize(content.size() + more);
    return content;
}

TEST(Receiver, starts_and_the_pieces_behind_them_make_one_message) {
    OneReceiver one;
    one.take(0, starts_of(900, 0, 128, 3, 40));
    for (const std::uint32_t i : {0u, 1u, 2u}) one.take(1 + i, piece_of(900, i * 128 + 64, 64));
    one.take(4, piece_of(900, 384, 16)); // without a start
    one.take(5, starts_of(900, 400, 200, 2));
    one.take(6, piece_of(900, 464, 136));
    one.take(7, piece_of(900, 664, 136));
    EXPECT_TRUE(one.messages.empty());
    one.take(8, piece_of(900, 800, 100));
    ASSERT_EQ(one.messages.size(), 1u);
    EXPECT_EQ(one.messages[0], pattern(0, 900));
    EXPECT_EQ(one.pool.bytes_used(), 0u);
    one.take(9, starts_of(256, 0, 128, 2)); // and one that ends with a piece behind its start
    one.take(10, piece_of(256, 64, 64));
    one.take(11, piece_of(256, 192, 64));
    ASSERT_EQ(one.messages.size(), 2u);
    EXPECT_EQ(one.messages[1], pattern(0, 256));
}

TEST(Receiver, starts_that_lie_outside_their_message_or_their_packet_are_malformed) {
    expect_sound(starts_of(1000, 0, 72, 1), true, "one");
    expect_sound(starts_of(1000, 0, 500, 2), false, "not a multiple of 8");
    expect_sound(starts_of(1000, 0, 504, 2), false, "a piece that ends behind the message");
    expect_sound(starts_of(1000, 0, 496, 2), true, "a piece that ends before its end");
    expect_sound(starts_of(992, 0, 496, 2), true, "a piece that ends with it");
    expect_sound(starts_of(992, 8, 496, 2), false, "one that would end with it if it were earlier");
    expect_sound(starts_of(1000, 0, 64, 1), false, "pieces that are nothing but starts");
    expect_sound(starts_of(1000, 0, 0, 1), false, "pieces of nothing");
    expect_sound(starts_of(1000, 0, 72, 0), false, "none");
    expect_sound(starts_of(1001, 0, 72, 1), false, "of a message longer than the longest");
    expect_sound(starts_of(64, 64, 72, 1), false, "behind the end");
    expect_sound(starts_of(1000, 0, 0x8000'0000u, 0x8000'0000u), false, "more than can be counted");
    Content shorter = starts_of(1000, 0, 72, 2);
    shorter.resize(shorter.size() - 8);
    expect_sound(shorter, false, "a start that is cut");
    shorter.resize(sizeof(RecordHeader));
    expect_sound(shorter, false, "no header");
}

TEST(Receiver, pieces_that_do_not_fit_the_starts_before_them_are_dropped) {
    const std::vector<std::pair<const char*, Content>> wrong{
        {"at the start itself", piece_of(900, 128, 128)},
        {"with another length", piece_of(900, 192, 56)},
        {"of a message of another length", piece_of(904, 192, 64)},
        {"one too far", piece_of(900, 320, 64)},
        {"starts before all pieces of the last have come", starts_of(900, 128, 128, 2)},
        {"starts of another message", starts_of(904, 128, 128, 2)},
        {"starts at another place", starts_of(900, 136, 128, 2)},
    };
    for (const auto& [what, content] : wrong) {
        OneReceiver one;
        Content other = content;
        for (std::size_t i = sizeof(RecordHeader) + sizeof(StartsHeader); i < other.size(); ++i) other[i] = ~other[i];
        one.take(0, starts_of(900, 0, 128, 2));
        one.take(1, piece_of(900, 64, 64));
        EXPECT_EQ(one.take(2, other), Verdict::next) << what;
        one.take(3, piece_of(900, 192, 64));
        one.take(4, piece_of(900, 256, 644));
        ASSERT_EQ(one.messages.size(), 1u) << what;
        EXPECT_EQ(one.messages[0], pattern(0, 900)) << what;
    }
    OneReceiver one;
    EXPECT_EQ(one.take(0, starts_of(900, 128, 128, 2)), Verdict::next) << "of a message whose beginning never came";
    EXPECT_EQ(one.pool.bytes_used(), 0u);
    one.take(1, starts_of(900, 0, 128, 2));
    one.take(2, starts_of(256, 0, 128, 2)); // another message takes its place
    one.take(3, piece_of(256, 64, 64));
    one.take(4, piece_of(256, 192, 64));
    ASSERT_EQ(one.messages.size(), 1u);
    EXPECT_EQ(one.messages[0], pattern(0, 256));
    EXPECT_EQ(one.pool.bytes_used(), 0u);
}

TEST(Receiver, pieces_that_do_not_follow_each_other_are_dropped_and_the_next_message_is_read) {
    const std::vector<std::pair<const char*, Content>> wrong{
        {"of a message of another length", piece_of(56, 16, 16)},
        {"that leaves a gap", piece_of(48, 24, 16)},
        {"that comes twice", piece_of(48, 8, 16)},
    };
    for (const auto& [what, piece] : wrong) {
        OneReceiver one;
        Content other = piece;
        for (std::size_t i = sizeof(RecordHeader); i < other.size(); ++i) other[i] = ~other[i]; // it would be seen
        ASSERT_EQ(one.take(0, piece_of(48, 0, 16)), Verdict::next);
        EXPECT_EQ(one.take(1, other), Verdict::next) << what;
        EXPECT_TRUE(one.messages.empty()) << what;
        // The message goes on as if nothing had been.
        one.take(2, piece_of(48, 16, 16));
        one.take(3, piece_of(48, 32, 16));
        ASSERT_EQ(one.messages.size(), 1u) << what;
        EXPECT_EQ(one.messages[0], pattern(0, 48));
    }
    OneReceiver one;
    EXPECT_EQ(one.take(0, piece_of(48, 16, 16)), Verdict::next); // whose beginning never came
    EXPECT_TRUE(one.messages.empty());
    EXPECT_EQ(one.pool.bytes_used(), 0u);
}

TEST(Receiver, a_message_that_is_begun_anew_takes_the_place_of_the_unfinished_one) {
    OneReceiver one;
    one.take(0, piece_of(900, 0, 16));
    EXPECT_EQ(one.receiver.held_bytes(), 1024u);
    one.take(1, piece_of(32, 0, 16));
    EXPECT_EQ(one.receiver.held_bytes(), 256u);
    EXPECT_EQ(one.pool.bytes_used(), 256u);
    one.take(2, piece_of(24, 0, 24)); // all in one piece
    EXPECT_EQ(one.pool.bytes_used(), 0u);
    ASSERT_EQ(one.messages.size(), 1u);
    EXPECT_EQ(one.messages[0], pattern(0, 24));
}

// ---- memory

TEST(Receiver, packets_before_their_turn_have_the_stated_memory_and_no_more) {
    ReceiverOptions options = receiving();
    options.aside_bytes_max = 3 * 256;
    OneReceiver one(options);
    for (Sequence i = 1; i <= 3; ++i) EXPECT_EQ(one.take(i, whole_of(8)), Verdict::put_aside);
    EXPECT_EQ(one.receiver.aside_bytes(), 768u);
    EXPECT_EQ(one.take(4, whole_of(8)), Verdict::beyond_window);
    EXPECT_EQ(one.pool.bytes_used(), 768u);
    EXPECT_EQ(one.take(0, whole_of(8)), Verdict::next) << "the one in turn needs none";
    EXPECT_EQ(one.messages.size(), 4u);
    EXPECT_EQ(one.receiver.aside_bytes(), 0u);
    EXPECT_EQ(one.take(4, whole_of(8)), Verdict::next);
    EXPECT_EQ(one.take(5, piece_of(900, 0, 504)), Verdict::next); // of a message whose end is still to come
    EXPECT_EQ(one.take(7, whole_of(8)), Verdict::put_aside);
    one.receiver.clear();
    EXPECT_EQ(one.receiver.held_bytes() + one.receiver.aside_bytes(), 0u);
    EXPECT_EQ(one.pool.bytes_used(), 0u);
    EXPECT_FALSE(one.receiver.has_aside());
}

TEST(Receiver, a_message_waits_for_memory_while_its_reader_keeps_all_that_it_may_keep) {
    ReceiverOptions options = receiving();
    options.held_bytes_max = 2 * 256;
    OneReceiver one(options);
    one.keeps = true;
    const auto send = [&](Sequence first) {
        one.take(first, piece_of(200, 0, 104));
        return one.take(first + 1, piece_of(200, 104, 96));
    };
    EXPECT_EQ(send(0), Verdict::next);
    EXPECT_EQ(send(2), Verdict::next);
    EXPECT_EQ(one.receiver.held_bytes(), 512u) << "exactly what it may keep";
    EXPECT_EQ(send(4), Verdict::put_aside);
    EXPECT_TRUE(one.receiver.is_stalled());
    EXPECT_EQ(one.take(6, whole_of(8)), Verdict::put_aside) << "nobody overtakes it";
    EXPECT_EQ(one.messages.size(), 2u);
    EXPECT_EQ(one.acknowledgement().expected, 7u) << "all has arrived, though it is not read";
    EXPECT_FALSE(one.receiver.has_gap());
    EXPECT_EQ(one.take(4, piece_of(200, 0, 104)), Verdict::duplicate);
    one.release(one.kept.back());
    one.kept.pop_back();
    EXPECT_EQ(one.take(4, piece_of(200, 0, 104)), Verdict::duplicate) << "there is room now, and it is here already";
    one.read_aside();
    EXPECT_FALSE(one.receiver.is_stalled());
    ASSERT_EQ(one.messages.size(), 4u);
    EXPECT_EQ(one.messages[2], pattern(0, 200));
    EXPECT_EQ(one.messages[3], pattern(0, 8));
    EXPECT_EQ(one.receiver.aside_bytes(), 0u);
}

TEST(Receiver, a_message_larger_than_what_a_reader_may_keep_is_read_while_nothing_is_kept) {
    ReceiverOptions options = receiving();
    options.held_bytes_max = 256;
    OneReceiver one(options);
    one.take(0, piece_of(900, 0, 504));
    one.take(1, piece_of(900, 504, 396));
    ASSERT_EQ(one.messages.size(), 1u);
    EXPECT_EQ(one.messages[0], pattern(0, 900));
}

TEST(Receiver, small_messages_and_those_in_one_piece_need_no_memory_of_their_own) {
    OneReceiver one;
    one.keeps = true;
    one.take(0, piece_of(900, 0, 504));
    one.take(1, piece_of(900, 504, 396));
    ASSERT_EQ(one.receiver.held_bytes(), 1024u);
    EXPECT_EQ(one.take(2, whole_of(100)), Verdict::next);
    EXPECT_EQ(one.take(3, piece_of(504, 0, 504)), Verdict::next);
    EXPECT_EQ(one.take(4, piece_of(501, 0, 501)), Verdict::next);
    EXPECT_EQ(one.messages.size(), 4u);
    EXPECT_EQ(one.kept.size(), 1u);
    EXPECT_EQ(one.take(5, piece_of(505, 0, 504)), Verdict::put_aside) << "a byte is still to come, so it does";
}

TEST(Receiver, what_a_reader_keeps_from_the_peers_earlier_life_counts) {
    OneReceiver one;
    one.receiver.on_kept(1024);
    EXPECT_EQ(one.take(0, piece_of(900, 0, 504)), Verdict::put_aside);
    EXPECT_TRUE(one.receiver.is_stalled());
    Block* const block = one.pool.take(1000);
    one.release(block);
    one.read_aside();
    EXPECT_FALSE(one.receiver.is_stalled());
}

// ---- acknowledgements

TEST(Receiver, a_packet_in_turn_is_acknowledged_within_the_delay_and_others_do_not_put_that_off) {
    OneReceiver one;
    EXPECT_EQ(one.receiver.ack_deadline(), never);
    one.take(0, whole_of(8), noon);
    EXPECT_EQ(one.receiver.ack_deadline(), noon + usual_delay);
    one.take(1, whole_of(8), noon + 400us);
    EXPECT_EQ(one.receiver.ack_deadline(), noon + usual_delay);
    EXPECT_EQ(one.receiver.unacknowledged_weight(), 2 * weight_of(sizeof(PacketHeader) + 16));
    one.acknowledgement();
    EXPECT_EQ(one.receiver.ack_deadline(), never);
    EXPECT_EQ(one.receiver.unacknowledged_weight(), 0u);
}

TEST(Receiver, a_gap_a_repair_a_duplicate_and_a_sender_that_asks_are_answered_at_once) {
    OneReceiver one;
    one.take(0, whole_of(8), noon, flag::data | flag::ack_now);
    EXPECT_EQ(one.receiver.ack_deadline(), noon) << "it asks";
    one.acknowledgement();
    one.take(2, whole_of(8), noon + 1s);
    one.take(4, whole_of(8), noon + 1s);
    EXPECT_EQ(one.receiver.ack_deadline(), noon + 1s) << "a gap";
    one.acknowledgement(true, noon + 1s);
    one.take(1, whole_of(8), noon + 2s);
    EXPECT_EQ(one.receiver.ack_deadline(), noon + 2s) << "a repair, and another gap is left";
    one.acknowledgement(true, noon + 2s);
    one.take(0, whole_of(8), noon + 2s + 500us);
    EXPECT_EQ(one.receiver.ack_deadline(), noon + 2s + 500us) << "it was acknowledged, and the sender does not know";
}

TEST(Receiver, a_duplicate_of_what_waits_for_its_turn_is_no_reason_to_hurry) {
    OneReceiver one;
    one.take(1, whole_of(8), noon);
    one.acknowledgement(true, noon);
    one.acknowledgement(true, noon);
    one.acknowledgement(true, noon); // told three times: again after 4 ms
    ASSERT_EQ(one.receiver.ack_deadline(), noon + 4ms);
    EXPECT_EQ(one.take(1, whole_of(8), noon + 1ms), Verdict::duplicate);
    EXPECT_EQ(one.receiver.ack_deadline(), noon + 1ms + usual_delay);
    EXPECT_EQ(one.counters.duplicates, 1u);
    EXPECT_EQ(one.counters.overtaken, 1u);
}

TEST(Receiver, a_gap_that_stays_is_told_again_after_1_2_4_to_64_ms) {
    OneReceiver one;
    one.take(5, whole_of(8));
    for (const int wait_ms : {1, 2, 4, 8, 16, 32, 64, 64, 64}) {
        one.acknowledgement(true, noon);
        EXPECT_EQ(one.receiver.ack_deadline(), noon + std::chrono::milliseconds(wait_ms));
    }
    one.take(0, whole_of(8)); // something moves: it is told soon again
    one.acknowledgement(true, noon);
    EXPECT_EQ(one.receiver.ack_deadline(), noon + 1ms);
}

TEST(Receiver, an_acknowledgement_tells_the_latest_transmission_and_how_long_ago_it_came) {
    OneReceiver one;
    one.take(0, whole_of(8), noon); // transmission 1
    one.take(1, whole_of(8), noon + 1ms);
    one.transmission = 0;
    one.take(2, whole_of(8), noon + 2ms); // an early transmission that was overtaken
    const PacketHeader told = one.acknowledgement(true, noon + 3ms);
    EXPECT_EQ(told.latest, 2u);
    EXPECT_EQ(told.held_us, 2000u);
    EXPECT_EQ(told.expected, 3u);
    EXPECT_EQ(one.acknowledgement(true, noon).held_us, 0u) << "a clock that goes back";
}

TEST(Receiver, without_words_nothing_later_is_told_than_before_the_gap_which_is_still_owed) {
    OneReceiver one;
    one.take(0, whole_of(8), noon);
    one.acknowledgement(false, noon);
    one.take(2, whole_of(8), noon + 1ms);
    const PacketHeader without = one.acknowledgement(false, noon + 2ms);
    EXPECT_EQ(without.expected, 1u);
    EXPECT_EQ(without.latest, 1u) << "or packet 2 would look lost";
    EXPECT_EQ(without.held_us, 2000u);
    EXPECT_EQ(one.receiver.ack_deadline(), noon + 1ms) << "the gap is still to be told";
    const PacketHeader with = one.acknowledgement(true, noon + 2ms);
    EXPECT_EQ(with.latest, 2u);
    EXPECT_EQ(with.held_us, 1000u);
}

TEST(Receiver, the_words_tell_exactly_what_lies_behind_the_first_that_is_missing) {
    for (const Sequence first : {0u, 0xFFFF'FFE0u})
        for (const Sequence furthest : {1u, 2u, 63u, 64u, 65u, 128u, 129u, 255u}) {
            ReceiverOptions options = receiving(first);
            options.window_packets_max = 256;
            OneReceiver one(options);
            std::set<Sequence> aside;
            for (Sequence i = 1; i <= furthest; i += 1 + i % 3) {
                one.take(first + i, whole_of(8));
                aside.insert(first + i);
            }
            one.take(first + furthest, whole_of(8));
            aside.insert(first + furthest);
            EXPECT_EQ(one.words(), aside) << furthest;
            EXPECT_EQ(one.counters.repairs_asked, 1u);
            std::erase_if(aside, [&](Sequence i) { return i - first > 64; });
            EXPECT_EQ(one.words(1), aside) << furthest << " in one word";
        }
}

TEST(Receiver, without_a_gap_there_are_no_words) {
    OneReceiver one;
    one.take(0, whole_of(8));
    EXPECT_TRUE(one.words().empty());
    EXPECT_EQ(one.counters.repairs_asked, 0u);
    one.take(2, whole_of(8));
    one.take(1, whole_of(8));
    EXPECT_TRUE(one.words().empty());
}

TEST(Receiver, what_lies_behind_a_stall_and_a_gap_is_told_from_the_gap_on) {
    OneReceiver one;
    one.receiver.on_kept(1024);
    one.take(0, piece_of(900, 0, 504)); // waits for memory
    one.take(1, piece_of(900, 504, 396));
    one.take(3, whole_of(8));
    EXPECT_TRUE(one.receiver.has_gap());
    EXPECT_EQ(one.words(), std::set<Sequence>{3});
    EXPECT_EQ(one.acknowledgement().expected, 2u);
}

TEST(Receiver, packets_are_counted) {
    OneReceiver one;
    one.take(0, whole_of(8));
    one.take(2, whole_of(16));
    EXPECT_EQ(one.counters.packets_received, 2u);
    EXPECT_EQ(one.counters.bytes_received, 2 * sizeof(PacketHeader) + 16 + 24);
    EXPECT_EQ(one.counters.overtaken, 1u);
    one.receiver.stop_acknowledging();
    EXPECT_EQ(one.receiver.ack_deadline(), never);
}

// ---- parts

/// Of a packet's records, as a part of them arrives.
Content part_of(const Content& records, std::size_t stride, std::size_t offset) {
    const FragmentHeader header{static_cast<std::uint16_t>(records.size()), static_cast<std::uint16_t>(stride),
                            static_cast<std::uint32_t>(offset)};
    Content part(sizeof header);
    std::memcpy(part.data(), &header, sizeof header);
    const std::size_t bytes = std::min(stride, records.size() - offset);
    part.insert(part.end(), records.begin() + static_cast<std::ptrdiff_t>(offset),
                records.begin() + static_cast<std::ptrdiff_t>(offset + bytes));
    return part;
}

struct Parts : OneReceiver {
    /// True: with this one the packet is complete, and was taken.
    bool join(Sequence sequence, const Content& part) {
        Block* const joined = receiver.on_fragment(sequence, part, verdict, noon);
        if (joined == nullptr) return false;
        const Content all(joined->data(), joined->data() + joined->bytes);
        pool.give_back(joined);
        return take(sequence, all) == Verdict::next;
    }
    Verdict verdict{};
};

TEST(Receiver, parts_in_any_order_and_twice_make_one_packet) {
    Parts one;
    const Content records = whole_of(960); // 968 bytes: parts of 448, 448 and 72
    EXPECT_FALSE(one.join(0, part_of(records, 448, 896)));
    EXPECT_EQ(one.verdict, Verdict::put_aside);
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(one.join(0, part_of(records, 448, 0)));
    EXPECT_TRUE(one.join(0, part_of(records, 448, 448)));
    ASSERT_EQ(one.messages.size(), 1u);
    EXPECT_EQ(one.messages[0], pattern(0, 960));
    EXPECT_EQ(one.pool.bytes_used(), 0u);
}

TEST(Receiver, parts_of_packets_that_have_arrived_are_answered_and_take_no_memory) {
    Parts one;
    const Content records = whole_of(960);
    EXPECT_FALSE(one.join(0, part_of(records, 448, 0)));
    EXPECT_GT(one.pool.bytes_used(), 0u);
    EXPECT_EQ(one.take(0, records), Verdict::next); // as a whole, meanwhile
    EXPECT_EQ(one.pool.bytes_used(), 0u);
    one.acknowledgement();
    EXPECT_EQ(one.receiver.ack_deadline(), never);
    EXPECT_FALSE(one.join(0, part_of(records, 448, 448)));
    EXPECT_EQ(one.verdict, Verdict::duplicate);
    EXPECT_EQ(one.receiver.ack_deadline(), noon);
    EXPECT_EQ(one.take(2, records), Verdict::put_aside); // this one waits for another
    const std::size_t used = one.pool.bytes_used();
    EXPECT_FALSE(one.join(2, part_of(records, 448, 0)));
    EXPECT_EQ(one.verdict, Verdict::duplicate);
    EXPECT_EQ(one.pool.bytes_used(), used);
}

TEST(Receiver, parts_of_another_packet_or_another_size_begin_anew) {
    Parts one;
    const Content records = whole_of(960);
    EXPECT_FALSE(one.join(0, part_of(records, 448, 0)));
    EXPECT_FALSE(one.join(0, part_of(records, 512, 512))); // together that would be as many bytes as all
    EXPECT_FALSE(one.join(1, part_of(records, 448, 0)));
    EXPECT_FALSE(one.join(0, part_of(records, 448, 448)));
    EXPECT_FALSE(one.join(0, part_of(records, 448, 896)));
    EXPECT_TRUE(one.join(0, part_of(records, 448, 0)));
    EXPECT_EQ(one.messages.size(), 1u);
}

TEST(Receiver, parts_that_make_no_sense_are_malformed_and_take_no_memory) {
    const Content records = whole_of(960);
    const auto with = [&](std::uint16_t bytes, std::uint16_t stride, std::uint32_t offset, std::size_t content) {
        const FragmentHeader header{bytes, stride, offset};
        Content part(sizeof header + content);
        std::memcpy(part.data(), &header, sizeof header);
        return part;
    };
    Parts one;
    for (const Content& part :
         {Content{}, Content(7), with(968, 448, 0, 440), with(968, 448, 0, 456), with(968, 448, 896, 80),
          with(968, 448, 8, 448), with(968, 440, 0, 440), with(968, 449, 0, 449), with(968, 448, 1344, 8),
          with(968, 448, 0xFFFF'FE40u, 448), with(964, 448, 896, 68), with(65'528, 448, 0, 448), with(0, 448, 0, 0)}) {
        EXPECT_FALSE(one.join(0, part)) << part.size();
        EXPECT_EQ(one.verdict, Verdict::malformed) << part.size();
        EXPECT_EQ(one.pool.bytes_used(), 0u);
    }
    EXPECT_FALSE(one.join(16, part_of(records, 448, 0)));
    EXPECT_EQ(one.verdict, Verdict::beyond_window);
    EXPECT_EQ(one.pool.bytes_used(), 0u);
    one.pool.limit(100);
    EXPECT_FALSE(one.join(0, part_of(records, 448, 0)));
    EXPECT_EQ(one.receiver.wanted_bytes(), 968u);
}

} // namespace
} // namespace kumi::reliable
