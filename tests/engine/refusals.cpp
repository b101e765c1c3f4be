// What cannot be is refused by an error that names it, and harms nobody; in every world.

#include "engine/node.hpp"

#include <algorithm>
#include <limits>

namespace kumi::engine_test {
namespace {

class Refusals : public EngineTest {};

constexpr std::size_t words_count = 100;

/// Three segments, with a pattern in the outer ones.
struct Ground {
    explicit Ground(Engine& its)
        : engine(its), before(good(its.memory().segment<std::uint64_t>(words_count))),
          words(good(its.memory().segment<std::uint64_t>(words_count))),
          after(good(its.memory().segment<std::uint64_t>(words_count))) {
        fill_pattern(std::as_writable_bytes(before.local()), 1);
        fill_pattern(std::as_writable_bytes(words.local()), 2);
        fill_pattern(std::as_writable_bytes(after.local()), 3);
        good(engine.barrier());
    }
    /// All is as it was, and the engine goes on.
    void check() {
        settle(engine);
        EXPECT_TRUE(is_pattern(std::as_bytes(before.local()), 1));
        EXPECT_TRUE(is_pattern(std::as_bytes(words.local()), 2));
        EXPECT_TRUE(is_pattern(std::as_bytes(after.local()), 3));
        good(engine.barrier());
        const Node other = (engine.node() + 1) % engine.nodes();
        good(engine.memory().write(words.at(other, 5), 55));
        settle(engine);
        EXPECT_EQ(words[5], 55u);
        good(engine.barrier());
    }
    /// What is at `words` already, so that whoever writes it changes nothing.
    static std::uint64_t content(std::size_t index) {
        const auto all = pattern(words_count * sizeof(std::uint64_t), 2);
        std::uint64_t word = 0;
        read_value(Bytes(all).subspan(index * sizeof word), word);
        return word;
    }
    Engine& engine;
    Segment<std::uint64_t> before, words, after;
};

/// All that may be done to memory, with room for eight words.
void expect_refused(Engine& engine, global_ptr<std::uint64_t> where, global_ptr<std::uint64_t> sound,
                    std::initializer_list<std::string_view> words, Place from = Place::here()) {
    std::vector<std::uint64_t> content(8);
    std::byte* const raw = reinterpret_cast<std::byte*>(content.data());
    const auto bytes = where.as<std::byte>();
    expect_error_by_sync(engine, engine.memory().put(where, content), words, from);
    expect_error_by_sync(engine, engine.memory().start_put(where, content), words, from);
    expect_error_by_sync(engine, engine.memory().put_strided(bytes, raw, {16, 4, 16, 16}), words, from);
    expect_error_by_sync(engine,
                         engine.memory().put_pieces(std::vector<PutPiece>{{bytes, std::as_bytes(std::span(content))}}),
                         words, from);
    expect_error_by_sync(engine, engine.memory().get(where, content), words, from);
    expect_error_by_sync(engine, engine.memory().start_get(where, content), words, from);
    expect_error_by_sync(engine, engine.memory().get_strided(bytes, raw, {16, 4, 16, 16}), words, from);
    expect_error_by_sync(
        engine, engine.memory().get_pieces(std::vector<GetPiece>{{bytes, std::as_writable_bytes(std::span(content))}}),
        words, from);
    expect_error_by_sync(engine, engine.memory().copy(where, sound, 8), words, from);
    expect_error_by_sync(engine, engine.memory().copy(sound, where, 8), words, from);
    EXPECT_EQ(engine.memory().local(where, 8), nullptr);
}

TEST_P(Refusals, memory_outside_a_segment) {
    run(3, [](Channel& channel) {
        Engine engine = open(channel);
        Ground ground(engine);
        const Node next = (engine.node() + 1) % 3;
        const auto sound = ground.words.here();
        for (const Node node : {next, engine.node()}) {
            const std::string name = "node " + std::to_string(node);
            expect_refused(engine, ground.words.at(node, words_count), sound, {"segment", name});
            expect_refused(engine, ground.words.at(node, words_count - 7), sound, {"segment", name});
            expect_refused(engine, {node, ground.words.id(), std::numeric_limits<std::uint64_t>::max() - 7}, sound,
                           {"segment", name});
            expect_refused(engine, {node, ground.words.id(), std::uint64_t{1} << 40}, sound, {"segment", name});
            expect_refused(engine, ground.words.at(node) - 1, sound, {"segment", name});
            expect_error_by_sync(engine, engine.memory().fetch_add(ground.words.at(node, words_count), 1),
                                 {"segment", name});
            expect_error_by_sync(engine, engine.memory().set_flag(ground.words.at(node, words_count)),
                                 {"segment", name});
        }
        ground.check();
    });
}

TEST_P(Refusals, segments_that_do_not_exist) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        Ground ground(engine);
        for (const SegmentId id : {SegmentId{77}, SegmentId{65'536}, SegmentId{1} << 31, ~SegmentId{0}})
            for (const Node node : {0u, 1u})
                expect_refused(engine, {node, id, 0}, ground.words.here(), {"segment", std::to_string(id)});
        ground.check();
    });
}

TEST_P(Refusals, memory_beyond_a_heap) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        Ground ground(engine);
        const auto mine = good(engine.memory().allocate<std::uint64_t>(10));
        good(engine.barrier());
        for (const std::uint64_t offset :
             {std::uint64_t{1} << 28, std::uint64_t{1} << 45, std::numeric_limits<std::uint64_t>::max() - 31})
            for (const Node node : {0u, 1u})
                expect_refused(engine, {node, 0, offset}, ground.words.here(),
                               {"heap", "node " + std::to_string(node)});
        expect_error(engine.memory().release(mine + 1), {});
        expect_error(engine.memory().release(mine.on(1 - engine.node())), {});
        good(engine.memory().release(mine));
        expect_error(engine.memory().release(mine), {}); // twice
        ground.check();
    });
}

TEST_P(Refusals, nodes_that_do_not_exist) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        Ground ground(engine);
        for (const Node node : {Node{2}, Node{1000}}) {
            const std::string name = "node " + std::to_string(node);
            expect_refused(engine, ground.words.at(node), ground.words.here(), {name});
            expect_error(engine.memory().fetch_add(ground.words.at(node), 1), {name});
            expect_error(engine.memory().set_flag(ground.words.at(node)), {name});
            expect_error(engine.memory().offer(1, node, {}), {name});
            expect_error(engine.memory().accept(1, node, {}), {name});
        }
        expect_refused(engine, global_ptr<std::uint64_t>{}, ground.words.here(), {}); // leads nowhere
        ground.check();
    });
}

TEST_P(Refusals, words_that_are_not_aligned) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        Ground ground(engine);
        for (const Node node : {0u, 1u}) {
            const auto odd = (ground.words.at(node).as<std::byte>() + 4).as<std::uint64_t>();
            const auto odder = (ground.words.at(node).as<std::byte>() + 2).as<std::uint32_t>();
            expect_error_by_sync(engine, engine.memory().fetch_add(odd, 1), {"align"});
            expect_error_by_sync(engine, engine.memory().swap(odder, 1), {"align"});
            expect_error_by_sync(engine, engine.memory().compare_exchange(odd, 0, 1), {"align"});
            expect_error_by_sync(engine, engine.memory().set_flag(odd), {"segment"});
            const std::size_t own = 9 + engine.node(); // the data arrives; nobody else writes there
            expect_error_by_sync(
                engine, engine.memory().write(ground.words.at(node, own), Ground::content(own), Notice::set(odd)),
                {"segment"});
        }
        ground.check();
    });
}

TEST_P(Refusals, notices_for_flags_that_are_nowhere) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        Ground ground(engine);
        for (const Node node : {0u, 1u}) {
            const std::size_t own = 9 + engine.node();
            const auto place = ground.words.at(node, own);
            const std::uint64_t same = Ground::content(own); // the data may arrive, or not
            const auto beyond = ground.words.at(node, words_count);
            expect_error_by_sync(engine, engine.memory().write(place, same, Notice::set(beyond)), {"segment"});
            expect_error_by_sync(engine, engine.memory().write(place, same, Notice::count(beyond.as<Counter>())),
                                 {"segment"});
            expect_error_by_sync(engine, engine.memory().write(place, same, Notice::count((beyond - 1).as<Counter>())),
                                 {"segment"});
            expect_error_by_sync(engine, engine.memory().copy(place, place, 1, Notice::set(beyond)), {"segment"});
        }
        ground.check();
    });
}

TEST_P(Refusals, shapes_that_leave_a_segment_in_between) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        Ground ground(engine);
        const std::vector<std::byte> source(4096);
        std::vector<std::byte> target(4096);
        const auto start = ground.words.at(1 - engine.node()).as<std::byte>();
        for (const Strided& shape :
             {Strided{8, 101, 8, 8}, Strided{8, 2, 8, -8},
              Strided{8, 3, 8, std::numeric_limits<std::ptrdiff_t>::max() / 2},
              Strided{8, 3, 8, std::numeric_limits<std::ptrdiff_t>::min() / 2},
              Strided{16, std::size_t{1} << 60, 0, 16}, Strided{std::size_t{1} << 62, 4, 0, 0}}) {
            expect_error_by_sync(engine, engine.memory().put_strided(start, source.data(), shape), {});
            const Strided back{shape.block_bytes, shape.count, shape.target_stride, shape.source_stride};
            expect_error_by_sync(engine, engine.memory().get_strided(start, target.data(), back), {});
        }
        good(engine.memory().put_strided(start, source.data(), {8, 0, 8, 8})); // nothing is no error
        good(engine.memory().put_strided(start, source.data(), {0, 5, 8, 8}));
        ground.check();
    });
}

TEST_P(Refusals, more_memory_than_there_is) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        Ground ground(engine);
        for (const std::size_t count :
             {std::size_t{1} << 44, std::size_t{1} << 60, std::numeric_limits<std::size_t>::max()}) {
            expect_error(engine.memory().segment<std::uint64_t>(count), {});
            expect_error(engine.memory().allocate<std::uint64_t>(count), {});
        }
        const auto still = good(engine.memory().segment<std::uint64_t>(10));
        EXPECT_EQ(still.size(), 10u);
        ground.check();
    });
}

TEST_P(Refusals, segments_that_differ_between_nodes) {
    run(3, [](Channel& channel) {
        Engine engine = open(channel);
        Ground ground(engine);
        expect_error(engine.memory().segment<std::uint64_t>(engine.node() == 1 ? 11 : 10), {"80", "88", "same"});
        const auto one = good(engine.memory().segment<std::uint64_t>(10)),
                   other = good(engine.memory().segment<std::uint64_t>(10));
        EXPECT_NE(one.id(), other.id());
        expect_error(engine.memory().free(engine.node() == 2 ? one : other), {"not all nodes"});
        good(engine.memory().write(one.at((engine.node() + 1) % 3), 7)); // both are still there
        good(engine.memory().write(other.at((engine.node() + 1) % 3), 8));
        settle(engine);
        EXPECT_EQ(one[0] + other[0], 15u);
        good(engine.barrier());
        good(engine.memory().free(other));
        expect_error(engine.memory().free(other), {"segment"});
        ground.check();
    });
}

TEST_P(Refusals, pieces_for_several_nodes) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        Ground ground(engine);
        const std::uint64_t same = ground.words[0];
        const std::vector<PutPiece> pieces{{ground.words.at(0).as<std::byte>(), bytes_of(same)},
                                           {ground.words.at(1).as<std::byte>(), bytes_of(same)}};
        expect_error(engine.memory().put_pieces(pieces), {"node"});
        ground.check();
    });
}

KUMI_ENGINE_WORLDS(Refusals);

} // namespace
} // namespace kumi::engine_test
