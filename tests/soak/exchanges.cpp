#include "soak/exchanges.hpp"

#include <thread>

namespace kumi::soak {
namespace {

std::vector<std::uint64_t> words_of(std::uint64_t id, Node node, std::size_t count) {
    Random random(mixed(id, node, 3));
    std::vector<std::uint64_t> words(count);
    for (std::uint64_t& word : words) word = random.next();
    return words;
}

} // namespace

void Exchanges::start() {
    auto memory = world_.job().memory();
    words_ = must(memory.segment<std::uint64_t>(world_.plan.nodes * words_each));
    flags_ = must(memory.segment<Flag>(world_.plan.nodes));
    counter_ = must(memory.segment<Counter>(1));
}

void Exchanges::step(unsigned step) {
    const std::uint64_t id = (std::uint64_t{world_.epoch()} << 32) + step + 1;
    Actor all{Random(mixed(world_.plan.seed, id, 4)), 0};
    const Set candidates = world_.survivors();
    const Set set = all.some_set(world_, candidates.at(static_cast<Node>(all.random.below(candidates.size()))));
    const bool is_member = set.contains(world_.self()) && set.size() > 1;
    switch (all.random.below(5)) {
    case 0:
        if (!world_.is_some_lost()) barrier_of_all(all.random, id);
        return;
    case 1:
        if (!world_.is_some_lost()) use_segment(all.random, id);
        return;
    case 2:
        // A set of some would count what nodes send that are no members, and ahead.
        if (!world_.is_victim() && candidates.size() > 1) count_arrivals(all.random, candidates, id);
        return;
    case 3:
        if (is_member) rendezvous(all.random, set, id);
        return;
    default:
        if (is_member) pass_round(all.random, set, id);
    }
}

void Exchanges::meet(const Set& set) {
    const std::vector<Node> members(set.begin(), set.end());
    const auto token = must(world_.job().arrive(members));
    while (!world_.job().test(token)) {
        const auto waited = world_.job().wait(token, world_.deadline(false));
        if (!world_.is_good(waited, false, "barrier of some")) return;
    }
}

/// Each member puts words to the next one, and waits for those of the one before.
void Exchanges::pass_round(Random& random, const Set& set, std::uint64_t id) {
    const std::size_t count = 1 + random.size(words_each - 1);
    const Node rank = set.rank(world_.self());
    const Node next = set.at((rank + 1) % set.size()), before = set.at((rank + set.size() - 1) % set.size());
    const bool is_risky = world_.is_risky(set);
    auto memory = world_.job().memory();
    const Words words = words_of(id, world_.self(), count);
    const auto put = memory.put(words_.at(next, world_.self() * words_each), words,
                                Notice::set(flags_.at(next, world_.self()), id));
    (void)world_.is_good(put, is_risky, "put with a notice");
    const auto waited = world_.wait(flags_[before], id, is_risky);
    if (!world_.is_good(waited, is_risky, "wait for the flag of a put") || is_risky) return;
    const auto mine = words_.local().subspan(before * words_each, count);
    if (Words(mine.begin(), mine.end()) != words_of(id, before, count))
        world_.wrong(fmt::format("the {} words that node {} put are not those that the flag tells of", count, before));
    meet(set);
}

/// All members put words to one of them, which counts.
void Exchanges::count_arrivals(Random& random, const Set& set, std::uint64_t id) {
    const std::size_t count = 1 + random.size(words_each - 1);
    const Node root = set.at(static_cast<Node>(random.below(set.size())));
    auto memory = world_.job().memory();
    if (world_.self() != root) {
        const auto put = memory.put(words_.at(root, world_.self() * words_each), words_of(id, world_.self(), count),
                                    Notice::count(counter_.at(root)));
        (void)world_.is_good(put, false, "put that is counted");
        return meet(set);
    }
    memory.expect(counter_[0], set.size() - 1);
    (void)world_.is_good(world_.wait(counter_[0].flag, 1, false), false, "wait for a counter");
    for (const Node node : set) {
        if (node == root) continue;
        const auto part = words_.local().subspan(node * words_each, count);
        if (Words(part.begin(), part.end()) != words_of(id, node, count))
            world_.wrong(fmt::format("the {} words that node {} put were counted and are not there", count, node));
    }
    meet(set);
}

/// The first waits are too short.
void Exchanges::barrier_of_all(Random& random, std::uint64_t id) {
    const Node next = (world_.self() + 1) % world_.plan.nodes,
               before = (world_.self() + world_.plan.nodes - 1) % world_.plan.nodes;
    auto put = world_.job().memory().set_flag(flags_.at(next, world_.self()), id);
    (void)world_.is_good(put, false, "set_flag");
    world_.sync();
    const Instant last = world_.deadline(false);
    for (Duration time = random.between(0, 2000) * 1us;; time = 60s) {
        const auto waited = world_.job().barrier(now() + time);
        if (waited) break;
        if (waited.error().code() != ErrorCode::timed_out || now() > last)
            world_.judge(waited.error(), false, "barrier of all");
    }
    world_.expect(load_flag(flags_[before]), id, "what the node before has told, after a barrier");
    meet(Set::range(0, world_.plan.nodes));
}

void Exchanges::use_segment(Random& random, std::uint64_t id) {
    const std::size_t count = 1 + random.size(50000);
    const auto shift = static_cast<Node>(random.below(world_.plan.nodes));
    const Node next = (world_.self() + shift) % world_.plan.nodes,
               before = (world_.self() + world_.plan.nodes - shift) % world_.plan.nodes;
    auto memory = world_.job().memory();
    const auto segment = memory.segment<std::uint64_t>(count);
    if (!world_.is_good(segment, false, "segment")) return;
    for (const std::uint64_t word : segment->local())
        if (word != 0) world_.wrong("a new segment is not zero");
    meet(Set::range(0, world_.plan.nodes));
    (void)world_.is_good(memory.put(segment->at(next), words_of(id, world_.self(), count)), false, "put to a segment");
    world_.sync();
    meet(Set::range(0, world_.plan.nodes));
    const auto local = segment->local();
    if (Words(local.begin(), local.end()) != words_of(id, before, count))
        world_.wrong(fmt::format("a new segment of {} words has others than node {} has put", count, before));
    meet(Set::range(0, world_.plan.nodes));
    (void)world_.is_good(memory.free(*segment), false, "free of a segment");
    const auto late = memory.read(segment->at(next));
    if (late) world_.wrong("a segment that was freed can be read");
}

// ---- rendezvous

/// Members in pairs: the one with the lower rank gives.
void Exchanges::rendezvous(Random& random, const Set& set, std::uint64_t id) {
    const std::size_t bytes = random.size(400000);
    const bool giver_cancels = random.once_in(3), taker_cancels = random.once_in(3);
    const Node rank = set.rank(world_.self());
    const Node other_rank = rank % 2 == 0 ? rank + 1 : rank - 1;
    if (other_rank >= set.size()) return;
    const Node other = set.at(other_rank);
    Actor mine{Random(mixed(world_.plan.seed, id, world_.self(), 5)), 0};
    if (rank % 2 == 0) give(other, id, bytes, giver_cancels, mine);
    else take(other, id, bytes, taker_cancels, mine);
    if (!world_.is_risky(other)) buffers_.clear();
}

Exchanges::Buffer& Exchanges::buffer(std::vector<std::byte> bytes) {
    return *buffers_.emplace_back(std::make_unique<Buffer>(Buffer{std::move(bytes)}));
}

bool Exchanges::wait_for(const Buffer& buffer, Node other, const char* what) {
    const bool is_risky = world_.is_risky(other);
    const auto waited = world_.wait(buffer.flag, 1, is_risky);
    if (!waited && waited.error().code() == ErrorCode::cancelled) return false;
    return world_.is_good(waited, is_risky, what);
}

/// An offer that is cancelled in time is followed by another one, with other bytes.
void Exchanges::give(Node to, std::uint64_t key, std::size_t bytes, bool cancels, Actor& mine) {
    const bool is_risky = world_.is_risky(to);
    auto memory = world_.job().memory();
    Buffer& first = buffer(pattern(mixed(key, to, 1), bytes));
    const auto offered = memory.offer(key, to, first.bytes, &first.flag);
    if (!world_.is_good(offered, is_risky, "offer")) return;
    if (cancels) {
        std::this_thread::sleep_for(mine.random.below(500) * 1us);
        const auto cancelled = memory.cancel(*offered);
        if (cancelled) {
            first.bytes.assign(bytes, std::byte{0xdd}); // it is not read any more
            Buffer& second = buffer(pattern(mixed(key, to, 2), bytes));
            if (world_.is_good(memory.offer(key, to, second.bytes, &second.flag), is_risky, "second offer"))
                (void)wait_for(second, to, "second offer, taken");
            return;
        }
        if (cancelled.error().code() != ErrorCode::not_found)
            world_.judge(cancelled.error(), is_risky, "cancel of an offer");
    }
    (void)wait_for(first, to, "offer, taken");
}

void Exchanges::take(Node from, std::uint64_t key, std::size_t bytes, bool cancels, Actor& mine) {
    const bool is_risky = world_.is_risky(from);
    auto memory = world_.job().memory();
    const Buffer* withdrawn = nullptr;
    for (int attempt = 0; attempt < 3; ++attempt) {
        Buffer& target = buffer(std::vector<std::byte>(bytes));
        const auto accepted = memory.accept(key, from, target.bytes, &target.flag);
        if (!world_.is_good(accepted, is_risky, "accept")) return;
        if (cancels && attempt == 0) {
            std::this_thread::sleep_for(mine.random.below(500) * 1us);
            const auto cancelled = memory.cancel(*accepted, world_.deadline(is_risky));
            if (cancelled) {
                target.bytes.assign(bytes, std::byte{0}); // nothing is written here any more
                withdrawn = &target;
                continue;
            }
            if (cancelled.error().code() != ErrorCode::not_found)
                return world_.judge(cancelled.error(), is_risky, "cancel of an accept");
        }
        if (!wait_for(target, from, "accept, done")) {
            if (is_risky || load_flag(target.flag) != 0) return;
            continue; // the offer was cancelled
        }
        if (!is_risky && !has_pattern(target.bytes, mixed(key, world_.self(), 1)) &&
            !has_pattern(target.bytes, mixed(key, world_.self(), 2)))
            world_.wrong(fmt::format("an accept of {} bytes has other bytes than the offers", bytes));
        if (withdrawn != nullptr && withdrawn->bytes != std::vector<std::byte>(bytes))
            world_.wrong("an accept that was withdrawn has got bytes");
        return;
    }
    if (!is_risky) world_.wrong("three accepts were cancelled by at most two offers");
}

} // namespace kumi::soak
