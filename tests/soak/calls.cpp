#include "soak/calls.hpp"

#include <kumi/coroutine.hpp>

#include <algorithm>
#include <stdexcept>
#include <thread>

namespace kumi::soak {

using Path = std::vector<std::uint32_t>;

Calls::Calls(Handlers& handlers, World& world)
    : world_(world),
      square_(handlers.function("square", [this](std::uint64_t value) { return square_on(world_.self(), value); })),
      slow_square_(handlers.function("slow_square",
                                     [this](std::uint64_t value, std::uint32_t milliseconds) {
                                         std::this_thread::sleep_for(milliseconds * 1ms);
                                         return square_on(world_.self(), value);
                                     })),
      reverse_(handlers.function("reverse",
                                 [](std::string text) {
                                     std::reverse(text.begin(), text.end());
                                     return text;
                                 })),
      walk_(handlers.function("walk",
                              [this](Path path, std::uint64_t value) -> Result<std::uint64_t> {
                                  const std::uint64_t mine = square_on(world_.self(), value);
                                  if (path.empty()) return mine;
                                  const Node next = path.back();
                                  path.pop_back();
                                  return world_.job().invoke(next, walk_, path, mine).get(now() + 60s);
                              })),
      walk_ahead_(handlers.function("walk_ahead",
                                    [this](Path path, std::uint64_t value) -> Future<std::uint64_t> {
                                        const std::uint64_t mine = square_on(world_.self(), value);
                                        if (path.empty()) return ready(mine);
                                        const Node next = path.back();
                                        path.pop_back();
                                        return world_.job().invoke(next, walk_ahead_, path, mine);
                                    })),
      throw_(handlers.function("throw",
                               [](std::uint64_t value) -> std::uint64_t {
                                   throw std::runtime_error("no answer to " + std::to_string(value));
                               })),
      add_(handlers.function("add", [](std::uint64_t a, std::uint64_t b) { return a + b; })) {}

void Calls::act(Actor& actor) {
    switch (actor.random.below(11)) {
    case 0: return ask_large(actor);
    case 1: return ask_twice(actor);
    case 2: return ask_all(actor);
    case 3: return ask_any(actor);
    case 4: return ask_and_forget(actor);
    case 5: return ask_what_throws(actor);
    case 6: return ask_in_a_coroutine(actor);
    case 7: return gather(actor);
    case 8: return ask(actor);
    default: return walk(actor);
    }
}

void Calls::expect_square(const Result<std::uint64_t>& answer, Node node, std::uint64_t value, std::string_view what) {
    if (world_.is_good(answer, world_.is_risky(node), what)) world_.expect(*answer, square_on(node, value), what);
}

void Calls::ask(Actor& actor) {
    const Node node = actor.some_node(world_);
    const std::uint64_t value = actor.random.next();
    expect_square(world_.job().invoke(node, square_, value).get(world_.deadline(world_.is_risky(node))), node, value,
                  "invoke");
}

void Calls::ask_large(Actor& actor) {
    const Node node = actor.some_node(world_);
    std::string text(actor.random.below(600000), 'x');
    for (char& c : text) c = static_cast<char>('a' + actor.random.below(20));
    const bool is_risky = world_.is_risky(node);
    const auto answer = world_.job().invoke(node, reverse_, text).get(world_.deadline(is_risky));
    std::reverse(text.begin(), text.end());
    if (world_.is_good(answer, is_risky, "invoke with a long text") && *answer != text)
        world_.wrong(fmt::format("node {} has not reversed a text of {} bytes", node, text.size()));
}

/// The first wait is too short.
void Calls::ask_twice(Actor& actor) {
    const Node node = actor.some_node(world_);
    const std::uint64_t value = actor.random.next();
    auto future = world_.job().invoke(node, slow_square_, value, static_cast<std::uint32_t>(actor.random.below(30)));
    auto answer = future.get(now() + 1ms);
    if (!answer && answer.error().code() == ErrorCode::timed_out)
        answer = future.get(world_.deadline(world_.is_risky(node)));
    expect_square(answer, node, value, "invoke, waited for twice");
}

Path Calls::some_path(Actor& actor, bool& is_risky) {
    Path path;
    for (std::uint64_t i = actor.random.between(1, 6); i > 0; --i) path.push_back(actor.some_node(world_));
    for (const Node node : path) is_risky = is_risky || world_.is_risky(node);
    return path;
}

void Calls::walk(Actor& actor) {
    bool is_risky = false;
    Path path = some_path(actor, is_risky);
    const std::uint64_t value = actor.random.next();
    std::uint64_t expected = value;
    for (auto node = path.rbegin(); node != path.rend(); ++node) expected = square_on(*node, expected);
    const Node first = path.back();
    path.pop_back();
    const auto& function = actor.random.once_in(2) ? walk_ : walk_ahead_;
    const auto answer = world_.job().invoke(first, function, path, value).get(world_.deadline(is_risky));
    if (world_.is_good(answer, is_risky, "a walk")) world_.expect(*answer, expected, "a walk");
}

void Calls::ask_all(Actor& actor) {
    const std::uint64_t value = actor.random.next();
    std::vector<Future<std::uint64_t>> futures = world_.job().invoke_all(square_, value);
    auto answers = when_all(std::move(futures)).get(world_.deadline(world_.is_some_lost()));
    if (!world_.is_good(answers, world_.is_some_lost(), "when_all")) return;
    for (Node node = 0; node < world_.plan.nodes; ++node) expect_square((*answers)[node], node, value, "when_all");
}

void Calls::ask_any(Actor& actor) {
    const std::uint64_t value = actor.random.next();
    std::vector<Node> nodes;
    std::vector<Future<std::uint64_t>> futures;
    bool is_risky = true; // that none answers
    for (std::uint64_t i = actor.random.between(2, 4); i > 0; --i) {
        nodes.push_back(actor.some_node(world_));
        is_risky = is_risky && world_.is_risky(nodes.back());
        futures.push_back(world_.job().invoke(nodes.back(), slow_square_, value, static_cast<std::uint32_t>(i)));
    }
    auto first = when_any(std::move(futures)).get(world_.deadline(is_risky));
    if (!world_.is_good(first, is_risky, "when_any")) return;
    expect_square(first->answer, nodes[first->index], value, "when_any, first");
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (i == first->index) continue;
        if (actor.random.once_in(3)) first->others[i].cancel();
        else expect_square(first->others[i].get(world_.deadline(world_.is_risky(nodes[i]))), nodes[i], value,
                           "when_any, later");
    }
}

void Calls::ask_and_forget(Actor& actor) {
    for (std::uint64_t i = actor.random.between(1, 5); i > 0; --i) {
        auto future = world_.job().invoke(actor.some_node(world_), slow_square_, i, std::uint32_t{1});
        if (actor.random.once_in(2)) future.cancel();
    }
}

void Calls::ask_what_throws(Actor& actor) {
    const Node node = actor.some_node(world_);
    const auto answer = world_.job().invoke(node, throw_, std::uint64_t{7}).get(world_.deadline(world_.is_risky(node)));
    if (answer) world_.wrong("an answer of a function that throws");
    if (world_.is_risky(node)) return world_.judge(answer.error(), true, "invoke of what throws");
    if (answer.error().code() != ErrorCode::refused ||
        answer.error().text().find("no answer to 7") == std::string::npos)
        world_.wrong("another error than what was thrown: " + answer.error().text());
}

Future<std::uint64_t> Calls::both(Node first, Node second, std::uint64_t value) {
    auto one = world_.job().invoke(first, square_, value);
    auto other = world_.job().invoke(second, slow_square_, value, std::uint32_t{1});
    const auto a = co_await one;
    const auto b = co_await other;
    if (!a) co_return a.error();
    if (!b) co_return b.error();
    const auto sum = co_await world_.job().invoke(first, add_, *a, *b);
    co_return sum;
}

void Calls::ask_in_a_coroutine(Actor& actor) {
    const Node first = actor.some_node(world_), second = actor.some_node(world_);
    const std::uint64_t value = actor.random.next();
    const bool is_risky = world_.is_risky(first) || world_.is_risky(second);
    auto future = both(first, second, value);
    const auto sum = future.get(world_.deadline(is_risky));
    if (world_.is_good(sum, is_risky, "a coroutine"))
        world_.expect(*sum, square_on(first, value) + square_on(second, value), "a coroutine");
}

void Calls::gather(Actor& actor) {
    const Set set = actor.some_set(world_, world_.self());
    const bool is_risky = world_.is_risky(set);
    const std::uint64_t value = actor.random.next();
    if (actor.random.once_in(2)) {
        const auto all = world_.job().gather(set, square_, value).get(world_.deadline(is_risky));
        if (!world_.is_good(all, is_risky, "gather")) return;
        Set missing = set;
        for (const auto& [node, answer] : *all) {
            if (!missing.contains(node)) world_.wrong("an answer of no member, or twice, in a gather");
            missing.remove(node);
            world_.expect(answer, square_on(node, value), "gather");
        }
        for (const Node node : missing)
            if (!world_.is_risky(node)) world_.wrong(fmt::format("node {} is missing in a gather", node));
        return;
    }
    const auto sum = world_.job().reduce(set, add_, square_, value).get(world_.deadline(is_risky));
    if (!world_.is_good(sum, is_risky, "reduce")) return;
    std::uint64_t expected = 0;
    for (const Node node : set - sum->missing) expected += square_on(node, value);
    world_.expect(sum->value, expected, "reduce");
    for (const Node node : sum->missing)
        if (!world_.is_risky(node)) world_.wrong(fmt::format("node {} is missing in a reduce", node));
}

} // namespace kumi::soak
