// What peers name as places is crossed by one byte, at both ends, and by numbers that overflow. A segment lies between
// memory that nobody may write, so whatever gets through shows there.

#include "kumi/engine/dispatcher.hpp"

#include "kumi/base/system/machine.hpp"
#include "loopback/victim.hpp"
#include "loopback/windows.hpp"

#include <array>
#include <gtest/gtest.h>
#include <limits>

namespace kumi::engine::memory_test {
namespace {

using engine::Place;
using loopback::Victim;
using loopback::Windows;

constexpr std::uint64_t farthest = std::numeric_limits<std::uint64_t>::max();
// smaller than the pages that segments begin at: both neighbours are room of no segment
constexpr std::size_t page = 4096;
constexpr OperationId asked{7, 9}; // a peer's own

std::vector<std::byte> filled(std::size_t bytes, int with) {
    return std::vector<std::byte>(bytes, static_cast<std::byte>(with));
}

/// Three segments, and the memory right before and behind the second one.
class DispatcherMemory : public testing::Test {
protected:
    DispatcherMemory() {
        for (int i = 0; i < 3; ++i) {
            const auto made = victim.dispatcher->segments().add(page);
            EXPECT_TRUE(made);
            ids.push_back(made->id);
            memory.push_back(made->bytes);
            std::ranges::fill(made->bytes, static_cast<std::byte>(0x10 + i));
        }
        EXPECT_EQ(memory[0].data() + base::page_bytes_max, memory[1].data());
        EXPECT_EQ(memory[1].data() + base::page_bytes_max, memory[2].data());
        for (const MutableBytes& neighbour : neighbours()) std::ranges::fill(neighbour, std::byte{0x77});
    }
    Place place(std::uint64_t offset) const { return {ids[1], 0, offset}; }
    global_ptr<std::byte> where(std::uint64_t offset, Node node) const { return {node, ids[1], offset}; }
    std::array<MutableBytes, 2> neighbours() const {
        return {MutableBytes(memory[1].data() - page, page), MutableBytes(memory[1].data() + page, page)};
    }
    /// All is as it was made.
    bool is_untouched() const {
        for (std::size_t i = 0; i < 3; ++i)
            if (!std::ranges::all_of(memory[i],
                                     [&](std::byte byte) { return byte == static_cast<std::byte>(0x10 + i); }))
                return false;
        for (const MutableBytes& neighbour : neighbours())
            if (!std::ranges::all_of(neighbour, [](std::byte byte) { return byte == std::byte{0x77}; })) return false;
        return true;
    }
    /// Exactly these bytes of the segment in the middle have changed; makes it as it was.
    bool is_written(std::size_t offset, std::size_t bytes, int with = 0xEE) {
        const bool is_there = std::ranges::all_of(memory[1].subspan(offset, bytes),
                                                  [&](std::byte byte) { return byte == static_cast<std::byte>(with); });
        std::ranges::fill(memory[1].subspan(offset, bytes), std::byte{0x11});
        return is_there && is_untouched();
    }

    Victim victim;
    std::vector<SegmentId> ids;
    std::vector<MutableBytes> memory;
};

struct Part {
    std::uint64_t offset;
    std::size_t bytes;
};
constexpr Part parts_inside[] = {{0, page}, {page - 1, 1}, {0, 1},       {1, page - 1},
                                 {page, 0}, {page - 8, 8}, {page - 4, 4}};
constexpr Part parts_outside[] = {{page, 1},         {page - 1, 2},    {1, page},
                                  {0, page + 1},     {farthest, 1},    {farthest, 2},
                                  {farthest - 7, 8}, {0 - page, page}, {std::uint64_t{1} << 63, 8},
                                  {page + 1, 0},     {page, page},     {page - 7, 8}};

// ---- messages of peers

TEST_F(DispatcherMemory, a_put_of_a_peer_lands_in_its_segment_and_not_one_byte_beyond) {
    for (const auto& [offset, bytes] : parts_inside) {
        victim.hears(1, Kind::put, Put{asked, place(offset), {}}, filled(bytes, 0xEE));
        victim.poll();
        EXPECT_EQ(victim.refusal(1, asked), "") << bytes << " at " << offset;
        EXPECT_TRUE(is_written(offset, bytes)) << bytes << " at " << offset;
    }
    for (const auto& [offset, bytes] : parts_outside) {
        victim.hears(1, Kind::put, Put{asked, place(offset), {}}, filled(bytes, 0xEE));
        victim.poll();
        EXPECT_NE(victim.refusal(1, asked).find("segment"), std::string::npos) << bytes << " at " << offset;
        EXPECT_TRUE(is_untouched()) << bytes << " at " << offset;
    }
}

TEST_F(DispatcherMemory, a_put_to_a_heap_ends_where_that_does) {
    const std::uint64_t allocated = *victim.dispatcher->segments().allocate(100, 1);
    std::byte* const heap = victim.dispatcher->segments().local({0, 0, 0}, 1);
    std::uint64_t size = 1 << 20; // what it has grown by
    ASSERT_NE(victim.dispatcher->segments().local({0, 0, size - 1}, 1), nullptr);
    ASSERT_EQ(victim.dispatcher->segments().local({0, 0, size}, 1), nullptr);
    victim.hears(1, Kind::put, Put{asked, {0, 0, size - 1}, {}}, filled(1, 0xEE));
    victim.poll();
    EXPECT_EQ(victim.refusal(1, asked), "");
    EXPECT_EQ(heap[size - 1], std::byte{0xEE});
    victim.hears(1, Kind::put, Put{asked, {0, 0, size - 1}, {}}, filled(2, 0xEE));
    victim.poll();
    EXPECT_NE(victim.refusal(1, asked).find("heap"), std::string::npos);
    EXPECT_EQ(heap[allocated], std::byte{0});
}

struct Blocks {
    std::uint64_t offset, bytes;
    std::size_t count;
    std::int64_t stride;
};
constexpr Blocks blocks_inside[] = {{0, 8, page / 8, 8},
                                    {page - 8, 8, page / 8, -8},
                                    {0, 16, 2, page - 16},
                                    {page - 16, 16, 2, 16 - std::int64_t{page}},
                                    {100, 8, 3, 0}};
constexpr Blocks blocks_outside[] = {{0, 16, 2, page - 15},
                                     {1, 16, 2, page - 16},
                                     {page - 15, 16, 2, 16 - std::int64_t{page}},
                                     {page - 17, 16, 2, 16 - std::int64_t{page}},
                                     {0, 8, 2, -1},
                                     {0, 8, 2, -8},
                                     {page - 8, 8, 2, 1},
                                     {0, 8, page / 8 + 1, 8},
                                     {0, 8, 3, std::numeric_limits<std::int64_t>::max()},
                                     {0, 8, 3, std::numeric_limits<std::int64_t>::min()},
                                     {8, 8, 2, std::numeric_limits<std::int64_t>::min()},
                                     {0, 8, 5, std::int64_t{1} << 62},
                                     {0, 8, 5, -(std::int64_t{1} << 62)},
                                     {0, 8, 3, std::int64_t{1} << 47},
                                     {farthest - 7, 8, 2, 8},
                                     {farthest - 7, 8, 2, -8}};

TEST_F(DispatcherMemory, blocks_of_a_peer_lie_in_their_segment_from_the_lowest_byte_to_the_highest) {
    for (const auto& [offset, bytes, count, stride] : blocks_inside) {
        victim.hears(1, Kind::put_strided, PutStrided{place(offset), {}, bytes, stride}, filled(bytes * count, 0xEE));
        victim.poll();
        EXPECT_EQ(victim.refusal(1), "") << stride;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t start = offset + i * static_cast<std::uint64_t>(stride);
            EXPECT_TRUE(std::ranges::all_of(memory[1].subspan(start, bytes),
                                            [](std::byte byte) { return byte == std::byte{0xEE}; }));
        }
        for (std::size_t i = 0; i < count; ++i)
            std::ranges::fill(memory[1].subspan(offset + i * static_cast<std::uint64_t>(stride), bytes),
                              std::byte{0x11});
        EXPECT_TRUE(is_untouched()) << stride;
    }
    for (const auto& [offset, bytes, count, stride] : blocks_outside) {
        victim.hears(1, Kind::put_strided, PutStrided{place(offset), {}, bytes, stride}, filled(bytes * count, 0xEE));
        victim.poll();
        EXPECT_NE(victim.refusal(1), "") << offset << " and " << stride;
        EXPECT_TRUE(is_untouched()) << offset << " and " << stride;
    }
}

TEST_F(DispatcherMemory, blocks_that_are_none_are_refused) {
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{17}, farthest}) {
        victim.hears(1, Kind::put_strided, PutStrided{place(0), {}, bytes, 8}, filled(16, 0xEE));
        victim.poll();
        EXPECT_NE(victim.refusal(1), "") << bytes;
    }
    victim.hears(1, Kind::put_strided, PutStrided{{landing_bit, 0, 0}, {}, 8, 8}, filled(16, 0xEE));
    victim.poll();
    EXPECT_NE(victim.refusal(1), "") << "landings have no blocks";
    EXPECT_TRUE(is_untouched());
}

TEST_F(DispatcherMemory, a_peer_gets_what_lies_in_a_segment_and_not_one_byte_beyond) {
    for (const auto& [offset, bytes] : parts_inside) {
        victim.hears(1, Kind::get, Get{asked, place(offset), bytes, 1, 0, 55});
        victim.poll();
        const auto got = victim.sent(Kind::got);
        ASSERT_EQ(got.size(), 1u) << bytes << " at " << offset;
        EXPECT_EQ(got[0].head<Got>().operation, asked);
        EXPECT_EQ(got[0].head<Got>().position, 55u);
        EXPECT_TRUE(std::ranges::equal(got[0].data<Got>(), filled(bytes, 0x11)));
    }
    for (const auto& [offset, bytes] : parts_outside) {
        victim.hears(1, Kind::get, Get{asked, place(offset), bytes, 1, 0, 0});
        victim.poll();
        EXPECT_NE(victim.refusal(1, asked), "") << bytes << " at " << offset;
    }
    for (const auto& [offset, bytes, count, stride] : blocks_inside) {
        victim.hears(1, Kind::get, Get{asked, place(offset), bytes, count, stride, 0});
        victim.poll();
        const auto got = victim.sent(Kind::got);
        ASSERT_EQ(got.size(), 1u) << stride;
        EXPECT_TRUE(std::ranges::equal(got[0].data<Got>(), filled(bytes * count, 0x11)));
    }
    for (const auto& [offset, bytes, count, stride] : blocks_outside) {
        victim.hears(1, Kind::get, Get{asked, place(offset), bytes, count, stride, 0});
        victim.poll();
        const auto refused = victim.sent(Kind::failed); // by its number, or as what makes no sense
        EXPECT_EQ(refused.size(), 1u) << offset << " and " << stride;
    }
}

TEST_F(DispatcherMemory, a_get_brings_as_much_as_one_message_may_carry_and_not_one_byte_more) {
    const auto large = victim.dispatcher->segments().add(4 * chunk_bytes);
    ASSERT_TRUE(large);
    struct Wanted {
        std::uint64_t bytes, count;
        bool is_good;
    };
    for (const auto& [bytes, count, is_good] :
         {Wanted{chunk_bytes, 1, true}, Wanted{chunk_bytes + 1, 1, false}, Wanted{chunk_bytes / 2, 2, true},
          Wanted{chunk_bytes / 2 + 1, 2, false}, Wanted{1, chunk_bytes, true}, Wanted{1, chunk_bytes + 1, false},
          Wanted{std::uint64_t{1} << 33, std::uint64_t{1} << 31, false}, Wanted{0, chunk_bytes + 1, false}}) {
        victim.hears(1, Kind::get, Get{asked, {large->id, 0, 0}, bytes, count, static_cast<std::int64_t>(0), 0});
        victim.poll();
        const auto got = victim.sent(Kind::got);
        ASSERT_EQ(got.size(), is_good ? 1u : 0u) << bytes << " times " << count;
        if (!is_good) continue;
        EXPECT_EQ(got[0].data<Got>().size(), bytes * count);
    }
    victim.hears(1, Kind::get, Get{asked, {landing_bit, 0, 0}, 0, 1, 0, 0});
    victim.poll();
    EXPECT_NE(victim.refusal(1, asked), "") << "nothing is got from where something is to land";
}

TEST_F(DispatcherMemory, an_atomic_operation_of_a_peer_needs_an_aligned_word_of_its_segment) {
    struct Word {
        std::uint64_t offset;
        std::uint32_t bytes;
        bool is_good;
    };
    for (const auto& [offset, bytes, is_good] : {Word{0, 8, true},         Word{page - 8, 8, true},
                                                 Word{page - 4, 4, true},  Word{4, 4, true},
                                                 Word{page, 8, false},     Word{page, 4, false},
                                                 Word{page - 4, 8, false}, Word{page - 7, 8, false},
                                                 Word{page - 3, 4, false}, Word{farthest - 7, 8, false},
                                                 Word{farthest, 4, false}, Word{4, 8, false},
                                                 Word{1, 8, false},        Word{2, 4, false},
                                                 Word{0, 0, false},        Word{0, 1, false},
                                                 Word{0, 2, false},        Word{0, 16, false},
                                                 Word{0, 12, false},       Word{0, ~0u, false}}) {
        victim.hears(1, Kind::atomic,
                     AtomicRequest{asked, place(offset), {Atomic::swap, bytes, 0xEEEEEEEEEEEEEEEE, 0}});
        victim.poll();
        if (!is_good) {
            EXPECT_NE(victim.refusal(1, asked), "") << bytes << " at " << offset;
            EXPECT_TRUE(is_untouched()) << bytes << " at " << offset;
            continue;
        }
        const auto done = victim.sent(Kind::done);
        ASSERT_EQ(done.size(), 1u) << bytes << " at " << offset;
        EXPECT_EQ(done[0].head<Done>().operation, asked);
        EXPECT_EQ(done[0].head<Done>().value, bytes == 8 ? 0x1111111111111111u : 0x11111111u);
        EXPECT_TRUE(is_written(offset, bytes)) << bytes << " at " << offset;
    }
    constexpr auto no_kind = static_cast<Atomic::Kind>(Atomic::last_kind + 1);
    victim.hears(1, Kind::atomic, AtomicRequest{asked, place(0), {no_kind, 8, 1, 1}});
    victim.poll();
    EXPECT_NE(victim.refusal(1, asked), "") << "there is no such operation";
    victim.hears(1, Kind::atomic, AtomicRequest{asked, {landing_bit, 0, 0}, {Atomic::add, 8, 1, 0}});
    victim.poll();
    EXPECT_NE(victim.refusal(1), "");
    EXPECT_TRUE(is_untouched());
}

TEST_F(DispatcherMemory, atomic_operations_answer_what_was_there_and_do_what_they_are_called) {
    std::uint64_t word = 100;
    std::memcpy(memory[1].data(), &word, sizeof word);
    const auto apply = [&](const Atomic& what) {
        victim.hears(1, Kind::atomic, AtomicRequest{asked, place(0), what});
        victim.poll();
        const auto done = victim.sent(Kind::done);
        std::memcpy(&word, memory[1].data(), sizeof word);
        return done.size() == 1 ? done[0].head<Done>().value : ~0u;
    };
    EXPECT_EQ(apply({Atomic::add, 8, 5, 0}), 100u);
    EXPECT_EQ(word, 105u);
    EXPECT_EQ(apply({Atomic::compare_exchange, 8, 7, 104}), 105u);
    EXPECT_EQ(word, 105u) << "it was not what was expected";
    EXPECT_EQ(apply({Atomic::compare_exchange, 8, 7, 105}), 105u);
    EXPECT_EQ(word, 7u);
    EXPECT_EQ(apply({Atomic::add, 4, 0xffffffff, 0}), 7u);
    EXPECT_EQ(word, 6u) << "the other half is not carried into";
    EXPECT_EQ(apply({Atomic::bit_xor, 8, 15, 0}), 6u);
    EXPECT_EQ(apply({Atomic::max_signed, 8, 0xffffffffffffffff, 0}), 9u);
    EXPECT_EQ(word, 9u) << "minus one is less";
    EXPECT_EQ(apply({Atomic::max_unsigned, 8, 0xffffffffffffffff, 0}), 9u);
    EXPECT_EQ(word, 0xffffffffffffffffu);
}

TEST_F(DispatcherMemory, a_notice_sets_a_flag_of_its_segment_and_nothing_beside_it) {
    const auto hear = [&](Notice::Kind kind, std::uint64_t offset) {
        victim.hears(1, Kind::put, Put{asked, place(0), {kind, ids[1], offset, 0xEEEEEEEEEEEEEEEE}}, filled(8, 0x11));
        victim.poll();
        return victim.refusal(1, asked);
    };
    for (const std::uint64_t offset : {std::uint64_t{8}, std::uint64_t{page - 8}}) {
        EXPECT_EQ(hear(Notice::Kind::set, offset), "");
        EXPECT_TRUE(is_written(offset, 8)) << offset;
    }
    for (const std::uint64_t offset : {std::uint64_t{page}, std::uint64_t{page - 7}, std::uint64_t{page - 4},
                                       std::uint64_t{4}, std::uint64_t{1}, farthest, farthest - 7}) {
        EXPECT_NE(hear(Notice::Kind::set, offset).find("flag"), std::string::npos) << offset;
        EXPECT_TRUE(is_untouched()) << offset;
    }
    for (const std::uint64_t offset :
         {std::uint64_t{page - 8}, std::uint64_t{page}, std::uint64_t{page - 12}, std::uint64_t{4}, farthest - 15}) {
        EXPECT_NE(hear(Notice::Kind::count, offset).find("counter"), std::string::npos) << offset;
        EXPECT_TRUE(is_untouched()) << offset;
    }
    Counter counter{2, 0};
    const auto load = [&] { std::memcpy(&counter, memory[1].data() + page - 16, sizeof counter); };
    std::memcpy(memory[1].data() + page - 16, &counter, sizeof counter);
    EXPECT_EQ(hear(Notice::Kind::count, page - 16), "");
    load();
    EXPECT_EQ(counter.missing, 1);
    EXPECT_EQ(counter.flag, 0u);
    EXPECT_EQ(hear(Notice::Kind::count, page - 16), "");
    load();
    EXPECT_EQ(counter.missing, 0);
    EXPECT_EQ(counter.flag, 1u);
}

TEST_F(DispatcherMemory, a_copy_for_a_peer_reads_and_writes_inside_of_segments_only) {
    for (const auto& [offset, bytes] : parts_outside) {
        victim.hears(1, Kind::copy, Copy{asked, place(offset), 0, 0, place(0), bytes, {}});
        victim.poll();
        EXPECT_NE(victim.refusal(1, asked), "") << "from " << offset;
        victim.hears(1, Kind::copy, Copy{asked, {ids[0], 0, 0}, 0, 0, place(offset), bytes, {}});
        victim.poll();
        EXPECT_NE(victim.refusal(1, asked), "") << "to " << offset;
        EXPECT_TRUE(is_untouched()) << offset;
    }
    victim.hears(1, Kind::copy, Copy{asked, place(0), 3, 0, place(0), 8, {}});
    victim.hears(1, Kind::copy, Copy{asked, {landing_bit, 0, 0}, 0, 0, place(0), 0, {}});
    victim.hears(1, Kind::copy, Copy{asked, place(0), 2, 0, {landing_bit, 0, 0}, 8, {}});
    victim.poll();
    EXPECT_EQ(victim.sent(Kind::failed).size(), 3u) << "no such node, and landings are for puts";
    std::ranges::fill(memory[0], std::byte{0xEE});
    victim.hears(1, Kind::copy, Copy{asked, {ids[0], 0, 0}, 0, 0, place(0), page, {}});
    victim.poll();
    EXPECT_EQ(victim.sent(Kind::done).size(), 1u);
    std::ranges::fill(memory[0], std::byte{0x10});
    EXPECT_TRUE(is_written(0, page));
}

TEST_F(DispatcherMemory, a_store_for_another_layer_lands_in_its_segment_and_not_one_byte_beyond) {
    const Turn turn = victim.dispatcher->take_turn();
    MemoryService& service = victim.dispatcher->memory();
    for (const auto& [offset, bytes] : parts_inside) {
        EXPECT_TRUE(service.store(turn, place(offset), filled(bytes, 0xEE), {})) << bytes << " at " << offset;
        EXPECT_TRUE(is_written(offset, bytes)) << bytes << " at " << offset;
    }
    for (const auto& [offset, bytes] : parts_outside) {
        const auto stored = service.store(turn, place(offset), filled(bytes, 0xEE), {});
        ASSERT_FALSE(stored) << bytes << " at " << offset;
        EXPECT_NE(stored.error().text().find("segment"), std::string::npos) << stored.error().text();
        EXPECT_TRUE(is_untouched()) << bytes << " at " << offset;
    }
    EXPECT_FALSE(service.store(turn, {landing_bit, 0, 0}, filled(8, 0xEE), {})) << "a landing is no segment";
    EXPECT_TRUE(is_untouched());
    const auto unnoticed = service.store(turn, place(0), filled(8, 0xEE), {Notice::Kind::set, ids[1], page - 4, 1});
    ASSERT_FALSE(unnoticed);
    EXPECT_NE(unnoticed.error().text().find("flag"), std::string::npos) << unnoticed.error().text();
    EXPECT_TRUE(is_written(0, 8)) << "the data is there";
    EXPECT_TRUE(service.store(turn, place(0), filled(8, 0xEE), {Notice::Kind::set, ids[1], 8, 0xEEEEEEEEEEEEEEEE}));
    EXPECT_TRUE(is_written(0, 16)) << "the flag is behind the data";
}

// ---- what is expected to land

/// This node accepts something from node 1, into the middle of `target`.
class DispatcherLandings : public DispatcherMemory {
protected:
    static constexpr std::size_t room = 100, guard = 32;

    DispatcherLandings() {
        EXPECT_TRUE(
            victim.dispatcher->rendezvous().accept(5, 1, MutableBytes(target).subspan(guard, room), &arrived, 1));
        const auto wanted = victim.sent(Kind::want);
        EXPECT_EQ(wanted.size(), 1u);
        want = wanted[0].head<Want>();
        victim.handled[1] = 1;
    }
    std::string put(Node source, Place to, std::size_t bytes) {
        victim.hears(source, Kind::put, Put{asked, to, {}}, filled(bytes, 0xEE));
        victim.poll();
        return victim.refusal(source, asked);
    }
    Place landing(std::uint64_t offset) const { return {want.to.segment, want.to.generation, offset}; }
    bool is_target_untouched() const { return target == filled(room + 2 * guard, 0x44); }

    std::vector<std::byte> target = filled(room + 2 * guard, 0x44);
    Flag arrived = 0;
    Want want{};
};

TEST_F(DispatcherLandings, data_lands_where_it_is_expected_and_not_one_byte_beyond) {
    EXPECT_EQ(want.bytes, room);
    struct Case {
        std::uint64_t offset;
        std::size_t bytes;
    };
    for (const auto& [offset, bytes] :
         {Case{room, 1}, Case{room - 1, 2}, Case{0, room + 1}, Case{1, room}, Case{farthest, 1}, Case{farthest, 2},
          Case{0 - guard, guard}, Case{room + 1, 0}}) {
        EXPECT_NE(put(1, landing(offset), bytes), "") << bytes << " at " << offset;
        EXPECT_TRUE(is_target_untouched()) << bytes << " at " << offset;
    }
    EXPECT_EQ(put(1, landing(room - 1), 1), "");
    EXPECT_EQ(target[guard + room - 1], std::byte{0xEE});
    EXPECT_EQ(put(1, landing(0), room), "");
    EXPECT_TRUE(std::ranges::equal(Bytes(target).subspan(guard, room), filled(room, 0xEE)));
    std::ranges::fill(MutableBytes(target).subspan(guard, room), std::byte{0x44});
    EXPECT_TRUE(is_target_untouched()) << "around it";
    EXPECT_EQ(load_flag(arrived), 0u) << "not all has come, until its node says so";
    victim.hears(1, Kind::done, Done{want.operation, room}, {}, false);
    victim.poll();
    EXPECT_EQ(load_flag(arrived), 1u);
}

TEST_F(DispatcherLandings, other_numbers_and_other_generations_lead_nowhere) {
    EXPECT_NE(put(1, {want.to.segment + 1, want.to.generation, 0}, 1), "");
    EXPECT_NE(put(1, {want.to.segment, want.to.generation + 1, 0}, 1), "");
    EXPECT_NE(put(1, {~0u, ~0u, 0}, 0), "");
    EXPECT_TRUE(is_target_untouched());
}

TEST_F(DispatcherLandings, only_the_node_that_it_is_expected_of_may_put_there) {
    EXPECT_NE(put(2, landing(0), 10), "");
    EXPECT_TRUE(is_target_untouched());
    EXPECT_EQ(put(1, landing(0), 10), "") << "that one still may";
}

TEST_F(DispatcherLandings, nothing_lands_any_more_when_all_is_there) {
    victim.hears(2, Kind::done, Done{want.operation, 0}, {}, false);
    victim.poll();
    EXPECT_EQ(load_flag(arrived), 0u) << "another node cannot say so";
    victim.hears(1, Kind::done, Done{want.operation, 0}, {}, false);
    victim.poll();
    EXPECT_EQ(load_flag(arrived), 1u);
    EXPECT_NE(put(1, landing(0), 1), "");
    EXPECT_TRUE(is_target_untouched());
    // may have the same index
    ASSERT_TRUE(victim.dispatcher->rendezvous().accept(6, 1, MutableBytes(target).first(10), nullptr, 1));
    EXPECT_NE(put(1, landing(0), 1), "") << "the number was good once";
    EXPECT_TRUE(is_target_untouched());
}

// ---- answers to gets

/// Bytes of node 1 are got into the middle of `target`.
class DispatcherGets : public DispatcherMemory {
protected:
    static constexpr std::size_t room = 100, guard = 32;

    DispatcherGets() {
        EXPECT_TRUE(
            victim.dispatcher->memory().start_get(where(0, 1), MutableBytes(target).subspan(guard, room), &arrived));
        const auto gets = victim.sent(Kind::get);
        EXPECT_EQ(gets.size(), 1u);
        operation = gets[0].head<Get>().operation;
    }
    void got(Node source, OperationId id, std::uint64_t position, std::size_t bytes) {
        victim.hears(source, Kind::got, Got{id, position}, filled(bytes, 0xEE), false);
        victim.poll();
    }
    std::size_t changed() const { return static_cast<std::size_t>(std::ranges::count(target, std::byte{0xEE})); }

    std::vector<std::byte> target = filled(room + 2 * guard, 0x44);
    Flag arrived = 0;
    OperationId operation{};
};

TEST_F(DispatcherGets, an_answer_stays_within_what_was_asked_for) {
    got(1, operation, 0, room + 1);
    got(1, operation, room, 1);
    got(1, operation, 1, room);
    got(1, operation, farthest, 1);
    got(1, operation, farthest, 2);
    got(1, operation, 0 - guard, guard);
    got(1, operation, room + 1, 0);
    EXPECT_EQ(changed(), 0u);
    got(1, operation, 60, 40);
    EXPECT_EQ(changed(), 40u);
    got(1, operation, 0, 61);
    EXPECT_EQ(changed(), 40u) << "more than is still to come";
    EXPECT_EQ(load_flag(arrived), 0u);
    got(1, operation, 0, 60);
    EXPECT_EQ(changed(), room);
    EXPECT_EQ(load_flag(arrived), 1u);
    EXPECT_TRUE(std::ranges::equal(Bytes(target).subspan(guard, room), filled(room, 0xEE)));
}

TEST_F(DispatcherGets, an_answer_of_another_node_or_under_another_number_is_none) {
    got(2, operation, 0, room);
    got(0, operation, 0, room);
    got(1, {operation.index, operation.generation + 1}, 0, room);
    got(1, {operation.index + 1, operation.generation}, 0, room);
    got(1, no_operation, 0, room);
    victim.hears(2, Kind::failed, Failed{operation}, {}, false);
    victim.hears(2, Kind::done, Done{operation, 0}, {}, false);
    victim.hears(2, Kind::answer, Done{operation, 0}, {}, false);
    victim.hears(1, Kind::answer, Done{operation, 0}, {}, false); // it is no call
    victim.poll();
    EXPECT_EQ(changed(), 0u);
    EXPECT_EQ(load_flag(arrived), 0u);
    got(1, operation, 0, room);
    EXPECT_EQ(load_flag(arrived), 1u);
    victim.handled[1] = 1;
    victim.hears(1, Kind::credit);
    victim.poll();
    EXPECT_TRUE(victim.dispatcher->operations().sync(now())) << "and nothing has failed";
}

TEST_F(DispatcherGets, an_answer_counts_once) {
    got(1, operation, 0, room);
    EXPECT_EQ(load_flag(arrived), 1u);
    std::ranges::fill(target, std::byte{0x44}); // the program's own again
    got(1, operation, 0, room);
    EXPECT_EQ(changed(), 0u);
    Flag other = 0;
    std::vector<std::byte> next(room);
    ASSERT_TRUE(victim.dispatcher->memory().start_get(where(0, 1), next, &other)); // may have the same index
    got(1, operation, 0, room);
    EXPECT_EQ(load_flag(other), 0u);
    EXPECT_EQ(next, filled(room, 0));
}

TEST_F(DispatcherGets, a_refusal_is_told_by_sync_and_what_comes_after_it_is_dropped) {
    victim.handled[1] = 1;
    victim.hears(1, Kind::failed, Failed{operation}, bytes_of(std::string_view("no such luck")), false);
    victim.poll();
    const auto told = victim.dispatcher->operations().sync(now());
    ASSERT_FALSE(told);
    EXPECT_EQ(told.error().text(), "node 1: no such luck");
    got(1, operation, 0, room);
    EXPECT_EQ(changed(), 0u);
    EXPECT_EQ(load_flag(arrived), 0u);
    EXPECT_TRUE(victim.dispatcher->operations().sync(now())) << "told once";
}

TEST_F(DispatcherMemory, blocks_that_were_got_go_to_their_places_whole) {
    std::vector<std::byte> target = filled(100, 0x44);
    victim.channel.on_sent = [&](Node, Bytes bytes) {
        Get get;
        Header header;
        if (!read_value(bytes, header) || header.kind != static_cast<std::uint16_t>(Kind::get) ||
            !read_value(bytes.subspan(sizeof header), get))
            return;
        const auto say = [&](std::uint64_t position, std::size_t count, int with) {
            victim.hears(1, Kind::got, Got{get.operation, position}, filled(count, with), false);
        };
        say(4, 8, 0xAA);  // between two blocks
        say(0, 7, 0xAA);  // less than one
        say(24, 8, 0xAA); // behind the last
        victim.hears(1, Kind::put, Put{asked, {get.operation.index | landing_bit, get.operation.generation, 0}, {}},
                     filled(24, 0xAA), false); // it is not in one piece
        say(16, 8, 0xEE);
        say(0, 16, 0xEE);
    };
    ASSERT_TRUE(victim.dispatcher->memory().get_strided(where(0, 1), target.data() + 50, {8, 3, 8, -16}));
    std::vector<std::byte> expected = filled(100, 0x44);
    for (const int start : {50, 34, 18}) std::fill_n(expected.begin() + start, 8, std::byte{0xEE});
    EXPECT_EQ(target, expected);
}

TEST_F(DispatcherMemory, the_answer_to_an_atomic_operation_is_its_own_node_s) {
    victim.channel.on_sent = [&](Node, Bytes bytes) {
        Header header;
        AtomicRequest request;
        if (!read_value(bytes, header) || header.kind != static_cast<std::uint16_t>(Kind::atomic) ||
            !read_value(bytes.subspan(sizeof header), request))
            return;
        const OperationId id = request.operation;
        victim.hears(2, Kind::done, Done{id, 111}, {}, false);
        victim.hears(1, Kind::done, Done{{id.index, id.generation + 1}, 222}, {}, false);
        victim.hears(2, Kind::failed, Failed{id}, {}, false);
        victim.hears(1, Kind::got, Got{id, 0}, {}, false); // no data is to come
        victim.hears(1, Kind::done, Done{id, 333}, {}, false);
        // Nor does anything count that comes before the waiting thread has taken the answer.
        victim.hears(2, Kind::done, Done{id, 444}, {}, false);
        victim.hears(1, Kind::done, Done{id, 555}, {}, false);
        victim.hears(1, Kind::failed, Failed{id}, {}, false);
    };
    const auto before = victim.dispatcher->memory().atomic(where(8, 1), {Atomic::add, 8, 1, 0});
    ASSERT_TRUE(before) << before.error().text();
    EXPECT_EQ(*before, 333u);
}

// ---- calls of the program

TEST_F(DispatcherMemory, what_the_program_names_outside_of_a_segment_is_refused_before_anything_is_sent) {
    Dispatcher& dispatcher = *victim.dispatcher;
    std::vector<std::byte> own(page + 1);
    Flag flag = 0;
    for (const Node node : {0u, 1u}) { // by stores, and by messages
        for (const auto& [offset, bytes] : parts_outside) {
            const global_ptr<std::byte> place = where(offset, node);
            const MutableBytes part = MutableBytes(own).first(bytes);
            EXPECT_FALSE(dispatcher.memory().put(place, part, {})) << bytes << " at " << offset;
            EXPECT_FALSE(dispatcher.memory().start_put(place, part, {})) << bytes << " at " << offset;
            EXPECT_FALSE(dispatcher.memory().copy(place, where(0, node), bytes, {})) << bytes << " at " << offset;
            EXPECT_FALSE(dispatcher.memory().copy(where(0, node), place, bytes, {})) << bytes << " at " << offset;
            EXPECT_EQ(dispatcher.segments().local(place, bytes), nullptr);
            if (bytes == 0) continue; // to get nothing is no error
            EXPECT_FALSE(dispatcher.memory().get(place, part)) << bytes << " at " << offset;
            EXPECT_FALSE(dispatcher.memory().start_get(place, part, &flag)) << bytes << " at " << offset;
            const GetPiece piece{place, part};
            EXPECT_FALSE(dispatcher.memory().get_pieces({&piece, 1})) << bytes << " at " << offset;
        }
        for (const auto& [offset, bytes, count, stride] : blocks_outside) {
            EXPECT_FALSE(
                dispatcher.memory().put_strided(where(offset, node), own.data(), {bytes, count, 0, stride}, {}))
                << offset << " and " << stride;
            EXPECT_FALSE(dispatcher.memory().get_strided(where(offset, node), own.data(), {bytes, count, stride, 0}))
                << offset << " and " << stride;
        }
        for (const std::uint64_t offset : {std::uint64_t{page}, std::uint64_t{page - 4}, std::uint64_t{page - 7},
                                           std::uint64_t{4}, std::uint64_t{1}, farthest - 7}) {
            EXPECT_FALSE(dispatcher.memory().atomic(where(offset, node), {Atomic::add, 8, 1, 0})) << offset;
            EXPECT_FALSE(dispatcher.memory().put(where(0, node), {}, {Notice::Kind::set, ids[1], offset, 1})) << offset;
            EXPECT_FALSE(dispatcher.memory().start_put(where(0, node), {}, {Notice::Kind::set, ids[1], offset, 1}))
                << offset;
            EXPECT_FALSE(
                dispatcher.memory().copy(where(0, 0), where(8, node), 8, {Notice::Kind::count, ids[1], offset, 1}))
                << offset;
        }
    }
    for (const auto& [offset, bytes] : parts_outside)
        EXPECT_FALSE(dispatcher.memory().check_store("store", where(offset, 0), bytes, {})) << offset;
    EXPECT_FALSE(dispatcher.memory().check_store("store", {0, 0, 0}, 0, {})) << "heaps are not alike";
    EXPECT_FALSE(dispatcher.memory().check_store("store", where(0, 0), 0, {Notice::Kind::set, ids[1], page - 7, 1}));
    EXPECT_TRUE(dispatcher.memory().check_store("store", where(0, 0), page, {Notice::Kind::set, ids[1], page - 8, 1}));
    EXPECT_TRUE(victim.channel.take_sent().empty());
    EXPECT_TRUE(is_untouched());
    EXPECT_TRUE(dispatcher.operations().sync(now())) << "nothing was begun";
}

TEST_F(DispatcherMemory, nodes_beyond_the_last_are_refused) {
    Dispatcher& dispatcher = *victim.dispatcher;
    std::vector<std::byte> own(8);
    EXPECT_TRUE(dispatcher.memory().put(where(0, 2), own, {}));
    const GetPiece piece{where(0, 3), own};
    EXPECT_FALSE(dispatcher.memory().put(where(0, 3), own, {}));
    EXPECT_FALSE(dispatcher.memory().start_put(where(0, 3), own, {}));
    EXPECT_FALSE(dispatcher.memory().get(where(0, 3), own));
    EXPECT_FALSE(dispatcher.memory().start_get(where(0, 3), own, nullptr));
    EXPECT_FALSE(dispatcher.memory().get_pieces({&piece, 1}));
    EXPECT_FALSE(dispatcher.memory().copy(where(0, 3), where(0, 0), 8, {}));
    EXPECT_FALSE(dispatcher.memory().copy(where(0, 0), where(0, 3), 8, {}));
    EXPECT_FALSE(dispatcher.memory().put_strided(where(0, 3), own.data(), {8, 1, 0, 0}, {}));
    EXPECT_FALSE(dispatcher.memory().get_strided(where(0, 3), own.data(), {8, 1, 0, 0}));
    EXPECT_FALSE(dispatcher.memory().atomic(where(0, 3), {Atomic::add, 8, 1, 0}));
    EXPECT_FALSE(dispatcher.rendezvous().offer(1, 3, own, nullptr, 1));
    EXPECT_FALSE(dispatcher.rendezvous().accept(1, 3, own, nullptr, 1));
    EXPECT_EQ(dispatcher.segments().local(where(0, 3), 1), nullptr);
    EXPECT_EQ(dispatcher.segments().local(where(0, 2), 1), nullptr) << "it is not reached";
}

TEST_F(DispatcherMemory, the_notice_of_a_long_put_rides_on_its_last_piece) {
    const auto large = victim.dispatcher->segments().add(3 * chunk_bytes);
    ASSERT_TRUE(large);
    std::vector<std::byte> content = filled(2 * chunk_bytes + 1, 0x55);
    const Notice notice{Notice::Kind::set, ids[1], 8, 5};
    ASSERT_TRUE(victim.dispatcher->memory().put({1, large->id, 0}, content, notice));
    ASSERT_TRUE(victim.dispatcher->memory().start_put({1, large->id, 0}, content, notice));
    const auto pieces = victim.sent(Kind::put);
    ASSERT_EQ(pieces.size(), 6u);
    for (std::size_t i = 0; i < 6; ++i) {
        const Put head = pieces[i].head<Put>();
        EXPECT_EQ(head.to.offset, i % 3 * chunk_bytes);
        EXPECT_EQ(pieces[i].data<Put>().size(), i % 3 == 2 ? 1 : chunk_bytes);
        EXPECT_EQ(head.notice.kind, i % 3 == 2 ? Notice::Kind::set : Notice::Kind::none) << i;
    }
}

TEST_F(DispatcherMemory, what_somebody_waits_for_is_not_held_back) {
    const Notice notice{Notice::Kind::set, ids[1], 8, 5};
    std::vector<std::byte> own(2048);
    ASSERT_TRUE(victim.dispatcher->memory().put(where(16, 1), Bytes(own).first(8), {}));
    EXPECT_EQ(victim.channel.flushes(), 0u) << "small messages share a packet";
    ASSERT_TRUE(victim.dispatcher->memory().put(where(16, 1), Bytes(own).first(8), notice));
    EXPECT_EQ(victim.channel.flushes(), 1u);
    ASSERT_TRUE(victim.dispatcher->memory().put_strided(where(16, 1), own.data(), {8, 2, 8, 16}, notice));
    EXPECT_EQ(victim.channel.flushes(), 2u);
    ASSERT_TRUE(victim.dispatcher->memory().start_put(where(16, 1), own, notice));
    EXPECT_EQ(victim.channel.flushes(), 3u);
}

// ---- nodes of this host

TEST(DispatcherOnOneHost, a_flag_that_is_set_by_a_store_is_told_to_a_node_that_sleeps_and_to_no_other) {
    Windows windows(3, 1 << 20, {0, 1});
    Victim victim({}, {.memory = &windows});
    const auto made = victim.dispatcher->segments().add(page);
    ASSERT_TRUE(made);
    auto& page_of_1 = *reinterpret_cast<SharedPage*>(windows.direct(1, 0));
    const Notice notice{Notice::Kind::set, made->id, 8, 5};
    ASSERT_TRUE(victim.dispatcher->memory().put({1, made->id, 0}, {}, notice));
    EXPECT_TRUE(victim.channel.take_sent().empty()) << "it does not sleep";
    for (int i = 0; i < 2; ++i) {
        page_of_1.watching = 1;
        if (i == 0) ASSERT_TRUE(victim.dispatcher->memory().put({1, made->id, 0}, {}, notice));
        else ASSERT_TRUE(victim.dispatcher->memory().atomic({1, made->id, 8}, {Atomic::add, 8, 1, 0}));
        EXPECT_EQ(page_of_1.watching, 0u);
        EXPECT_EQ(victim.sent(Kind::nudge).size(), 1u);
        ASSERT_TRUE(victim.dispatcher->memory().put({1, made->id, 0}, {}, notice));
        EXPECT_TRUE(victim.channel.take_sent().empty()) << "it has been nudged";
    }
    Flag there = 0;
    ASSERT_TRUE(victim.dispatcher->memory().get({1, made->id, 8}, std::as_writable_bytes(std::span(&there, 1))));
    EXPECT_EQ(there, 5u);
    page_of_1.watching = 1;
    const Notice counting{Notice::Kind::count, made->id, 16, 0};
    auto* const counter =
        reinterpret_cast<Counter*>(victim.dispatcher->segments().local({1, made->id, 16}, sizeof(Counter)));
    counter->missing = 2;
    ASSERT_TRUE(victim.dispatcher->memory().put({1, made->id, 0}, {}, counting));
    EXPECT_TRUE(victim.channel.take_sent().empty()) << "one more is to come";
    ASSERT_TRUE(victim.dispatcher->memory().put({1, made->id, 0}, {}, counting));
    EXPECT_EQ(victim.sent(Kind::nudge).size(), 1u);
    EXPECT_EQ(counter->flag, 1u);
}

TEST(DispatcherOnOneHost, memory_of_another_node_is_written_up_to_its_bounds_and_no_further) {
    Windows windows(3, 1 << 20, {0, 1});
    Victim victim({}, {.memory = &windows});
    const auto made = victim.dispatcher->segments().add(page);
    const auto behind = victim.dispatcher->segments().add(page);
    ASSERT_TRUE(made && behind);
    std::vector<std::byte> own = filled(page + 1, 0xEE);
    for (const auto& [offset, bytes] : parts_outside)
        EXPECT_FALSE(victim.dispatcher->memory().put({1, made->id, offset}, Bytes(own).first(bytes), {})) << offset;
    for (const auto& [offset, bytes, count, stride] : blocks_outside) {
        const std::vector<std::byte> source(bytes * count);
        EXPECT_FALSE(victim.dispatcher->memory().put_strided({1, made->id, offset}, source.data(),
                                              {bytes, count, static_cast<std::ptrdiff_t>(bytes), stride}, {}))
            << offset;
    }
    const std::byte* const start = victim.dispatcher->segments().local({1, made->id, 0}, page);
    const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
    EXPECT_TRUE(std::all_of(start - page, start + 2 * page, is_zero));
    EXPECT_TRUE(victim.dispatcher->memory().put({1, made->id, 0}, Bytes(own).first(page), {}));
    EXPECT_TRUE(std::all_of(start - page, start, is_zero));
    EXPECT_TRUE(std::all_of(start, start + page, [](std::byte byte) { return byte == std::byte{0xEE}; }));
    EXPECT_TRUE(std::all_of(start + page, start + 2 * page, is_zero));
}

} // namespace
} // namespace kumi::engine::memory_test
