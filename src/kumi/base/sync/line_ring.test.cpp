#include "kumi/base/sync/line_ring.hpp"

#include "model/proof.hpp"

#include <array>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <vector>

namespace kumi::base {
namespace {

// ---- on the machine

struct Ring {
    explicit Ring(std::size_t count) : lines(count), writer(lines, control), reader(lines, control) {}

    std::vector<RingLine> lines;
    RingControl<MachineMemory> control;
    RingWriter<MachineMemory, RingLine> writer;
    RingReader<MachineMemory, RingLine> reader;
};

TEST(LineRing, a_full_ring_refuses_the_next_record_and_keeps_the_old_ones) {
    Ring ring(16);
    std::uint32_t written = 0;
    while (ring.writer.try_reserve(1) != nullptr) ring.writer.commit(1, written++);
    EXPECT_EQ(written, 15u); // one line stays free for the header behind the last record
    EXPECT_EQ(ring.writer.try_reserve(1), nullptr);
    for (std::uint32_t i = 0; i < written; ++i) {
        const RecordHeader header = ring.reader.front();
        ASSERT_EQ(header.kind, 1);
        EXPECT_EQ(header.bytes, i);
        ring.reader.pop(header);
    }
    EXPECT_TRUE(ring.reader.empty());
    EXPECT_NE(ring.writer.try_reserve(4), nullptr);
}

TEST(LineRing, old_payload_is_never_taken_for_a_record) {
    Ring ring(16);
    std::mt19937 random(7);
    std::vector<std::uint32_t> expected;
    std::size_t read = 0;
    for (std::uint32_t i = 0; i < 20'000; ++i) {
        const auto count = static_cast<std::uint32_t>(1 + random() % 4);
        if (RingLine* line = ring.writer.try_reserve(count)) {
            std::memset(line->payload, 0xff, sizeof line->payload);
            std::memset(static_cast<void*>(line + 1), 0xff, (count - 1) * sizeof(RingLine)); // looks like headers
            ring.writer.commit(2, i);
            expected.push_back(i);
        }
        for (auto polls = random() % 3; polls > 0; --polls) {
            const RecordHeader header = ring.reader.front();
            if (header.kind == 0) break;
            ASSERT_LT(read, expected.size());
            ASSERT_EQ(header.kind, 2);
            ASSERT_EQ(header.bytes, expected[read++]);
            ring.reader.pop(header);
        }
    }
    EXPECT_GT(read, 5'000u);
}

TEST(LineRing, the_reader_says_when_the_writer_waits_for_room) {
    Ring ring(8);
    std::uint32_t written = 0;
    while (ring.writer.try_reserve(1) != nullptr) ring.writer.commit(1, written++);
    EXPECT_TRUE(ring.writer.wait_for_room(1));
    EXPECT_FALSE(ring.reader.pop(ring.reader.front())); // a quarter of the ring is two lines
    EXPECT_TRUE(ring.reader.pop(ring.reader.front()));
    EXPECT_FALSE(ring.writer.wait_for_room(1));
}

TEST(LineRing, waiting_for_room_leaves_a_reservation_as_it_is) {
    Ring ring(16);
    ASSERT_NE(ring.writer.try_reserve(3), nullptr);
    EXPECT_FALSE(ring.writer.wait_for_room(1));
    ring.writer.commit(1, 100);
    EXPECT_EQ(ring.reader.front().lines, 3);
}

// ---- in every execution that the memory model allows

/// A line as the model sees it: eight bytes of payload stand for all.
template <class Memory>
struct ModelLine {
    typename Memory::template Atomic<std::uint64_t> header{0};
    typename Memory::template Plain<int> payload{0};
};

template <class Memory>
struct ModelRing {
    explicit ModelRing(std::size_t count) : lines(count), writer(lines, control), reader(lines, control) {}

    std::vector<ModelLine<Memory>> lines;
    RingControl<Memory> control;
    RingWriter<Memory, ModelLine<Memory>> writer;
    RingReader<Memory, ModelLine<Memory>> reader;
    std::vector<int> sent;     // the writer's
    std::vector<int> received; // the reader's

    bool send(int value, std::uint32_t count) {
        ModelLine<Memory>* line = writer.try_reserve(count);
        if (line == nullptr) return false;
        line->payload.set(value);
        // The payload of a longer record lies where headers of shorter ones lay, and may look like one.
        for (std::uint32_t i = 1; i < count; ++i) line[i].header.store(~std::uint64_t{0}, std::memory_order_relaxed);
        writer.commit(1, static_cast<std::uint32_t>(value));
        sent.push_back(value);
        return true;
    }

    /// True when the writer must be woken.
    bool receive() {
        const RecordHeader header = reader.front();
        if (header.kind == 0) return false;
        model::check(header.kind == 1, "a header that nobody wrote");
        model::check(reader.line().payload.get() == static_cast<int>(header.bytes), "payload of another record");
        received.push_back(static_cast<int>(header.bytes));
        return reader.pop(header);
    }

    void finish() {
        for (std::size_t i = 0; i < 16; ++i) receive();
        model::check(received == sent, "records lost, doubled or out of order");
    }
};

/// `lengths` are sent while the reader polls `polls` times.
template <class Memory>
model::Outcome explore_ring(std::size_t capacity, std::vector<std::uint32_t> lengths, int polls) {
    return model::explore([=]() -> model::Scenario {
        auto ring = std::make_shared<ModelRing<Memory>>(capacity);
        const auto write = [=] {
            for (std::size_t i = 0; i < lengths.size(); ++i) ring->send(static_cast<int>(i) + 1, lengths[i]);
        };
        const auto read = [=] {
            for (int i = 0; i < polls; ++i) ring->receive();
        };
        return {{write, read}, [=] { ring->finish(); }};
    });
}

TEST(LineRingModel, records_arrive_whole_once_and_in_order) {
    model::expect_proved(explore_ring<model::Memory>(4, {1, 1, 1}, 4));
    model::expect_proved(explore_ring<model::Memory>(8, {2, 1, 2}, 4));
}

TEST(LineRingModel, records_that_wrap_arrive_whole_once_and_in_order) {
    model::expect_proved(explore_ring<model::Memory>(4, {1, 1, 1, 1, 1}, 5));
    model::expect_proved(explore_ring<model::Memory>(8, {2, 2, 1, 2, 2}, 5));
}

/// All orderings dropped: what the tests above must not survive.
struct RelaxedMemory : model::Memory {
    template <class T>
    struct Atomic {
        explicit Atomic(T value) : atomic(value) {}
        T load(std::memory_order) const { return atomic.load(std::memory_order_relaxed); }
        void store(T value, std::memory_order) { atomic.store(value, std::memory_order_relaxed); }
        model::Atomic<T> atomic;
    };
};

TEST(LineRingModel, the_proof_fails_without_the_orderings) {
    EXPECT_TRUE(explore_ring<RelaxedMemory>(4, {1, 1, 1}, 4).failure);
}

/// A writer that found no room sleeps; the reader that makes room must learn of it.
template <class Memory>
model::Outcome explore_waiting() {
    return model::explore([]() -> model::Scenario {
        struct State : ModelRing<Memory> {
            using ModelRing<Memory>::ModelRing;
            bool writer_sleeps = false; // the writer's
            bool reader_wakes = false;  // the reader's
        };
        auto state = std::make_shared<State>(4);
        for (int i = 1; i <= 3; ++i) state->send(i, 1); // full
        const auto write = [=] {
            if (!state->send(4, 1)) state->writer_sleeps = state->writer.wait_for_room(1);
        };
        const auto read = [=] {
            for (int i = 0; i < 2; ++i) state->reader_wakes = state->receive() || state->reader_wakes;
        };
        const auto finally = [=] {
            model::check(!state->writer_sleeps || state->reader_wakes, "the writer sleeps though there is room");
        };
        return {{write, read}, finally};
    });
}

struct FencelessMemory : model::Memory {
    static void full_fence() noexcept {}
};

TEST(LineRingModel, a_writer_never_sleeps_through_room) { model::expect_proved(explore_waiting<model::Memory>()); }

TEST(LineRingModel, a_writer_would_sleep_through_room_without_the_fences) {
    EXPECT_TRUE(explore_waiting<FencelessMemory>().failure);
}

// ---- bounds

TEST(LineRing, a_record_fits_where_one_line_more_than_it_takes_is_free) {
    for (std::uint32_t count = 1; count <= 4; ++count)
        for (std::uint32_t filled = 0; filled < 16; ++filled) {
            Ring ring(16);
            for (std::uint32_t i = 0; i < filled; ++i) {
                ASSERT_NE(ring.writer.try_reserve(1), nullptr);
                ring.writer.commit(1, i);
            }
            const bool wraps = filled + count > 16; // then the lines before the end are lost to it
            EXPECT_EQ(ring.writer.try_reserve(count) != nullptr, !wraps && filled + count + 1 <= 16)
                << count << " lines behind " << filled;
            EXPECT_EQ(ring.writer.wait_for_room(count), wraps || filled + count + 1 > 16)
                << count << " lines behind " << filled;
        }
}

TEST(LineRing, lines_come_back_in_steps_of_a_quarter) {
    Ring ring(16);
    for (std::uint32_t i = 0; i < 15; ++i) ring.writer.try_reserve(1), ring.writer.commit(1, i);
    for (std::uint32_t i = 0; i < 3; ++i) {
        EXPECT_FALSE(ring.reader.pop(ring.reader.front()));
        EXPECT_EQ(ring.writer.try_reserve(1), nullptr) << "after " << i + 1;
    }
    EXPECT_FALSE(ring.reader.pop(ring.reader.front())) << "nobody waits";
    for (std::uint32_t i = 0; i < 4; ++i) {
        ASSERT_NE(ring.writer.try_reserve(1), nullptr);
        ring.writer.commit(1, 15 + i);
    }
    EXPECT_EQ(ring.writer.try_reserve(1), nullptr);
}

TEST(LineRing, a_record_that_would_wrap_starts_at_the_beginning_and_is_whole) {
    for (std::uint32_t at = 12; at < 16; ++at) {
        Ring ring(16);
        for (std::uint32_t i = 0; i < at; ++i) {
            ring.writer.try_reserve(1), ring.writer.commit(1, i);
            ring.reader.pop(ring.reader.front());
        }
        RingLine* const line = ring.writer.try_reserve(4);
        ASSERT_NE(line, nullptr) << at;
        EXPECT_EQ(line, at == 12 ? &ring.lines[12] : &ring.lines[0]) << at;
        EXPECT_TRUE(ring.reader.empty()) << "not before it is committed";
        ring.writer.commit(1, 77);
        EXPECT_EQ(ring.reader.front().bytes, 77u) << at;
        EXPECT_EQ(ring.reader.front().lines, 4) << at;
        EXPECT_EQ(&ring.reader.line(), line) << at;
        ring.reader.pop(ring.reader.front());
        EXPECT_EQ(ring.reader.front().kind, 0) << at;
    }
}

TEST(LineRing, who_waits_no_more_is_not_woken) {
    Ring ring(8);
    for (std::uint32_t i = 0; i < 7; ++i) ring.writer.try_reserve(1), ring.writer.commit(1, i);
    EXPECT_TRUE(ring.writer.wait_for_room(1));
    ring.writer.stop_waiting();
    for (std::uint32_t i = 0; i < 7; ++i) EXPECT_FALSE(ring.reader.pop(ring.reader.front()));
}

TEST(LineRing, a_closed_ring_refuses_everything_for_ever_and_takes_what_was_reserved_before) {
    for (const std::uint32_t before : {0u, 5u, 15u}) {
        Ring ring(16);
        for (std::uint32_t i = 0; i < before; ++i) ring.writer.try_reserve(1), ring.writer.commit(1, i);
        const bool is_reserved = ring.writer.try_reserve(1) != nullptr;
        ring.writer.close();
        if (is_reserved) ring.writer.commit(1, before);
        for (std::uint32_t i = 0; i < before + (is_reserved ? 1 : 0); ++i) {
            ASSERT_EQ(ring.reader.front().bytes, i);
            ring.reader.pop(ring.reader.front());
        }
        EXPECT_TRUE(ring.reader.empty());
        for (const std::uint32_t lines : {1u, 4u}) {
            EXPECT_EQ(ring.writer.try_reserve(lines), nullptr);
            EXPECT_TRUE(ring.writer.wait_for_room(lines)) << "there will be none";
        }
    }
}

TEST(LineRing, a_header_keeps_what_it_is_given) {
    const RecordHeader header = RecordHeader::from(RecordHeader{0xffff'fffe, 0xfffd, 0xfffc}.word());
    EXPECT_EQ(header.bytes, 0xffff'fffeu);
    EXPECT_EQ(header.lines, 0xfffd);
    EXPECT_EQ(header.kind, 0xfffc);
}

TEST(LineRingDeathTest, a_record_of_more_than_a_quarter_is_a_bug) {
    Ring ring(16);
    EXPECT_DEATH(ring.writer.try_reserve(5), "record_lines_max");
    EXPECT_DEATH(ring.writer.try_reserve(0), "count > 0");
}

} // namespace
} // namespace kumi::base
