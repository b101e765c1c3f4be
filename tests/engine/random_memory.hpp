#pragma once

// Random operations on remote memory, held against a model. On every node each node has a region of its own, in a
// segment, in the heap and in memory that the node exposes, which nobody else writes; so each knows what must be in all
// of its regions. Counters that all nodes change at once, by atomic operations and by notices, must add up in the end.

#include "engine/node.hpp"

#include <algorithm>
#include <deque>
#include <functional>

namespace kumi::engine_test {

class RandomMemory {
public:
    static constexpr std::size_t region_bytes = 150'001; // more than travels in one message
    static constexpr std::size_t words = 4;

    /// Collective.
    RandomMemory(const RandomMemory&) = delete;
    /// `store_everywhere` stores bytes at one place of a segment on all nodes; sync() waits for it. Engines alone have
    /// no such operation.
    using StoreEverywhere = std::function<void(global_ptr<std::byte>, Bytes)>;
    RandomMemory(Engine& engine, std::mt19937_64& random, StoreEverywhere store_everywhere = {})
        : engine_(engine), random_(random), store_everywhere_(std::move(store_everywhere)), nodes_(engine.nodes()) {
        const auto segment = good(engine.memory().segment<std::byte>(nodes_ * region_bytes + guard_bytes));
        flags_ = good(engine.memory().segment<Flag>(nodes_));
        counters_ = good(engine.memory().segment<Counter>(nodes_));
        noticed_ = good(engine.memory().segment<std::int64_t>(nodes_));
        wide_ = good(engine.memory().segment<std::uint64_t>(2 * words));
        narrow_ = good(engine.memory().segment<std::int32_t>(2 * words));
        guard_ = segment.local().last(guard_bytes);
        fill_pattern(guard_, 99);
        const auto heap = good(engine.memory().allocate<std::byte>(nodes_ * region_bytes));
        exposed_here_ = good(engine.memory().expose(exposed_));
        const auto heaps = engine_test::exchange(engine, heap);
        const auto exposed = engine_test::exchange(engine, exposed_here_);
        for (Node node = 0; node < nodes_; ++node)
            for (const auto& base : {segment.at(node), heaps[node], exposed[node]})
                regions_.push_back({base + static_cast<std::ptrdiff_t>(engine.node() * region_bytes),
                                    std::vector<std::byte>(region_bytes)});
        // heaps are not always zeroed
        for (Region& region : regions_) good(engine.memory().put(region.base, region.model));
        added_wide_.resize(nodes_ * words);
        added_narrow_.resize(nodes_ * words);
        notices_.resize(nodes_);
        good(engine.sync());
    }

    /// What is under way, if this ends early, has its sources and targets here.
    ~RandomMemory() {
        if (!has_finished_) (void)engine_.sync(deadline()).has_value();
        if (exposed_here_) (void)engine_.memory().conceal(exposed_here_).has_value();
    }

    void step() {
        switch (random_() % 19) {
        case 0: return put();
        case 1: return start_put();
        case 2: return write();
        case 3: return put_strided();
        case 4: return put_pieces();
        case 5: return copy();
        case 6: return store_everywhere_ ? store_everywhere() : put();
        case 7: return get();
        case 8: return start_get();
        case 9: return read();
        case 10: return get_strided();
        case 11: return get_pieces();
        case 12: return store();
        case 13: return add();
        case 14: return exchange();
        case 15: return sync();
        case 16: return put_by_future();
        case 17: return get_by_future();
        case 18: return change_by_future();
        }
    }

    /// Collective: looks at everything once more.
    void finish() {
        sync();
        for (Region& region : regions_) {
            std::vector<std::byte> now(region_bytes);
            good(engine_.memory().get(region.base, now));
            EXPECT_TRUE(now == region.model) << "the memory of node " << region.base.node();
        }
        for (Node node = 0; node < nodes_; ++node) {
            for (std::size_t i = 0; i < words; ++i) {
                good(engine_.memory().fetch_add(wide_.at(node, words + i), added_wide_[node * words + i]));
                good(engine_.memory().fetch_add(narrow_.at(node, words + i), added_narrow_[node * words + i]));
            }
            good(engine_.memory().write(noticed_.at(node, engine_.node()), notices_[node]));
        }
        settle(engine_);
        for (std::size_t i = 0; i < words; ++i) {
            EXPECT_EQ(wide_[i], wide_[words + i]);
            EXPECT_EQ(narrow_[i], narrow_[words + i]);
        }
        for (Node node = 0; node < nodes_; ++node) {
            EXPECT_EQ(counters_[node].missing, -noticed_[node]) << "arrivals from node " << node;
            EXPECT_EQ(counters_[node].flag, 0u) << "nothing was expected yet";
            engine_.memory().expect(counters_[node], noticed_[node]);
            EXPECT_EQ(load_flag(counters_[node].flag), 1u);
        }
        EXPECT_TRUE(is_pattern(guard_, 99)) << "somebody wrote where nobody should";
        has_finished_ = true;
        good(engine_.barrier());
    }

private:
    static constexpr std::size_t guard_bytes = 4096;
    static constexpr std::size_t kinds = 3; // of memory

    struct Range {
        std::size_t begin, end;
        bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
    };
    struct Region {
        global_ptr<std::byte> base;
        std::vector<std::byte> model;
        std::vector<Range> written{}, read{}; // by what is under way
    };

    Region& any_region() { return regions_[random_() % regions_.size()]; }
    std::size_t any_size() {
        const std::size_t most = random_() % 4 != 0 ? 64 : random_() % 4 != 0 ? 5000 : region_bytes;
        return random_() % (most + 1);
    }
    Range any_range(std::size_t bytes) {
        const std::size_t begin = random_() % (region_bytes - bytes + 1);
        return {begin, begin + bytes};
    }
    static global_ptr<std::byte> at(const Region& region, const Range& range) {
        return region.base + static_cast<std::ptrdiff_t>(range.begin);
    }

    /// What is under way is not ordered with what comes next: if they meet, it is waited for.
    void make_way(const Region& region, const Range& range) {
        const auto overlaps = [&](const Range& other) { return range.overlaps(other); };
        if (std::ranges::any_of(region.written, overlaps) || std::ranges::any_of(region.read, overlaps)) sync();
    }

    /// New content for that range.
    Bytes change(Region& region, const Range& range) {
        make_way(region, range);
        region.written.push_back(range);
        for (std::size_t i = range.begin; i < range.end; ++i) region.model[i] = static_cast<std::byte>(random_());
        return Bytes(region.model).subspan(range.begin, range.end - range.begin);
    }
    /// The same, kept until sync().
    Bytes change_and_keep(Region& region, const Range& range) {
        const Bytes content = change(region, range);
        return sources_.emplace_back(content.begin(), content.end());
    }
    Notice any_notice(Node node) {
        const auto kind = random_() % 4;
        if (kind == 0) return Notice::set(flags_.at(node, engine_.node()), ++flag_value_);
        if (kind == 1) return ++notices_[node], Notice::count(counters_.at(node, engine_.node()));
        return {};
    }

    void put() {
        Region& region = any_region();
        const Range range = any_range(any_size());
        const Bytes content = change(region, range);
        std::vector<std::byte> source(content.begin(), content.end());
        good(engine_.memory().put(at(region, range), source, any_notice(region.base.node())));
        std::ranges::fill(source, std::byte{0xEE});
    }
    void start_put() {
        Region& region = any_region();
        const Range range = any_range(any_size());
        const Bytes source = change_and_keep(region, range);
        good(engine_.memory().start_put(at(region, range), source, any_notice(region.base.node())));
    }
    void put_by_future() {
        Region& region = any_region();
        const Range range = any_range(any_size());
        const Bytes source = change_and_keep(region, range);
        auto done = engine_.memory().async().put(at(region, range), source, any_notice(region.base.node()));
        if (random_() % 4 != 0) return futures_.push_back(std::move(done));
        good(done.get(deadline()));
        std::vector<std::byte> target(range.end - range.begin);
        good(engine_.memory().get(at(region, range), target));
        EXPECT_TRUE(std::ranges::equal(target, source)) << "it is there when its future says so";
    }
    void write() {
        Region& region = any_region();
        const Range range = any_range(8);
        std::uint64_t value = 0;
        read_value(change(region, range), value);
        good(engine_.memory().write(at(region, range).as<std::uint64_t>(), value, any_notice(region.base.node())));
    }
    void put_strided() {
        Region& region = any_region();
        const Strided shape{1 + random_() % 200, 1 + random_() % 30, static_cast<std::ptrdiff_t>(200 + random_() % 50),
                            static_cast<std::ptrdiff_t>(200 + random_() % 900)};
        const Range all =
            any_range(shape.block_bytes + (shape.count - 1) * static_cast<std::size_t>(shape.target_stride));
        make_way(region, all);
        std::vector<std::byte> source(shape.count * static_cast<std::size_t>(shape.source_stride));
        for (std::size_t i = 0; i < shape.count; ++i) {
            const std::size_t begin = all.begin + i * static_cast<std::size_t>(shape.target_stride);
            const Bytes block = change(region, {begin, begin + shape.block_bytes});
            std::ranges::copy(block, source.begin() + static_cast<std::ptrdiff_t>(i) * shape.source_stride);
        }
        good(engine_.memory().put_strided(at(region, all), source.data(), shape, any_notice(region.base.node())));
    }
    void get_strided() {
        Region& region = any_region();
        const Strided shape{1 + random_() % 200, 1 + random_() % 30, static_cast<std::ptrdiff_t>(200 + random_() % 900),
                            static_cast<std::ptrdiff_t>(200 + random_() % 50)};
        const Range all =
            any_range(shape.block_bytes + (shape.count - 1) * static_cast<std::size_t>(shape.source_stride));
        make_way(region, all);
        std::vector<std::byte> target(shape.count * static_cast<std::size_t>(shape.target_stride)), expected = target;
        for (std::size_t i = 0; i < shape.count; ++i)
            std::copy_n(region.model.begin() + static_cast<std::ptrdiff_t>(all.begin) +
                            static_cast<std::ptrdiff_t>(i) * shape.source_stride,
                        shape.block_bytes, expected.begin() + static_cast<std::ptrdiff_t>(i) * shape.target_stride);
        good(engine_.memory().get_strided(at(region, all), target.data(), shape));
        EXPECT_EQ(target, expected);
    }
    /// Ranges of one region that do not touch.
    std::vector<Range> any_ranges() {
        std::vector<Range> ranges;
        for (std::size_t i = random_() % 6; i > 0; --i) {
            const Range range = any_range(any_size());
            if (std::ranges::none_of(ranges, [&](const Range& other) { return range.overlaps(other); }))
                ranges.push_back(range);
        }
        return ranges;
    }
    void put_pieces() {
        Region& region = any_region();
        const auto ranges = any_ranges();
        std::vector<PutPiece> pieces;
        for (const Range& range : ranges) make_way(region, range);
        for (const Range& range : ranges) pieces.push_back({at(region, range), change_and_keep(region, range)});
        if (!pieces.empty()) good(engine_.memory().put_pieces(pieces, any_notice(region.base.node())));
    }
    void get_pieces() {
        std::vector<GetPiece> pieces;
        std::deque<std::vector<std::byte>> targets;
        std::vector<std::pair<Region*, Range>> from;
        for (std::size_t i = random_() % 6; i > 0; --i) { // of several nodes
            Region& region = any_region();
            from.emplace_back(&region, any_range(any_size()));
            make_way(region, from.back().second);
            pieces.push_back({at(region, from.back().second),
                              targets.emplace_back(from.back().second.end - from.back().second.begin)});
        }
        good(engine_.memory().get_pieces(pieces));
        for (std::size_t i = 0; i < from.size(); ++i) expect_model(*from[i].first, from[i].second, targets[i]);
    }
    void copy() {
        Region& from = any_region();
        Region& to = any_region();
        const std::size_t bytes = any_size();
        const Range source = any_range(bytes), target = any_range(bytes);
        if (&from == &to && source.overlaps(target)) return;
        make_way(from, source);
        make_way(to, target);
        from.read.push_back(source);
        to.written.push_back(target);
        std::copy_n(from.model.begin() + static_cast<std::ptrdiff_t>(source.begin), bytes,
                    to.model.begin() + static_cast<std::ptrdiff_t>(target.begin));
        good(engine_.memory().copy(at(from, source), at(to, target), bytes, any_notice(to.base.node())));
    }
    void store_everywhere() {
        const Range range = any_range(any_size());
        // segments; the other kinds come between them
        for (std::size_t i = 0; i < regions_.size(); i += kinds) make_way(regions_[i], range);
        const Bytes content = change_and_keep(regions_[0], range);
        for (std::size_t i = kinds; i < regions_.size(); i += kinds) {
            std::ranges::copy(content, regions_[i].model.begin() + static_cast<std::ptrdiff_t>(range.begin));
            regions_[i].written.push_back(range);
        }
        store_everywhere_(at(regions_[0], range), content);
    }
    void get() {
        Region& region = any_region();
        const Range range = any_range(any_size());
        make_way(region, range);
        std::vector<std::byte> target(range.end - range.begin);
        good(engine_.memory().get(at(region, range), target));
        expect_model(region, range, target);
    }
    void start_get() {
        Region& region = any_region();
        const Range range = any_range(any_size());
        make_way(region, range);
        region.read.push_back(range);
        Get& begun = gets_.emplace_back(Get{std::vector<std::byte>(range.end - range.begin), {}, 0});
        begun.expected.assign(region.model.begin() + static_cast<std::ptrdiff_t>(range.begin),
                              region.model.begin() + static_cast<std::ptrdiff_t>(range.end));
        good(engine_.memory().start_get(at(region, range), begun.target, &begun.flag));
        if (random_() % 2 != 0) return;
        good(engine_.memory().wait(begun.flag, 1, deadline()));
        EXPECT_EQ(begun.target, begun.expected);
    }
    void get_by_future() {
        Region& region = any_region();
        const Range range = any_range(any_size());
        make_way(region, range);
        region.read.push_back(range);
        Get& begun = gets_.emplace_back(Get{std::vector<std::byte>(range.end - range.begin), {}, 1});
        begun.expected.assign(region.model.begin() + static_cast<std::ptrdiff_t>(range.begin),
                              region.model.begin() + static_cast<std::ptrdiff_t>(range.end));
        auto got = engine_.memory().async().get(at(region, range), begun.target);
        if (random_() % 2 != 0) return futures_.push_back(std::move(got));
        if (random_() % 2 != 0) {
            good(got.get(deadline()));
            EXPECT_EQ(begun.target, begun.expected);
            return;
        }
        got.cancel();
        begun.expected = begun.target; // as much as has come until now, and no more
    }
    void read() {
        Region& region = any_region();
        const Range range = any_range(4);
        make_way(region, range);
        const auto value = good(engine_.memory().read(at(region, range).as<std::uint32_t>()));
        expect_model(region, range, bytes_of(value));
    }
    /// By plain stores and loads, where that can be.
    void store() {
        Region& region = any_region();
        const Range range = any_range(any_size());
        std::byte* const memory = engine_.memory().local(at(region, range), range.end - range.begin);
        if (memory == nullptr) return;
        make_way(region, range);
        expect_model(region, range, {memory, range.end - range.begin});
        const Bytes content = change(region, range);
        std::ranges::copy(content, memory);
        region.written.pop_back(); // done
    }
    void add() {
        const Node node = static_cast<Node>(random_() % nodes_);
        const std::size_t word = random_() % words;
        const auto amount = static_cast<std::int32_t>(random_() % 2000) - 1000;
        good(engine_.memory().fetch_add(wide_.at(node, word), static_cast<std::uint64_t>(amount)));
        good(engine_.memory().fetch_add(narrow_.at(node, word), amount));
        added_wide_[node * words + word] += static_cast<std::uint64_t>(amount);
        added_narrow_[node * words + word] += amount;
    }
    /// The same by futures, some of which are waited for later.
    void change_by_future() {
        const Node node = static_cast<Node>(random_() % nodes_);
        const std::size_t word = random_() % words;
        for (int i = 0; i < 5; ++i)
            futures_.push_back(engine_.memory().async().fetch_add(wide_.at(node, word), 3).then(
                [](Result<std::uint64_t> before) { return before ? Result<void>() : Result<void>(before.error()); }));
        added_wide_[node * words + word] += 15;
    }
    /// Adds too.
    void exchange() {
        const Node node = static_cast<Node>(random_() % nodes_);
        const std::size_t word = random_() % words;
        std::uint64_t seen = good(engine_.memory().fetch_add(wide_.at(node, word), 0));
        for (std::uint64_t before;
             (before = good(engine_.memory().compare_exchange(wide_.at(node, word), seen, seen + 7))) != seen;)
            seen = before;
        added_wide_[node * words + word] += 7;
    }
    void sync() {
        good(engine_.sync(deadline()));
        for (Future<void>& future : futures_) good(future.get(deadline()));
        futures_.clear();
        for (const Get& begun : gets_) {
            EXPECT_EQ(load_flag(begun.flag), 1u);
            EXPECT_EQ(begun.target, begun.expected);
        }
        gets_.clear();
        sources_.clear();
        for (Region& region : regions_) region.written.clear(), region.read.clear();
    }
    static void expect_model(const Region& region, const Range& range, Bytes content) {
        EXPECT_TRUE(std::ranges::equal(content, Bytes(region.model).subspan(range.begin, range.end - range.begin)))
            << content.size() << " bytes at " << range.begin << " of node " << region.base.node();
    }

    struct Get {
        std::vector<std::byte> target, expected;
        Flag flag;
    };

    Engine& engine_;
    std::mt19937_64& random_;
    StoreEverywhere store_everywhere_; // may be empty
    Node nodes_;
    MutableBytes guard_;
    std::vector<std::byte> exposed_ = std::vector<std::byte>(nodes_ * region_bytes);
    global_ptr<std::byte> exposed_here_;
    std::vector<Region> regions_;                // by node, in its segment, in its heap and in what it exposes
    std::deque<std::vector<std::byte>> sources_; // of what is under way
    std::deque<Get> gets_;
    std::vector<Future<void>> futures_; // of what is under way
    Segment<Flag> flags_;       // by node that sets them
    Segment<Counter> counters_; // the same
    Segment<std::int64_t> noticed_;
    Segment<std::uint64_t> wide_;  // sums, then what they should be
    Segment<std::int32_t> narrow_;
    std::vector<std::uint64_t> added_wide_; // by node and word
    std::vector<std::int32_t> added_narrow_;
    std::vector<std::int64_t> notices_; // by node
    Flag flag_value_ = 0;
    bool has_finished_ = false;
};

} // namespace kumi::engine_test
