#include "soak/world.hpp"

#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace kumi::soak {

bool World::is_risky(const Set& set) const noexcept {
    for (const Node node : set)
        if (is_risky(node)) return true;
    return false;
}

void World::judge(const Error& error, bool is_risky, std::string_view what) const {
    const ErrorCode code = error.code();
    const bool is_of_loss = code == ErrorCode::node_lost || code == ErrorCode::timed_out ||
                            code == ErrorCode::refused || code == ErrorCode::ended;
    if (!is_risky || !is_of_loss)
        wrong(fmt::format("{}{}: {}: {}", what, is_risky ? " with a lost node" : "", name_of(code), error.text()));
}

void World::sync() const {
    // After an error the rest is waited for by the next call. Errors are as many as calls that failed, at most.
    for (int i = 0; i < 10000; ++i)
        if (is_good(job().sync(deadline(false)), is_some_lost(), "sync")) return;
    wrong("sync fails again and again");
}

Result<void> World::wait(const Flag& flag, Flag value, bool is_risky) const {
    const Instant last = deadline(is_risky);
    for (;;) {
        auto waited = job().memory().wait(flag, value, last);
        if (waited || waited.error().code() != ErrorCode::node_lost || is_risky || !is_some_lost()) return waited;
    }
}

void World::wrong(const std::string& what) const {
    const std::string line = fmt::format("soak: WRONG: node {} in epoch {}: {}\n", self_, epoch(), what);
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
    ::_exit(3);
}

Node Actor::some_node(const World& world) {
    if (random.once_in(10)) return static_cast<Node>(random.below(world.plan.nodes));
    const Set set = world.survivors();
    return set.at(static_cast<Node>(random.below(set.size())));
}

Set Actor::some_set(const World& world, Node member) {
    const std::uint64_t share = random.between(1, 4);
    Set set{member};
    for (const Node node : random.once_in(10) ? Set::range(0, world.plan.nodes) : world.survivors())
        if (random.below(4) < share) set.add(node);
    return set;
}

std::vector<std::byte> pattern(std::uint64_t key, std::size_t bytes) {
    std::vector<std::byte> content(bytes);
    Random random(key);
    for (std::size_t at = 0; at < bytes; at += 8) {
        const std::uint64_t word = random.next();
        std::memcpy(content.data() + at, &word, std::min<std::size_t>(8, bytes - at));
    }
    return content;
}

bool has_pattern(Bytes bytes, std::uint64_t key) {
    const auto expected = pattern(key, bytes.size());
    return bytes.empty() || std::memcmp(bytes.data(), expected.data(), bytes.size()) == 0;
}

} // namespace kumi::soak
