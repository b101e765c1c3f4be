#pragma once

// Functions of other nodes: answers are right, also of functions that wait for functions of other nodes; futures are
// waited for, put together, awaited, cancelled and dropped.

#include "soak/world.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kumi::soak {

class Calls {
public:
    Calls(Handlers& handlers, World& world);
    void act(Actor& actor);

private:
    using Path = std::vector<std::uint32_t>;

    void ask(Actor& actor);
    void ask_large(Actor& actor);
    void ask_twice(Actor& actor);
    void walk(Actor& actor);
    void ask_all(Actor& actor);
    void ask_any(Actor& actor);
    void ask_and_forget(Actor& actor);
    void ask_what_throws(Actor& actor);
    void ask_in_a_coroutine(Actor& actor);
    void gather(Actor& actor);

    /// What `square` answers on `node`.
    static std::uint64_t square_on(Node node, std::uint64_t value) { return mixed(node, value); }
    Future<std::uint64_t> both(Node first, Node second, std::uint64_t value);
    Path some_path(Actor& actor, bool& is_risky);
    void expect_square(const Result<std::uint64_t>& answer, Node node, std::uint64_t value, std::string_view what);

    World& world_;
    Function<std::uint64_t(std::uint64_t)> square_;
    Function<std::uint64_t(std::uint64_t, std::uint32_t)> slow_square_;
    Function<std::string(std::string)> reverse_;
    Function<std::uint64_t(Path, std::uint64_t)> walk_;       // waits for the next node
    Function<std::uint64_t(Path, std::uint64_t)> walk_ahead_; // returns the future of the next node
    Function<std::uint64_t(std::uint64_t)> throw_;
    Function<std::uint64_t(std::uint64_t, std::uint64_t)> add_;
};

} // namespace kumi::soak
