#include "soak/collectives.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace kumi::soak {
namespace {

using Words = std::vector<std::uint64_t>;

/// The values that the member of that rank gives, for the member `to` where members give different ones to each.
Words values_of(std::uint64_t key, Node rank, std::size_t count, Node to = 0) {
    Random random(mixed(key, rank, to));
    Words words(count);
    for (std::uint64_t& word : words) word = random.next();
    return words;
}

/// The sums of the values of the ranks before `end`.
Words sums_of(std::uint64_t key, Node end, std::size_t count) {
    Words sums(count);
    for (Node rank = 0; rank < end; ++rank) {
        const Words words = values_of(key, rank, count);
        for (std::size_t i = 0; i < count; ++i) sums[i] += words[i];
    }
    return sums;
}

Words all_of(std::uint64_t key, Node size, std::size_t count) {
    Words all;
    for (Node rank = 0; rank < size; ++rank) {
        const Words words = values_of(key, rank, count);
        all.insert(all.end(), words.begin(), words.end());
    }
    return all;
}

} // namespace

void Collectives::step(unsigned step) {
    Actor all{Random(mixed(world_.plan.seed, world_.epoch(), step, 1)), 0};
    const Set candidates = world_.survivors();
    const Set set = all.some_set(world_, candidates.at(static_cast<Node>(all.random.below(candidates.size()))));
    if (!set.contains(world_.self())) return;
    const bool is_risky = world_.is_risky(set);
    auto group = must(world_.job().group(set));
    switch (all.random.below(4)) {
    case 0: return started_calls(all.random, group, is_risky);
    case 1: return objects(all.random, group, is_risky);
    default:
        for (std::uint64_t i = all.random.between(1, 4); i > 0; --i) one_call(all.random, group, is_risky);
    }
}

Collectives::Call Collectives::some_call(Random& random, group::Group& group, bool is_risky) const {
    const std::uint64_t key = random.next();
    const std::size_t count = random.size(10000);
    const auto root = static_cast<Node>(random.below(group.size()));
    // Some calls have too little time: they fail, or not, and the next call is not affected.
    const bool is_hasty = random.once_in(20);
    const Duration time = random.below(3000) * 1us;
    return {group, key, count, root, is_risky || is_hasty, is_hasty ? now() + time : world_.deadline(is_risky)};
}

void Collectives::expect(const Call& call, const Words& found, const Words& expected, const char* what) const {
    if (found == expected) return;
    const auto at = std::mismatch(found.begin(), found.end(), expected.begin(), expected.end());
    world_.wrong(fmt::format("{} of {} values among {}: value {} is wrong", what, call.count, call.group.set().text(),
                             at.first - found.begin()));
}

void Collectives::one_call(Random& random, group::Group& group, bool is_risky) {
    const std::uint64_t kind = random.below(10);
    const Call call = some_call(random, group, is_risky);
    switch (kind) {
    case 0: return barrier(call);
    case 1: return broadcast(call);
    case 2: return reduce(call);
    case 3: return gather(call);
    case 4: return scatter(call);
    case 5: return allgather(call);
    case 6: return alltoall(call);
    case 7: return scan(call);
    case 8: return allgatherv(call);
    default: return allreduce(call);
    }
}

void Collectives::barrier(const Call& call) {
    auto group = call.group;
    (void)world_.is_good(group.barrier(call.deadline), call.is_risky, "barrier of a group");
}

void Collectives::broadcast(const Call& call) {
    auto group = call.group;
    Words words = group.rank() == call.root ? values_of(call.key, call.root, call.count) : Words(call.count);
    if (world_.is_good(group.broadcast(call.root, words, call.deadline), call.is_risky, "broadcast"))
        expect(call, words, values_of(call.key, call.root, call.count), "broadcast");
}

void Collectives::reduce(const Call& call) {
    auto group = call.group;
    Words result(call.count);
    if (world_.is_good(group.reduce(call.root, values_of(call.key, group.rank(), call.count), result, group::sum,
                                    call.deadline),
                       call.is_risky, "reduce of a group") &&
        group.rank() == call.root)
        expect(call, result, sums_of(call.key, group.size(), call.count), "reduce");
}

void Collectives::allreduce(const Call& call) {
    auto group = call.group;
    Words result(call.count);
    const Words mine = values_of(call.key, group.rank(), call.count);
    if (world_.is_good(group.allreduce(mine, result, group::sum, call.deadline), call.is_risky, "allreduce"))
        expect(call, result, sums_of(call.key, group.size(), call.count), "allreduce");
}

void Collectives::gather(const Call& call) {
    auto group = call.group;
    Words all(group.rank() == call.root ? call.count * group.size() : 0);
    if (world_.is_good(group.gather(call.root, values_of(call.key, group.rank(), call.count), all, call.deadline),
                       call.is_risky, "gather of a group") &&
        group.rank() == call.root)
        expect(call, all, all_of(call.key, group.size(), call.count), "gather");
}

void Collectives::scatter(const Call& call) {
    auto group = call.group;
    const Words all = group.rank() == call.root ? all_of(call.key, group.size(), call.count) : Words();
    Words mine(call.count);
    if (world_.is_good(group.scatter(call.root, all, mine, call.deadline), call.is_risky, "scatter"))
        expect(call, mine, values_of(call.key, group.rank(), call.count), "scatter");
}

void Collectives::allgather(const Call& call) {
    auto group = call.group;
    Words all(call.count * group.size());
    if (world_.is_good(group.allgather(values_of(call.key, group.rank(), call.count), all, call.deadline),
                       call.is_risky, "allgather"))
        expect(call, all, all_of(call.key, group.size(), call.count), "allgather");
}

void Collectives::alltoall(const Call& call) {
    auto group = call.group;
    Words send, expected, receive(call.count * group.size());
    for (Node rank = 0; rank < group.size(); ++rank) {
        const Words there = values_of(call.key, group.rank(), call.count, rank),
                    here = values_of(call.key, rank, call.count, group.rank());
        send.insert(send.end(), there.begin(), there.end());
        expected.insert(expected.end(), here.begin(), here.end());
    }
    if (world_.is_good(group.alltoall(send, receive, call.deadline), call.is_risky, "alltoall"))
        expect(call, receive, expected, "alltoall");
}

void Collectives::scan(const Call& call) {
    auto group = call.group;
    Words result(call.count);
    if (world_.is_good(group.scan(values_of(call.key, group.rank(), call.count), result, group::sum, call.deadline),
                       call.is_risky, "scan"))
        expect(call, result, sums_of(call.key, group.rank() + 1, call.count), "scan");
}

void Collectives::allgatherv(const Call& call) {
    auto group = call.group;
    const auto count_of = [&](Node rank) { return mixed(call.key, rank) % (call.count + 1); };
    const auto all = group.allgatherv(values_of(call.key, group.rank(), count_of(group.rank())), call.deadline);
    if (!world_.is_good(all, call.is_risky, "allgatherv")) return;
    for (Node rank = 0; rank < group.size(); ++rank)
        expect(call, (*all)[rank], values_of(call.key, rank, count_of(rank)), "allgatherv");
}

/// Several calls are under way at once; some futures are dropped.
void Collectives::started_calls(Random& random, group::Group& group, bool is_risky) {
    struct Started {
        Call call;
        Words mine, result;
        Future<void> future;
        bool is_kept; // the same at all nodes, which does not matter
    };
    std::vector<std::unique_ptr<Started>> all;
    for (std::uint64_t i = random.between(1, 8); i > 0; --i) {
        auto started = std::make_unique<Started>(
            Started{some_call(random, group, is_risky), {}, {}, {}, !random.once_in(4)});
        const Call& call = started->call;
        started->mine = values_of(call.key, group.rank(), call.count);
        started->result.resize(call.count);
        started->future = group.start().allreduce(started->mine, started->result, group::sum, call.deadline);
        all.push_back(std::move(started));
    }
    auto last = group.start().allreduce(std::uint64_t{group.rank()}, group::sum, world_.deadline(is_risky));
    for (auto& started : all) {
        if (!started->is_kept) continue;
        const auto done = started->future.get(world_.deadline(false));
        if (world_.is_good(done, started->call.is_risky, "started allreduce"))
            expect(started->call, started->result,
                   sums_of(started->call.key, group.size(), started->call.count), "started allreduce");
    }
    // The calls end in order, so when the last one has ended, all buffers are free.
    const auto sum = last.get(world_.deadline(false));
    if (world_.is_good(sum, is_risky, "last started allreduce"))
        world_.expect(*sum, std::uint64_t{group.size()} * (group.size() - 1) / 2, "last started allreduce");
    else for (auto& started : all) static_cast<void>(started.release()); // calls before it may have timed out later
}

void Collectives::objects(Random& random, group::Group& group, bool is_risky) {
    using Map = std::map<std::uint32_t, std::string>;
    const std::uint64_t key = random.next();
    const std::size_t most = random.size(5000);
    const auto map_of = [&](Node rank) {
        return Map{{rank, std::string(mixed(key, rank) % (most + 1), static_cast<char>('a' + rank))}};
    };
    const auto root = static_cast<Node>(random.below(group.size()));
    const Instant deadline = world_.deadline(is_risky);
    const auto join = [](Map a, const Map& b) {
        a.insert(b.begin(), b.end());
        return a;
    };
    Map expected;
    for (Node rank = 0; rank < group.size(); ++rank) expected = join(std::move(expected), map_of(rank));
    switch (random.below(3)) {
    case 0: {
        const auto all = group.objects().allreduce(map_of(group.rank()), join, deadline);
        if (world_.is_good(all, is_risky, "allreduce of maps") && *all != expected) world_.wrong("allreduce of maps");
        return;
    }
    case 1: {
        const auto all = group.start().objects().allgather(map_of(group.rank()), deadline).get();
        if (!world_.is_good(all, is_risky, "allgather of maps")) return;
        for (Node rank = 0; rank < group.size(); ++rank)
            if ((*all)[rank] != map_of(rank)) world_.wrong("allgather of maps");
        return;
    }
    default:
        Map map = map_of(group.rank());
        if (world_.is_good(group.objects().broadcast(root, map, deadline), is_risky, "broadcast of a map") &&
            map != map_of(root))
            world_.wrong("broadcast of a map");
    }
}

} // namespace kumi::soak
