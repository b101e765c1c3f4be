#pragma once

// A node of a test: an engine on an end of some world's channel, and what tests say about it.

#include "conformance/world.hpp"

#include "kumi/engine/dispatcher.hpp"
#include "kumi/engine/engine.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <initializer_list>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace kumi::engine_test {

using conformance::deadline;
using conformance::seed;
using conformance::World;
using engine::Engine;
using pm::Channel;
using pm::Node;

inline constexpr long scale = sanitized ? 1 : 5;

/// The worlds of the conformance suite that differ to an engine, and some with hardly any room.
std::vector<World> worlds();

/// Where a test calls a function; std::source_location is not in clang 14.
struct Place {
    const char* file;
    int line;
    static Place here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
};

/// Thrown to end a node's part in a test that has failed already.
struct Stop {};

/// What a call answered; an error fails the test and ends this node's part in it.
template <class T>
T good(Result<T> result, Place where = Place::here()) {
    if (result) return *std::move(result);
    ADD_FAILURE_AT(where.file, where.line) << result.error().text();
    throw Stop{};
}
inline void good(const Result<void>& result, Place where = Place::here()) {
    if (result) return;
    ADD_FAILURE_AT(where.file, where.line) << result.error().text();
    throw Stop{};
}

/// An error that has these words in it.
template <class T>
void expect_error(const Result<T>& result, std::initializer_list<std::string_view> words,
                  Place where = Place::here()) {
    if (result) {
        ADD_FAILURE_AT(where.file, where.line) << "no error";
        return;
    }
    for (const std::string_view word : words)
        if (result.error().text().find(word) == std::string::npos)
            ADD_FAILURE_AT(where.file, where.line) << "no \"" << word << "\" in: " << result.error().text();
}

/// An error of that kind, with these words in it.
template <class T>
void expect_code(const Result<T>& result, ErrorCode code, std::initializer_list<std::string_view> words = {},
                 Place where = Place::here()) {
    expect_error(result, words, where);
    if (!result && result.error().code() != code)
        ADD_FAILURE_AT(where.file, where.line)
            << name_of(result.error().code()) << " instead of " << name_of(code) << ": " << result.error().text();
}

/// What may be known at once, or only elsewhere: then sync() tells.
template <class T>
void expect_error_by_sync(Engine& engine, const Result<T>& result, std::initializer_list<std::string_view> words,
                          Place where = Place::here()) {
    if (!result) expect_error(result, words, where);
    else expect_error(engine.sync(deadline()), words, where);
    good(engine.sync(deadline()), where); // told once
}

struct Setup {
    bool in_background = true;
    Duration spin_max = std::chrono::microseconds(20);
    Duration keepalive_every = engine::Dispatcher::Options{}.keepalive_every;
    std::function<Instant()> clock = now;
    std::size_t waiting_bytes_max = engine::Backlog::bytes_usual;
    std::size_t kept_bytes_max = engine::ByteWindows::bytes_of_all;

    engine::Dispatcher::Options options() const {
        // A simulation makes the same steps however busy the machine is.
        const bool is_simulated = !in_background && spin_max == Duration{0};
        return {{.spin_max = spin_max, .ignores_time = is_simulated},
                {in_background, {}},
                keepalive_every,
                clock,
                waiting_bytes_max,
                kept_bytes_max};
    }
};

inline Engine open(Channel& channel, Handlers&& handlers = {}, const Setup& setup = {}) {
    Engine engine(good(engine::Dispatcher::open(channel, std::move(handlers), setup.options())));
    engine.dispatcher().loop().start(); // not before: handlers reach their engine
    return engine;
}

/// Ends the program, with a word, if a node's part in a test takes too long: many calls have no deadline of their own.
class Watchdog {
public:
    explicit Watchdog(Node node) : thread_([this, node] { watch(node); }) {}
    ~Watchdog() {
        {
            const std::lock_guard lock(mutex_);
            is_over_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }

private:
    void watch(Node node) {
        std::unique_lock lock(mutex_);
        if (changed_.wait_for(lock, std::chrono::seconds(100), [this] { return is_over_; })) return;
        const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
        std::fprintf(stderr, "%s: node %u hangs; KUMI_SEED=%llu\n", test != nullptr ? test->name() : "?", node,
                     static_cast<unsigned long long>(seed()));
        std::abort();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_over_ = false;
    std::thread thread_; // last: it uses the others
};

/// All have come, and all that they had begun before is done.
inline void settle(Engine& engine, Place where = Place::here()) {
    good(engine.sync(deadline()), where);
    good(engine.barrier(deadline()), where);
}

/// Pointers that each node gives to all others, by node. Collective.
template <class T>
std::vector<global_ptr<T>> exchange(Engine& engine, global_ptr<T> mine) {
    const auto all = good(engine.memory().segment<global_ptr<T>>(engine.nodes()));
    for (Node node = 0; node < engine.nodes(); ++node) good(engine.memory().write(all.at(node, engine.node()), mine));
    settle(engine);
    return {all.local().begin(), all.local().end()};
}

/// A test that runs in every world, with some nodes.
class EngineTest : public testing::TestWithParam<World> {
protected:
    EngineTest() : trace_(__FILE__, __LINE__, "KUMI_SEED=" + std::to_string(seed())) {}

    /// The body makes an engine of its channel, by open(). What its handlers use is declared before that. It ends with
    /// a barrier if others may still want something of this node.
    static void run(Node nodes, const conformance::Body& body) {
        GetParam().run(nodes, [&](Channel& channel) {
            const Watchdog watchdog(channel.self());
            try {
                body(channel);
            } catch (const Stop&) {
            }
        });
    }
    /// Each node has an engine without handlers, and the nodes settle after the body. What the body has lent to the
    /// engine, such as the source of a put that was begun, must not be in use any more when the body returns.
    static void run_engines(Node nodes, const std::function<void(Engine&)>& body) {
        run(nodes, [&](Channel& channel) {
            Engine engine = open(channel);
            body(engine);
            settle(engine);
        });
    }

private:
    testing::ScopedTrace trace_;
};

// Byte i of a pattern is i * 7 + i / 256 + number * 13, modulo 256. So each block of 256 bytes has the multiples of 7,
// one after the other, from some multiple on. Patterns are written and compared by block: tests have many megabytes of
// them, and are compiled with little optimisation.
inline constexpr std::size_t pattern_block_bytes = 256;

/// The block at `offset`, which is a multiple of pattern_block_bytes.
inline const std::byte* pattern_block(std::size_t offset, std::uint64_t number) {
    static const auto multiples = [] {
        std::array<std::byte, 2 * pattern_block_bytes> all;
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(i * 7);
        return all;
    }();
    constexpr std::uint64_t inverse = 183; // of 7, modulo 256
    static_assert(7 * inverse % pattern_block_bytes == 1);
    return &multiples[(offset / pattern_block_bytes + number * 13) * inverse % pattern_block_bytes];
}

inline void fill_pattern(MutableBytes bytes, std::uint64_t number) {
    for (std::size_t at = 0; at < bytes.size(); at += pattern_block_bytes)
        std::memcpy(&bytes[at], pattern_block(at, number), std::min(pattern_block_bytes, bytes.size() - at));
}
inline std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t number) {
    std::vector<std::byte> content(bytes);
    fill_pattern(content, number);
    return content;
}
inline bool is_pattern(Bytes bytes, std::uint64_t number) {
    for (std::size_t at = 0; at < bytes.size(); at += pattern_block_bytes)
        if (std::memcmp(&bytes[at], pattern_block(at, number), std::min(pattern_block_bytes, bytes.size() - at)) != 0)
            return false;
    return true;
}

/// Small ones, and those around what an engine or a device may cut at.
inline std::vector<std::size_t> interesting_sizes(std::size_t largest) {
    std::vector<std::size_t> sizes;
    for (std::size_t size = 0; size < 40; ++size) sizes.push_back(size);
    for (std::size_t power = 64; power <= largest; power *= power < 4096 ? 2 : 4)
        for (const std::ptrdiff_t off : {-8, -1, 0, 1, 24}) sizes.push_back(power + static_cast<std::size_t>(off));
    std::erase_if(sizes, [&](std::size_t size) { return size > largest; });
    sizes.push_back(largest);
    return sizes;
}

#define KUMI_ENGINE_WORLDS(suite)                                                          \
    INSTANTIATE_TEST_SUITE_P(Worlds, suite, testing::ValuesIn(worlds()),                   \
                             [](const testing::TestParamInfo<World>& world) { return world.param.name; })

} // namespace kumi::engine_test
