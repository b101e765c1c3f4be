// Most of what barriers promise is held against random schedules. KUMI_SEEDS=<count> runs more or fewer, KUMI_SEED=<n>
// one.

#include "kumi/engine/barrier/barriers.hpp"

#include "simulation/seeds.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>

namespace kumi::engine {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t seeds_usually = 15;
#else
constexpr std::uint64_t seeds_usually = 150;
#endif

constexpr BarrierDrop all_drops[] = {BarrierDrop::wrong_sender, BarrierDrop::wrong_round, BarrierDrop::wrong_sequence,
                                     BarrierDrop::repeated, BarrierDrop::too_many_sets};
static_assert(std::size(all_drops) == Barriers::drop_causes);

std::uint64_t drops_of(const Barriers& barriers) {
    std::uint64_t sum = 0;
    for (const BarrierDrop cause : all_drops) sum += barriers.dropped(cause);
    return sum;
}

std::vector<Node> first_nodes(Node count) {
    std::vector<Node> nodes(count);
    std::iota(nodes.begin(), nodes.end(), Node{0});
    return nodes;
}

struct Trouble {
    bool is_ordered = true;    // steps of a pair arrive in the order in which they were sent
    bool is_repeating = false; // some arrive twice
    Node liars = 0;            // nodes besides the others that send steps of all kinds
};

/// Nodes that arrive at barriers of several sets at random times, and steps that take random times.
class Schedule {
public:
    Schedule(std::uint64_t seed, const Trouble& trouble) : random_(seed), trouble_(trouble) {
        honest_ = 1 + below(below(3) == 0 ? 40 : 9);
        first_sequence_ = below(2) == 0 ? 0 : 0u - below(60);
        delay_max_ = 1 + below(3) * below(3) * 1000;
        for (Node node = 0; node < honest_; ++node)
            nodes_.push_back(std::make_unique<Barriers>(node, honest_ + trouble.liars, first_sequence_));
        make_sets();
        make_programs();
    }

    void run() {
        for (Node node = 0; node < honest_; ++node) happen_at(below(delay_max_), node);
        for (std::uint32_t lie = 0; trouble_.liars != 0 && lie < 2000; ++lie) send_lie();
        while (!events_.empty() && !testing::Test::HasFailure()) {
            const auto event = events_.extract(events_.begin());
            now_ = event.key().first;
            handle(event.mapped());
        }
        if (!testing::Test::HasFailure()) check_end();
    }

private:
    struct Group {
        std::uint64_t id;
        std::vector<Node> members;
        std::vector<std::vector<std::uint64_t>> values; // by barrier, then by member
        std::vector<std::uint32_t> arrived;             // barriers, by member
        std::vector<std::uint32_t> completed;           // seen so, by member
    };
    struct Event {
        Node node;
        std::optional<std::pair<Node, BarrierStep>> from{}; // none: the node goes on with its program
    };

    std::uint32_t below(std::uint64_t limit) { return static_cast<std::uint32_t>(random_() % limit); }

    void make_sets() {
        groups_.push_back({0, first_nodes(honest_), {}, {}, {}});
        for (std::uint32_t i = below(12); i > 0; --i) {
            std::vector<Node> members = first_nodes(honest_);
            std::ranges::shuffle(members, random_);
            members.resize(1 + below(honest_));
            std::ranges::sort(members);
            const std::uint64_t id = Barriers::set_of(members);
            if (std::ranges::none_of(groups_, [=](const Group& group) { return group.id == id; }))
                groups_.push_back({id, members, {}, {}, {}});
        }
        for (Group& group : groups_) {
            group.arrived.resize(group.members.size());
            group.completed.resize(group.members.size());
            group.values.resize(below(below(4) == 0 ? 100 : 12));
            for (auto& values : group.values) {
                values.assign(group.members.size(), random_());
                if (below(4) == 0) std::ranges::generate(values, std::ref(random_));
            }
        }
    }

    /// Either all nodes go through the barriers in one order, each waiting for the one before, or each in its own, and
    /// nobody waits.
    void make_programs() {
        waits_ = below(3) == 0;
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < groups_.size(); ++i) order.insert(order.end(), groups_[i].values.size(), i);
        std::ranges::shuffle(order, random_);
        programs_.resize(honest_);
        for (Node node = 0; node < honest_; ++node) {
            if (!waits_) std::ranges::shuffle(order, random_);
            for (const std::size_t group : order)
                if (std::ranges::binary_search(groups_[group].members, node)) programs_[node].push_back(group);
            std::ranges::reverse(programs_[node]); // the next one is the last
        }
    }

    void happen_at(std::uint64_t time, Node node) { events_.emplace(std::pair(time, random_()), Event{node}); }

    void send(Node from, Node to, const BarrierStep& step) {
        ASSERT_NE(from, to);
        ++sent_;
        // A few take long.
        std::uint64_t due = now_ + below(below(10) == 0 ? delay_max_ * 20 : delay_max_);
        if (trouble_.is_ordered) {
            auto& last = last_due_[{from, to}];
            last = due = std::max(due, last + 1);
        }
        events_.emplace(std::pair(due, random_()), Event{to, std::pair(from, step)});
        if (trouble_.is_repeating && below(5) == 0)
            events_.emplace(std::pair(due + below(delay_max_ * 3), random_()), Event{to, std::pair(from, step)});
    }

    void send_lie() {
        const Group& group = groups_[below(groups_.size())];
        const auto some = [this](std::uint32_t likely, std::uint32_t limit) {
            return below(4) == 0 ? static_cast<std::uint32_t>(random_()) : likely + below(limit);
        };
        const BarrierStep step{below(3) == 0 ? random_() : group.id, some(first_sequence_ - 4, 50), some(0, 7),
                               random_(), random_()};
        const Node from =
            below(20) == 0 ? static_cast<Node>(honest_ + trouble_.liars + below(9)) : honest_ + below(trouble_.liars);
        events_.emplace(std::pair(below(delay_max_ * 20), random_()), Event{below(honest_), std::pair(from, step)});
    }

    void handle(const Event& event) {
        const auto send_on = [&](Node to, const BarrierStep& step) { send(event.node, to, step); };
        if (event.from) {
            nodes_[event.node]->on_step(event.from->first, event.from->second, send_on);
        } else if (!programs_[event.node].empty()) {
            go_on(event.node, send_on);
        }
        check(event.node);
    }

    void go_on(Node node, Barriers::Send send_on) {
        if (waits_ && nodes_[node]->has_any_under_way()) return happen_at(now_ + 1 + below(delay_max_), node);
        Group& group = groups_[programs_[node].back()];
        programs_[node].pop_back();
        const std::size_t place =
            static_cast<std::size_t>(std::ranges::find(group.members, node) - group.members.begin());
        const std::uint32_t barrier = group.arrived[place]++;
        const auto token = nodes_[node]->arrive(group.id, group.members, group.values[barrier][place], send_on);
        ASSERT_TRUE(token);
        ASSERT_EQ(token->set, group.id);
        ASSERT_EQ(token->sequence, first_sequence_ + barrier);
        happen_at(now_ + (below(2) == 0 ? 0 : below(delay_max_ * 2)), node);
    }

    void check(Node node) {
        bool under_way = false;
        for (Group& group : groups_) {
            const auto found = std::ranges::lower_bound(group.members, node);
            if (found == group.members.end() || *found != node) continue;
            const auto place = static_cast<std::size_t>(found - group.members.begin());
            std::uint32_t& completed = group.completed[place];
            const std::uint32_t before = completed;
            while (completed < group.arrived[place] && is_complete(node, group, completed)) ++completed;
            for (std::uint32_t later = completed; later < group.arrived[place]; ++later)
                ASSERT_FALSE(is_complete(node, group, later)) << "not in order";
            for (const std::uint32_t arrived : group.arrived)
                ASSERT_LE(completed, arrived) << "complete before all have come";
            for (std::uint32_t barrier = before; barrier < completed; ++barrier)
                if (completed - barrier <= Barriers::agreements_kept) check_agreement(node, group, barrier);
            under_way |= completed != group.arrived[place];
        }
        ASSERT_EQ(nodes_[node]->has_any_under_way(), under_way);
        ASSERT_LE(nodes_[node]->held(), Barriers::held_max * trouble_.liars + groups_.size() * honest_ * 2);
    }

    BarrierToken token_of(const Group& group, std::uint32_t barrier) const {
        return {group.id, first_sequence_ + barrier};
    }
    bool is_complete(Node node, const Group& group, std::uint32_t barrier) const {
        return nodes_[node]->is_complete(token_of(group, barrier));
    }

    void check_agreement(Node node, const Group& group, std::uint32_t barrier) {
        const auto agreement = nodes_[node]->agreement(token_of(group, barrier));
        ASSERT_TRUE(agreement);
        ASSERT_EQ(agreement->lowest, std::ranges::min(group.values[barrier]));
        ASSERT_EQ(agreement->highest, std::ranges::max(group.values[barrier]));
    }

    void check_end() {
        std::uint64_t steps = 0;
        for (const Group& group : groups_) {
            for (const std::uint32_t completed : group.completed)
                ASSERT_EQ(completed, group.values.size()) << "some are never complete";
            steps += group.values.size() * group.members.size() *
                     static_cast<std::size_t>(std::bit_width(group.members.size() - 1));
        }
        ASSERT_EQ(sent_, steps);
        const bool drops_none = !trouble_.is_repeating && trouble_.liars == 0;
        for (const auto& node : nodes_) {
            ASSERT_FALSE(node->has_any_under_way());
            if (!drops_none) continue;
            ASSERT_EQ(drops_of(*node), 0u);
            ASSERT_EQ(node->held(), 0u);
        }
    }

    std::mt19937_64 random_;
    Trouble trouble_;
    Node honest_;
    std::uint32_t first_sequence_;
    std::uint64_t delay_max_;
    std::vector<std::unique_ptr<Barriers>> nodes_;
    std::vector<Group> groups_;
    std::vector<std::vector<std::size_t>> programs_; // by node: groups to arrive at, the next one last
    bool waits_ = false;
    std::uint64_t now_ = 0;
    std::uint64_t sent_ = 0;
    std::map<std::pair<std::uint64_t, std::uint64_t>, Event> events_; // by time; at one time in random order
    std::map<std::pair<Node, Node>, std::uint64_t> last_due_;
};

void run_seeds(const Trouble& trouble) {
    simulation::for_each_seed(seeds_usually, [&](std::uint64_t seed) { Schedule(seed, trouble).run(); });
}

TEST(Barriers, complete_when_all_have_come_and_not_before_in_order_with_the_right_values) { run_seeds({}); }
TEST(Barriers, do_not_need_their_steps_in_order) { run_seeds({.is_ordered = false}); }
TEST(Barriers, take_no_step_twice) { run_seeds({.is_repeating = true}); }
TEST(Barriers, take_no_harm_from_steps_of_nodes_that_do_not_belong_to_them) { run_seeds({.liars = 2}); }

/// One node, whose steps are only counted.
struct Lonely {
    explicit Lonely(Node nodes, std::size_t sets = Barriers::sets_max) : barriers(0, nodes, 0, sets) {}

    Barriers barriers;
    std::uint64_t others = 0; // sets of this node alone, so many
    std::vector<std::pair<Node, BarrierStep>> sent;

    std::optional<BarrierToken> arrive(std::uint64_t set, std::span<const Node> members, std::uint64_t value = 0) {
        return barriers.arrive(set, members, value,
                               [this](Node to, const BarrierStep& step) { sent.emplace_back(to, step); });
    }
    void step(Node from, const BarrierStep& step) {
        barriers.on_step(from, step, [this](Node to, const BarrierStep& next) { sent.emplace_back(to, next); });
    }
};

TEST(Barriers, of_one_node_are_complete_at_once) {
    Lonely node(1);
    const auto token = node.arrive(0, first_nodes(1), 7);
    EXPECT_TRUE(node.barriers.is_complete(*token));
    EXPECT_TRUE(node.barriers.agreement(*token)->is_unanimous());
    EXPECT_EQ(node.barriers.agreement(*token)->lowest, 7u);
    EXPECT_FALSE(node.barriers.has_any_under_way());
    EXPECT_TRUE(node.sent.empty());
}

TEST(Barriers, that_never_were_are_not_complete_and_have_no_agreement) {
    Lonely node(1);
    EXPECT_FALSE(node.barriers.is_complete({}));
    EXPECT_FALSE(node.barriers.agreement({}));
    node.arrive(0, first_nodes(1));
    EXPECT_FALSE(node.barriers.agreement({0, 0u - 1}));
    EXPECT_FALSE(node.barriers.is_complete({0, 1}));
}

TEST(Barriers, tell_who_asked_for_something_else) {
    Lonely node(2);
    const auto token = node.arrive(0, first_nodes(2), 5);
    EXPECT_FALSE(node.barriers.agreement(*token));
    node.step(1, {0, 0, 0, 9, 9});
    ASSERT_TRUE(node.barriers.is_complete(*token));
    EXPECT_FALSE(node.barriers.agreement(*token)->is_unanimous());
    EXPECT_EQ(node.barriers.agreement(*token)->lowest, 5u);
    EXPECT_EQ(node.barriers.agreement(*token)->highest, 9u);
}

TEST(Barriers, are_on_the_wire_only_within_the_window_of_their_set) {
    Lonely node(2);
    for (std::uint32_t i = 0; i < 100; ++i) ASSERT_TRUE(node.arrive(0, first_nodes(2)));
    EXPECT_EQ(node.sent.size(), 1u); // of a new set
    node.step(1, {0, 0, 0, 0, 0});
    EXPECT_EQ(node.sent.size(), 1u + Barriers::window);
    for (std::uint32_t i = 1; i < 100; ++i) node.step(1, {0, i, 0, 0, 0});
    EXPECT_EQ(node.sent.size(), 100u);
    EXPECT_TRUE(node.barriers.is_complete({0, 99}));
    EXPECT_FALSE(node.barriers.has_any_under_way());
}

TEST(Barriers, are_refused_beyond_what_may_wait_and_go_on_when_there_is_room) {
    Lonely node(2);
    for (std::size_t i = 0; i < Barriers::waiting_max + 1; ++i) ASSERT_TRUE(node.arrive(0, first_nodes(2)));
    EXPECT_FALSE(node.arrive(0, first_nodes(2)));
    node.step(1, {0, 0, 0, 0, 0});
    const auto token = node.arrive(0, first_nodes(2));
    ASSERT_TRUE(token);
    EXPECT_EQ(token->sequence, Barriers::waiting_max + 1);
}

TEST(Barriers, of_too_many_sets_at_once_are_refused_until_one_has_nothing_under_way) {
    Lonely node(2);
    for (std::uint64_t set = 0; set < Barriers::busy_sets_max; ++set) ASSERT_TRUE(node.arrive(set, first_nodes(2)));
    EXPECT_EQ(node.barriers.busy_sets(), Barriers::busy_sets_max);
    EXPECT_FALSE(node.arrive(1000, first_nodes(2)));
    EXPECT_TRUE(node.arrive(1, first_nodes(2))); // it has one under way already
    node.step(1, {1, 0, 0, 0, 0});
    EXPECT_FALSE(node.arrive(1000, first_nodes(2))) << "its second is";
    EXPECT_TRUE(node.barriers.is_busy(1));
    node.step(1, {1, 1, 0, 0, 0});
    EXPECT_FALSE(node.barriers.is_busy(1));
    EXPECT_TRUE(node.arrive(1000, first_nodes(2)));
    EXPECT_FALSE(node.arrive(1001, first_nodes(2)));
    EXPECT_FALSE(node.arrive(1, first_nodes(2))) << "nor an old one";
}

TEST(Barriers, of_more_sets_than_a_node_may_ever_have_are_refused) {
    constexpr std::size_t most = 5000;
    Lonely node(1, most);
    const std::uint64_t first = Barriers::set_of(first_nodes(1)) | 0xffffff;
    for (std::uint64_t set = first; set < first + most; ++set) ASSERT_TRUE(node.arrive(set, first_nodes(1)));
    EXPECT_FALSE(node.arrive(first + most, first_nodes(1)));
    for (int again = 0; again < 3; ++again)
        for (std::uint64_t set = first; set < first + most; ++set) ASSERT_TRUE(node.arrive(set, first_nodes(1)));
    EXPECT_FALSE(node.arrive(first + most, first_nodes(1)));
}

TEST(Barriers, of_sets_that_change_all_the_time_take_little_memory_and_keep_their_sequences) {
    constexpr std::uint64_t sets = 200'000;
    const std::vector<Node> both{0, 1};
    Barriers nodes[2] = {{0, 2}, {1, 2}};
    std::vector<std::pair<Node, BarrierStep>> wire; // to whom
    const auto arrive = [&](Node node, std::uint64_t set) {
        const auto send = [&](Node to, const BarrierStep& step) { wire.emplace_back(to, step); };
        return *nodes[node].arrive(set, both, 0, send);
    };
    const auto deliver = [&] {
        for (const auto& [to, step] : std::exchange(wire, {}))
            nodes[to].on_step(1 - to, step, [](Node, const BarrierStep&) { ADD_FAILURE() << "one round only"; });
    };
    std::mt19937_64 random(1);
    std::map<std::uint64_t, std::uint32_t> old; // a few, again and again
    for (std::uint64_t i = 0; i < sets; ++i) {
        const bool is_old = i % 100 == 99;
        const std::uint64_t set = is_old ? random() % 50 * 0x9e3779b97f4a7c15u | std::uint64_t{1} << 63
                                         : random() | std::uint64_t{1} << 63;
        const Node first = random() % 2;
        const BarrierToken token = arrive(first, set);
        ASSERT_EQ(token.sequence, is_old ? old[set]++ : 0);
        if (random() % 2 == 0) deliver(); // the other node may have laid the set by
        ASSERT_FALSE(nodes[first].is_complete(token));
        ASSERT_EQ(arrive(1 - first, set).sequence, token.sequence);
        deliver();
        for (const Barriers& node : nodes) ASSERT_TRUE(node.is_complete(token));
        ASSERT_LE(nodes[0].large_sets(), Barriers::sets_kept);
        ASSERT_EQ(nodes[0].held() + nodes[1].held() + nodes[0].busy_sets(), 0u);
    }
    EXPECT_EQ(drops_of(nodes[0]) + drops_of(nodes[1]), 0u);
    EXPECT_EQ(old.size(), 50u);
}

TEST(Barriers, of_a_set_that_was_laid_by_go_on_where_it_was) {
    Lonely node(3);
    const std::vector<Node> pair{0, 2};
    const std::uint64_t set = Barriers::set_of(pair);
    const auto fill = [&] {
        for (std::uint64_t i = 0; i < Barriers::sets_kept * 2; ++i)
            ASSERT_TRUE(node.arrive(std::uint64_t{1} << 63 | ++node.others, std::vector<Node>{0}));
    };
    ASSERT_TRUE(node.arrive(set, pair));
    fill();
    EXPECT_FALSE(node.barriers.members_of(set).empty()) << "one is under way";
    node.step(2, {set, 0, 0, 0, 0});
    EXPECT_TRUE(node.barriers.is_complete({set, 0}));
    node.step(2, {set, 1, 0, 0, 0});
    fill();
    EXPECT_FALSE(node.barriers.members_of(set).empty()) << "a step is kept for the next one";
    EXPECT_TRUE(node.barriers.is_complete(*node.arrive(set, pair)));
    fill();
    EXPECT_TRUE(node.barriers.members_of(set).empty()) << "it is laid by";
    EXPECT_TRUE(node.barriers.is_complete({set, 1}));
    EXPECT_FALSE(node.barriers.is_complete({set, 2}));
    EXPECT_EQ(node.barriers.next_of(set), 2u);
    node.step(2, {set, 1, 0, 0, 0});
    node.step(2, {set, 2 + Barriers::window * 2, 0, 0, 0});
    EXPECT_EQ(node.barriers.dropped(BarrierDrop::wrong_sequence), 2u) << "what no honest node sends";
    for (const std::uint32_t sequence : {2u, 3u, 4u}) node.step(2, {set, sequence, 0, 0, 0});
    EXPECT_EQ(node.barriers.held(), 3u);
    for (const std::uint32_t sequence : {2u, 3u, 4u}) {
        const auto token = node.arrive(set, pair);
        EXPECT_EQ(token->sequence, sequence);
        EXPECT_TRUE(node.barriers.is_complete(*token));
    }
    EXPECT_EQ(node.barriers.held(), 0u);
    EXPECT_FALSE(node.barriers.is_complete(*node.arrive(set, pair)));
}

TEST(Barriers, that_are_given_up_take_no_room_from_others) {
    Lonely node(3);
    const std::vector<Node> pair{0, 2};
    for (std::uint64_t set = 0; set < Barriers::busy_sets_max; ++set) ASSERT_TRUE(node.arrive(set, pair));
    node.barriers.give_up(7, 1);
    EXPECT_FALSE(node.arrive(1000, pair)) << "its first one may still be complete";
    node.step(2, {7, 0, 0, 0, 0});
    EXPECT_TRUE(node.barriers.is_complete({7, 0}));
    EXPECT_TRUE(node.arrive(1000, pair));
    EXPECT_FALSE(node.arrive(1001, pair));
    node.barriers.give_up(8, 0);
    EXPECT_FALSE(node.barriers.is_busy(8));
    EXPECT_TRUE(node.arrive(1001, pair));
    node.barriers.give_up(8, 0);
    EXPECT_FALSE(node.arrive(1002, pair)) << "it is not counted twice";
    // Steps that were held for a set that this node never arrives at.
    node.step(1, {4711, 0, 0, 0, 0});
    EXPECT_EQ(node.barriers.held(), 1u);
    node.barriers.give_up(4711, 0);
    EXPECT_EQ(node.barriers.held(), 0u);
}

TEST(Barriers, know_which_node_they_hear_from_is_lacking_and_from_where_on) {
    Lonely node(5); // hears from 4, 3 and 1
    EXPECT_FALSE(node.barriers.first_lacking(0, 4));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(node.arrive(0, first_nodes(5)));
    for (const Node from : {4u, 3u, 1u}) EXPECT_EQ(node.barriers.first_lacking(0, from), 0u) << from;
    EXPECT_FALSE(node.barriers.first_lacking(0, 2)) << "that one tells others";
    node.step(4, {0, 0, 0, 0, 0});
    node.step(4, {0, 1, 0, 0, 0});
    EXPECT_EQ(node.barriers.first_lacking(0, 4), 2u);
    node.step(4, {0, 2, 0, 0, 0});
    EXPECT_FALSE(node.barriers.first_lacking(0, 4)) << "it has come as often as this node";
    EXPECT_EQ(node.barriers.first_lacking(0, 3), 0u);
    std::vector<Node> awaited, heard;
    node.barriers.for_each_awaited(0, [&](Node from) { awaited.push_back(from); });
    node.barriers.for_each_heard(0, [&](Node from) { heard.push_back(from); });
    EXPECT_EQ(awaited, (std::vector<Node>{3, 1}));
    EXPECT_EQ(heard, (std::vector<Node>{4, 3, 1}));
}

TEST(Barriers, hold_steps_for_sets_to_come_within_a_bound_for_each_sender) {
    Lonely node(3);
    for (std::uint64_t set = 0; set < Barriers::held_max + 10; ++set) node.step(1, {set, 0, 0, 0, 0});
    EXPECT_EQ(node.barriers.held(), Barriers::held_max);
    EXPECT_EQ(node.barriers.dropped(BarrierDrop::too_many_sets), 10u);
    node.step(2, {0, 0, 0, 3, 3}); // has room of its own
    EXPECT_EQ(node.barriers.held(), Barriers::held_max + 1);

    const std::vector<Node> pair{0, 2};
    const auto token = node.arrive(0, pair, 3); // 1 does not belong to it
    EXPECT_TRUE(node.barriers.is_complete(*token));
    EXPECT_EQ(node.barriers.agreement(*token)->lowest, 3u);
    EXPECT_EQ(node.barriers.dropped(BarrierDrop::wrong_sender), 1u);
    EXPECT_EQ(node.barriers.held(), Barriers::held_max - 1);
}

TEST(Barriers, count_why_they_drop_a_step) {
    Lonely node(5);
    const auto dropped = [&](Node from, const BarrierStep& step, BarrierDrop cause) {
        const std::uint64_t all_before = drops_of(node.barriers);
        const std::uint64_t before = node.barriers.dropped(cause);
        node.step(from, step);
        return node.barriers.dropped(cause) == before + 1 && drops_of(node.barriers) == all_before + 1;
    };
    // A set that is not known.
    EXPECT_TRUE(dropped(5, {9, 0, 0, 0, 0}, BarrierDrop::wrong_sender));
    EXPECT_TRUE(dropped(0, {9, 0, 0, 0, 0}, BarrierDrop::wrong_sender));
    EXPECT_TRUE(dropped(1, {9, 0, 3, 0, 0}, BarrierDrop::wrong_round));
    EXPECT_TRUE(dropped(1, {9, 1, 0, 0, 0}, BarrierDrop::wrong_sequence));
    EXPECT_TRUE(dropped(1, {9, 0u - 1, 0, 0, 0}, BarrierDrop::wrong_sequence));
    EXPECT_EQ(node.barriers.held(), 0u);
    // One that is: of 5 members the rounds are heard from 4, 3 and 1.
    const auto token = node.arrive(0, first_nodes(5));
    EXPECT_TRUE(dropped(99, {0, 0, 0, 0, 0}, BarrierDrop::wrong_sender));
    EXPECT_TRUE(dropped(3, {0, 0, 0, 0, 0}, BarrierDrop::wrong_sender));
    EXPECT_TRUE(dropped(4, {0, 0, 3, 0, 0}, BarrierDrop::wrong_round));
    EXPECT_TRUE(dropped(4, {0, 0, 0xffffffff, 0, 0}, BarrierDrop::wrong_round));
    EXPECT_TRUE(dropped(4, {0, 0u - 1, 0, 0, 0}, BarrierDrop::wrong_sequence));
    EXPECT_TRUE(dropped(4, {0, Barriers::window * 2, 0, 0, 0}, BarrierDrop::wrong_sequence));
    node.step(4, {0, 0, 0, 0, 0});
    EXPECT_TRUE(dropped(4, {0, 0, 0, 0, 0}, BarrierDrop::repeated));
    node.step(4, {0, Barriers::window * 2 - 1, 0, 0, 0}); // the furthest
    node.step(3, {0, 0, 1, 0, 0});
    EXPECT_FALSE(node.barriers.is_complete(*token));
    node.step(1, {0, 0, 2, 0, 0});
    EXPECT_TRUE(node.barriers.is_complete(*token));
    EXPECT_TRUE(dropped(4, {0, 0, 0, 0, 0}, BarrierDrop::wrong_sequence));
    EXPECT_EQ(node.sent.size(), 3u);
}

TEST(Barriers, know_sets_by_their_members) {
    std::map<std::uint64_t, std::vector<Node>> sets;
    for (std::uint32_t members = 1; members < 1 << 14; ++members) {
        std::vector<Node> nodes;
        for (Node node = 0; node < 14; ++node)
            if ((members >> node & 1) != 0) nodes.push_back(node);
        const std::uint64_t id = Barriers::set_of(nodes);
        EXPECT_GE(id, std::uint64_t{1} << 63);
        ASSERT_TRUE(sets.emplace(id, nodes).second);
    }
}

} // namespace
} // namespace kumi::engine
