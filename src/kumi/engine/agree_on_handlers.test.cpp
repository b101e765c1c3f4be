#include "kumi/engine/agree_on_handlers.hpp"

#include "kumi/engine/dispatcher.hpp"
#include "kumi/engine/call/invoke.hpp"
#include "loopback/meeting.hpp"
#include "loopback/scripted_channel.hpp"
#include "loopback/windows.hpp"

#include <gtest/gtest.h>
#include <thread>

namespace kumi::engine {
namespace {

/// One node's handlers and functions, in its own order.
using Registered = std::function<void(Handlers&)>;

struct Met {
    std::vector<std::unique_ptr<loopback::ScriptedChannel>> channels;
    std::vector<std::unique_ptr<Dispatcher>> dispatchers;
    std::vector<Result<void>> outcomes;

    std::string error_of(std::size_t node) const { return outcomes[node] ? "" : outcomes[node].error().text(); }
};

Met meet_as(const std::vector<Registered>& nodes, const std::vector<std::string>& hosts = {},
            const std::vector<pm::RemoteMemory*>& memories = {}) {
    Met met;
    const auto count = static_cast<Node>(nodes.size());
    for (Node node = 0; node < count; ++node) {
        met.channels.push_back(std::make_unique<loopback::ScriptedChannel>(count, node));
        if (!memories.empty()) met.channels.back()->memory = memories[node];
        Handlers handlers;
        nodes[node](handlers);
        met.dispatchers.push_back(*Dispatcher::open(*met.channels.back(), std::move(handlers),
                                        {.patience = {}, .progress = {.in_background = false, .core = {}}}));
        met.outcomes.emplace_back();
    }
    loopback::Place place(count);
    std::vector<std::thread> threads;
    for (Node node = 0; node < count; ++node)
        threads.emplace_back([&, node] {
            loopback::ThreadMeeting meeting(place, node);
            met.outcomes[node] =
                agree_on_handlers(*met.dispatchers[node], meeting, hosts.empty() ? "host" : hosts[node]);
        });
    for (std::thread& thread : threads) thread.join();
    return met;
}

void add_a(Handlers& handlers) {
    handlers.add("a", [](Call&, int) {});
}
void add_b(Handlers& handlers) {
    handlers.add("b", [](Call&, double, Bytes) {});
}
void add_f(Handlers& handlers) {
    handlers.function("f", [](int) { return 1; });
}
void add_g(Handlers& handlers) {
    handlers.function("g", [] {});
}

TEST(Meet, nodes_number_their_handlers_alike_in_whatever_order_they_registered_them) {
    const auto met = meet_as({[](Handlers& all) { add_b(all), add_a(all), add_g(all), add_f(all); },
                              [](Handlers& all) { add_f(all), add_g(all), add_a(all), add_b(all); }});
    ASSERT_EQ(met.error_of(0) + met.error_of(1), "");
    EXPECT_EQ(met.dispatchers[0]->messages().number_of(0), 1u) << "b";
    EXPECT_EQ(met.dispatchers[0]->messages().number_of(1), 0u) << "a";
    EXPECT_EQ(met.dispatchers[1]->messages().number_of(0), 0u);
    EXPECT_EQ(met.dispatchers[1]->messages().number_of(1), 1u);
    EXPECT_EQ(met.dispatchers[0]->calls().number_of(0), 1u) << "g";
    EXPECT_EQ(met.dispatchers[1]->calls().number_of(0), 0u) << "f";
    EXPECT_TRUE(met.dispatchers[0]->messages().has(1) && met.dispatchers[0]->calls().has(1));
    EXPECT_FALSE(met.dispatchers[0]->messages().has(2) || met.dispatchers[0]->calls().has(2));
}

TEST(Meet, whoever_lacks_something_is_told_what_and_so_is_who_has_it) {
    const auto met = meet_as({[](Handlers& all) { add_a(all), add_b(all); }, add_a});
    const std::string text =
        "node 0 has handler b(f8 *), and node 1 has nothing of that name: all nodes must have the same handlers and "
        "functions";
    EXPECT_EQ(met.error_of(0), text);
    EXPECT_EQ(met.error_of(1), text);
}

TEST(Meet, the_same_name_with_other_parameters_or_of_another_kind_is_something_else) {
    const auto other = meet_as({add_a, [](Handlers& all) { all.add("a", [](Call&, long) {}); }});
    EXPECT_EQ(other.error_of(0), "node 0 has handler a(i4), and node 1 has handler a(i8): all nodes must have the same "
                                 "handlers and functions, with the same parameters");
    EXPECT_NE(other.error_of(1).find("a(i8)"), std::string::npos) << other.error_of(1);
    const auto answer = meet_as({add_f, [](Handlers& all) { all.function("f", [](int) { return 1.0; }); }});
    EXPECT_NE(answer.error_of(0).find("function f"), std::string::npos) << answer.error_of(0);
    EXPECT_NE(answer.error_of(1).find("function f"), std::string::npos) << answer.error_of(1);
    const auto kind =
        meet_as({[](Handlers& all) { all.function("x", [] {}); }, [](Handlers& all) { all.add("x", [](Call&) {}); }});
    EXPECT_FALSE(kind.outcomes[0] || kind.outcomes[1]);
}

TEST(Meet, two_of_one_name_are_refused) {
    const auto handlers = meet_as({[](Handlers& all) { add_a(all), all.add("a", [](Call&, double) {}); }});
    EXPECT_NE(handlers.error_of(0).find("two handlers or functions have one name: a("), std::string::npos)
        << handlers.error_of(0);
    const auto functions = meet_as({[](Handlers& all) { add_f(all), add_g(all), add_f(all); }});
    EXPECT_NE(functions.error_of(0).find("one name: f("), std::string::npos) << functions.error_of(0);
    EXPECT_EQ(meet_as({[](Handlers& all) { add_a(all), all.function("a", [] {}); }}).error_of(0), "")
        << "a function and a handler are told apart";
}

TEST(Meet, nodes_learn_the_names_of_hosts_and_who_is_first_on_each) {
    loopback::Windows first(3, 1 << 20, {0}), others(3, 1 << 20, {1, 2});
    const std::string longest(60, 'x');
    const auto met = meet_as({add_a, add_a, add_a}, {"alpha", longest, longest}, {&first, &others, &others});
    for (const auto& dispatcher : met.dispatchers) {
        EXPECT_EQ(dispatcher->agreed().firsts, (std::vector<Node>{0, 1, 1}));
        EXPECT_EQ(dispatcher->name_of(0), "node 0 on alpha");
        EXPECT_EQ(dispatcher->name_of(2), "node 2 on " + longest.substr(0, 51)) << "what fits";
        EXPECT_TRUE(dispatcher->agreed().share_host(1, 2));
        EXPECT_FALSE(dispatcher->agreed().share_host(0, 1));
    }
}

/// Node 1 of two says something of its own.
class OddMeeting final : public pm::Meeting {
public:
    explicit OddMeeting(std::vector<std::byte> other) : other_(std::move(other)) {}
    Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine) override {
        return std::vector<std::vector<std::byte>>{{mine.begin(), mine.end()}, other_};
    }
    Result<base::Descriptor> share(base::Descriptor mine) override { return mine; }

private:
    std::vector<std::byte> other_;
};

TEST(Meet, a_node_of_another_version_is_named) {
    loopback::ScriptedChannel channel(2);
    const auto dispatcher =
        *Dispatcher::open(channel, {}, {.patience = {}, .progress = {.in_background = false, .core = {}}});
    constexpr std::size_t told = 64; // what a node tells
    OddMeeting cut{std::vector<std::byte>(told - 1)};
    EXPECT_EQ(agree_on_handlers(*dispatcher, cut, "host").error().text(),
              "node 1 runs another version of Kumi: run the same on all nodes");
    OddMeeting other{std::vector<std::byte>(told)};
    EXPECT_NE(agree_on_handlers(*dispatcher, other, "host").error().text().find("handlers and functions"),
              std::string::npos);
}

} // namespace
} // namespace kumi::engine
