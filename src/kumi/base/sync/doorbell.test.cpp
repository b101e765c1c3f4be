#include "kumi/base/sync/doorbell.hpp"

#include "kumi/base/sync/line_ring.hpp"
#include "model/proof.hpp"

#include <array>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

namespace kumi::base {
namespace {

/// Two writers, each with a "ring" that is a single word; one reader, which follows the steps that a channel takes.
template <class Memory>
struct Bells {
    using Word = typename Memory::template Atomic<std::uint64_t>;

    explicit Bells(Fencing fencing)
        : keeper(state, words, fencing), buttons{DoorbellButton<Memory>(state, words[0], 0, fencing),
                                                 DoorbellButton<Memory>(state, words[0], 1, fencing)} {}

    DoorbellState<Memory> state;
    std::array<Word, 1> words;
    std::array<Word, 2> records; // not zero: a record is there
    DoorbellKeeper<Memory> keeper;
    std::array<DoorbellButton<Memory>, 2> buttons;
    std::array<bool, 2> wakes{}; // the writers': press() asked to wake the reader
    bool sleeps = false;         // the reader's: it goes to sleep now

    void write(std::size_t writer) {
        records[writer].store(1, std::memory_order_release);
        wakes[writer] = buttons[writer].press();
    }
    bool any_record() const {
        return records[0].load(std::memory_order_acquire) != 0 || records[1].load(std::memory_order_acquire) != 0;
    }
    /// As ShmemChannel::arm() does it.
    void try_to_sleep(std::uint64_t watched) {
        keeper.fall_asleep();
        if (watched != 0) keeper.unwatch(0, watched);
        keeper.fence();
        bool something = keeper.attention(0) != 0;
        for (std::size_t i = 0; i < 2; ++i)
            if ((watched >> i & 1) != 0) something = something || records[i].load(std::memory_order_acquire) != 0;
        sleeps = !something;
        if (something) keeper.wake_up();
    }
};

template <class Memory>
model::Outcome explore_sleep(Fencing fencing, std::uint64_t watched, std::size_t writers) {
    return model::explore([=]() -> model::Scenario {
        auto bells = std::make_shared<Bells<Memory>>(fencing);
        if (watched != 0) bells->keeper.watch(0, watched);
        model::Scenario scenario;
        for (std::size_t i = 0; i < writers; ++i) scenario.threads.push_back([=] { bells->write(i); });
        scenario.threads.push_back([=] { bells->try_to_sleep(watched); });
        scenario.finally = [=] {
            const bool woken = bells->wakes[0] || bells->wakes[1];
            model::check(!bells->sleeps || !bells->any_record() || woken, "the reader sleeps though there is a record");
            model::check(!(bells->wakes[0] && bells->wakes[1]), "both writers pay for one wake-up");
        };
        return scenario;
    });
}

TEST(DoorbellModel, a_reader_never_sleeps_through_a_record) {
    for (const Fencing fencing : {Fencing::by_reader, Fencing::by_writer}) {
        for (const std::uint64_t watched : {0u, 1u, 3u}) {
            SCOPED_TRACE(watched);
            model::expect_proved(explore_sleep<model::Memory>(fencing, watched, 1));
            model::expect_proved(explore_sleep<model::Memory>(fencing, watched, 2));
        }
    }
}

/// A line as the model sees it.
template <class Memory>
struct HeaderLine {
    typename Memory::template Atomic<std::uint64_t> header{0};
};

/// A node that found a ring full says that it sleeps, then that it waits for room, and looks once more. The reader of
/// that ring makes room and wakes whoever waits: it must then also see that the waiter sleeps.
template <class Memory>
model::Outcome explore_sleep_for_room() {
    return model::explore([]() -> model::Scenario {
        struct State {
            std::vector<HeaderLine<Memory>> lines{4};
            RingControl<Memory> control;
            RingWriter<Memory, HeaderLine<Memory>> writer{lines, control};
            RingReader<Memory, HeaderLine<Memory>> reader{lines, control};
            DoorbellState<Memory> bell;
            std::array<typename Memory::template Atomic<std::uint64_t>, 1> words;
            DoorbellKeeper<Memory> keeper{bell, words, Fencing::by_writer};
            bool sleeps = false; // the writer's
            bool wakes = false;  // the reader's
        };
        auto state = std::make_shared<State>();
        for (std::uint32_t i = 0; i < 3; ++i) state->writer.try_reserve(1), state->writer.commit(1, i); // full
        const auto wait = [=] {
            state->keeper.fall_asleep();
            state->keeper.fence();
            state->sleeps = state->writer.wait_for_room(1);
        };
        const auto read = [=] {
            const bool waits = state->reader.pop(state->reader.front());
            state->wakes = waits && DoorbellButton<Memory>::wake(state->bell);
        };
        return {{wait, read}, [=] { model::check(!state->sleeps || state->wakes, "asleep though there is room"); }};
    });
}

struct NoHeavyFence : model::Memory {
    static void heavy_fence() noexcept {}
};
struct NoFullFence : model::Memory {
    static void full_fence() noexcept {}
};

TEST(DoorbellModel, the_proof_fails_without_the_fences) {
    EXPECT_TRUE(explore_sleep<NoHeavyFence>(Fencing::by_reader, 1, 1).failure);
    EXPECT_TRUE(explore_sleep<NoFullFence>(Fencing::by_writer, 1, 1).failure);
}

/// Nodes that go, each with a word that says so, and a reader that polls once and falls asleep, as ShmemChannel does.
template <class Memory>
model::Outcome explore_announcements(Fencing fencing, bool takes) {
    return model::explore([=]() -> model::Scenario {
        struct State : Bells<Memory> {
            using Bells<Memory>::Bells;
            std::array<bool, 2> noticed{}; // the reader's
        };
        auto bells = std::make_shared<State>(fencing);
        const auto go = [=](std::size_t node) {
            bells->records[node].store(1, std::memory_order_release); // it is gone
            bells->wakes[node] = DoorbellButton<Memory>::announce(bells->state, bells->words[0]);
        };
        const auto read = [=] {
            if (bells->keeper.attention(0) != 0) {
                if (takes) bells->keeper.take(0);
                else bells->keeper.unwatch(0, 1);
                for (std::size_t node = 0; node < 2; ++node)
                    bells->noticed[node] = bells->records[node].load(std::memory_order_relaxed) != 0;
            }
            bells->try_to_sleep(0);
        };
        const auto check = [=] {
            const bool is_set = bells->keeper.attention(0) != 0;
            model::check((bells->noticed[0] && bells->noticed[1]) || is_set, "a node that is gone is never noticed");
            model::check(!bells->sleeps || !is_set || bells->wakes[0] || bells->wakes[1],
                         "the reader sleeps though a node is gone");
        };
        return {{[=] { go(0); }, [=] { go(1); }, read}, check};
    });
}

TEST(DoorbellModel, every_announcement_is_noticed_also_by_a_reader_that_falls_asleep) {
    for (const Fencing fencing : {Fencing::by_reader, Fencing::by_writer})
        model::expect_proved(explore_announcements<model::Memory>(fencing, true));
    EXPECT_TRUE(explore_announcements<model::Memory>(Fencing::by_writer, false).failure)
        << "the order that take() has is needed";
}

/// As ShmemChannel::forget_quiet_rings() does it.
template <class Memory>
model::Outcome explore_forgetting(Fencing fencing) {
    return model::explore([=]() -> model::Scenario {
        auto bells = std::make_shared<Bells<Memory>>(fencing);
        bells->keeper.watch(0, 3);
        const auto forget = [=] {
            bells->keeper.unwatch(0, 3);
            bells->keeper.fence();
            for (std::size_t i = 0; i < 2; ++i)
                if (bells->records[i].load(std::memory_order_acquire) != 0) bells->keeper.watch(0, 1u << i);
        };
        const auto finally = [=] {
            for (std::size_t i = 0; i < 2; ++i)
                model::check((bells->keeper.attention(0) >> i & 1) != 0, "a record whose ring nobody looks at");
        };
        return {{[=] { bells->write(0); }, [=] { bells->write(1); }, forget}, finally};
    });
}

TEST(DoorbellModel, a_writer_that_sleeps_for_room_is_woken) {
    model::expect_proved(explore_sleep_for_room<model::Memory>());
}

TEST(DoorbellModel, a_ring_that_is_forgotten_with_a_record_in_it_is_looked_at_again) {
    model::expect_proved(explore_forgetting<model::Memory>(Fencing::by_reader));
    model::expect_proved(explore_forgetting<model::Memory>(Fencing::by_writer));
    EXPECT_TRUE(explore_forgetting<NoHeavyFence>(Fencing::by_reader).failure);
}

} // namespace
} // namespace kumi::base
