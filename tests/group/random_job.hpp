#pragma once

// A job at random, by seed: every node sends handlers, contents to be taken, questions and sums to sets of nodes, of
// all sizes, while all others do the same. Some nodes may leave in the middle of it. Each node looks at what it had,
// and at what it was answered, and needs no other for it.

#include "group/node.hpp"

#include "kumi/group/group.hpp"

#include <algorithm>
#include <functional>
#include <mutex>
#include <vector>

namespace kumi::group_test {

struct RandomJob {
    enum class Kind { handler, take, gather, reduce, store };
    struct Step {
        Kind kind;
        Set to;
        std::size_t bytes;
        std::size_t offset; // of a store, in a segment; the flags of all stores are in another one
    };
    Node nodes;
    std::vector<std::vector<Step>> steps; // by master
    Set leavers;
    std::size_t leave_after = 0; // steps
    std::size_t stored_bytes = 0; // by all

    RandomJob(std::uint64_t seed, Node n, std::size_t each, std::size_t largest) : nodes(n) {
        for (Node master = 0; master < nodes; ++master) {
            std::mt19937_64 random(seed * 1009 + master);
            auto& own = steps.emplace_back();
            for (std::size_t i = 0; i < each; ++i) {
                const auto kind = static_cast<Kind>(random() % 5);
                Set to = random_set(random, nodes);
                own.push_back({kind, std::move(to), random_size(random, largest), stored_bytes});
                if (kind == Kind::store) stored_bytes += own.back().bytes;
            }
        }
    }
    std::size_t flag_number(Node master, std::size_t number) const { return master * steps[0].size() + number; }
    std::uint64_t content_number(Node master, std::size_t number) const { return master * 1000 + number; }
};

/// Costs that make much of it go in blocks.
inline constexpr group::Costs wide{.overhead_us = 0.1, .latency_us = 0.2, .us_per_byte = 0.001};

/// One node's part.
class Participant {
public:
    Participant(Channel& channel, const RandomJob& job, const Setup& setup = {}, const Topology& topology = {})
        : channel_(channel), job_(job), had_(job.nodes), ran_(job.nodes),
          note_(member_.handlers.add("note", [this](Call& call, std::uint64_t number,
                                                    Bytes content) { have(call.source(), number, content); })),
          identify_(member_.handlers.function(
              "identify",
              [this](Node master, std::uint64_t number, const std::vector<std::byte>& content) {
                  run_function(master, number, content);
                  return std::vector<Node>{channel_.self()};
              })),
          echo_(member_.handlers.function("echo",
                                          [this](Node master, std::uint64_t number, std::vector<std::byte> content) {
                                              run_function(master, number, content);
                                              std::vector<std::byte> much;
                                              for (std::size_t i = 0; i < echoes; ++i)
                                                  much.insert(much.end(), content.begin(), content.end());
                                              much.push_back(static_cast<std::byte>(channel_.self()));
                                              return much;
                                          })),
          join_(member_.handlers.function("join", [](std::vector<Node> some, const std::vector<Node>& more) {
              some.insert(some.end(), more.begin(), more.end());
              return some;
          })),
          ready_(member_.handlers.add("ready", [this](Call&) { ++nodes_ready_; })) {
        member_.open(channel, setup, topology, wide);
        stored_ = good(member_.engine->memory().segment<std::byte>(job.stored_bytes + 1));
        flags_ = good(member_.engine->memory().segment<Flag>(job.nodes * job.steps[0].size()));
        for (const Node leaver : job.leavers) good(member_.engine->send(leaver, ready_)); // it leaves after that
    }

    void run() {
        const auto& own = job_.steps[self()];
        const bool leaves = job_.leavers.contains(self());
        if (leaves) member_.engine->wait_until([this] { return nodes_ready_ == job_.nodes; }, deadline());
        for (std::size_t number = 0; number < own.size(); ++number) {
            if (leaves && number == job_.leave_after) return;
            begin(number, own[number]);
            if (number % 3 == 0) member_.engine->poll();
        }
        take_all();
        for (const auto& look : looks_) look();
        const Set there = Set::range(0, job_.nodes) - job_.leavers;
        auto survivors = good(member_.groups->group(there));
        EXPECT_EQ(good(survivors.allreduce(std::uint64_t{1}, group::sum, deadline())), there.size());
        for (Node master = 0; master < job_.nodes; ++master) look_at(master);
    }

    /// Takes what has come since, and goes on. True: nothing is left here.
    bool clear() {
        while (member_.groups->next(now())) {}
        member_.engine->poll();
        return member_.groups->kept() == 0;
    }

private:
    static constexpr std::size_t echoes = 10; // of the content, in an answer to a gather

    Node self() const { return channel_.self(); }

    void look_at_content(Node master, std::uint64_t number, Bytes content) const {
        ASSERT_LT(number, job_.steps[master].size());
        EXPECT_EQ(content.size(), job_.steps[master][number].bytes);
        EXPECT_TRUE(is_pattern(content, job_.content_number(master, number)));
    }
    void have(Node master, std::uint64_t number, Bytes content) {
        look_at_content(master, number, content);
        had_[master].push_back(number);
    }
    /// Several functions run at once, so any of them may be the first to come here.
    void run_function(Node master, std::uint64_t number, Bytes content) {
        look_at_content(master, number, content);
        const std::lock_guard lock(ran_mutex_);
        ran_[master].push_back(number);
    }

    void begin(std::size_t number, const RandomJob::Step& step) {
        const auto content = pattern(step.bytes, job_.content_number(self(), number));
        const auto text = fmt::format("{} to {}, {} bytes", number, step.to.text(), step.bytes);
        switch (step.kind) {
        case RandomJob::Kind::handler:
            return look_for_missing(member_.groups->multicast(step.to, note_, number, Bytes(content)), text);
        case RandomJob::Kind::take: return look_for_missing(member_.groups->multicast(step.to, number, content), text);
        case RandomJob::Kind::store: {
            const auto notice = Notice::set(flags_.at(0, job_.flag_number(self(), number)));
            return look_for_missing(
                member_.groups->multicast(step.to, stored_.at(0, step.offset), content, notice), text);
        }
        case RandomJob::Kind::gather: {
            auto future = std::make_shared<Future<group::Gathered<std::vector<std::byte>>>>(
                member_.groups->gather(step.to, echo_, self(), number, content));
            return looks_.push_back([this, future, text, to = step.to, number, bytes = step.bytes] {
                Set who;
                for (const auto& [node, answer] : good(future->get(deadline()))) {
                    ASSERT_EQ(answer.size(), echoes * bytes + 1);
                    for (std::size_t i = 0; i < echoes; ++i)
                        EXPECT_TRUE(
                            is_pattern(Bytes(answer).subspan(i * bytes, bytes), job_.content_number(self(), number)));
                    EXPECT_EQ(answer.back(), static_cast<std::byte>(node));
                    who.add(node);
                }
                EXPECT_EQ(to - who - job_.leavers, Set{}) << text;
                EXPECT_EQ(who - to, Set{}) << text;
            });
        }
        case RandomJob::Kind::reduce: {
            auto future = std::make_shared<Future<group::Reduced<std::vector<Node>>>>(
                member_.groups->reduce(step.to, join_, identify_, self(), number, content));
            return looks_.push_back([this, future, text, to = step.to] {
                const auto reduced = future->get(deadline());
                if (!reduced && to - job_.leavers == Set{}) return; // nobody is left
                Set who;
                for (const Node node : good(reduced).value) {
                    EXPECT_FALSE(who.contains(node)) << text << ": node " << node << " is counted twice";
                    who.add(node);
                }
                EXPECT_EQ(who | reduced->missing, to) << text;
                EXPECT_EQ(reduced->missing - job_.leavers, Set{}) << text;
            });
        }
        }
    }

    void look_for_missing(Future<Set> future, const std::string& text) {
        auto kept = std::make_shared<Future<Set>>(std::move(future));
        looks_.push_back([this, kept, text] { EXPECT_EQ(good(kept->get(deadline())) - job_.leavers, Set{}) << text; });
    }

    /// All that is for this node, of those who stay; what comes of others is taken, too.
    void take_all() {
        std::size_t left = 0;
        for (Node master = 0; master < job_.nodes; ++master)
            for (const auto& step : job_.steps[master])
                if (step.kind == RandomJob::Kind::take && step.to.contains(self()) && !job_.leavers.contains(master))
                    ++left;
        while (left != 0) {
            const Arrival arrival = good(member_.groups->next(deadline()));
            EXPECT_EQ(arrival.members, job_.steps[arrival.master][arrival.tag].to);
            EXPECT_EQ(arrival.content.size(), job_.steps[arrival.master][arrival.tag].bytes);
            EXPECT_TRUE(is_pattern(arrival.content, job_.content_number(arrival.master, arrival.tag)));
            if (!job_.leavers.contains(arrival.master)) --left;
        }
    }

    /// What node `master` has stored here. What a leaver stored is here whole, or not at all.
    void look_at_stores(Node master) {
        for (std::size_t number = 0; number < job_.steps[master].size(); ++number) {
            const auto& step = job_.steps[master][number];
            if (step.kind != RandomJob::Kind::store) continue;
            const bool is_here = load_flag(flags_[job_.flag_number(master, number)]) == 1;
            EXPECT_TRUE(!is_here || step.to.contains(self()));
            EXPECT_TRUE(is_here || !step.to.contains(self()) || job_.leavers.contains(master));
            const auto bytes = stored_.local().subspan(step.offset, step.bytes);
            EXPECT_TRUE(is_here ? is_pattern(bytes, job_.content_number(master, number))
                                : std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; }))
                << number << " of node " << master;
        }
    }

    /// Takes are apart: they are had when the program asks for them. Stores are looked at by themselves. Handlers come
    /// in order. Of functions each runs once.
    void look_at(Node master) {
        look_at_stores(master);
        std::vector<std::uint64_t> handled, functions;
        for (std::uint64_t number = 0; number < job_.steps[master].size(); ++number) {
            const auto& step = job_.steps[master][number];
            if (!step.to.contains(self())) continue;
            if (step.kind == RandomJob::Kind::handler) handled.push_back(number);
            if (step.kind == RandomJob::Kind::gather || step.kind == RandomJob::Kind::reduce)
                functions.push_back(number);
        }
        look_at_order(master, had_[master], handled);
        std::vector<std::uint64_t> ran;
        {
            const std::lock_guard lock(ran_mutex_);
            ran = ran_[master];
        }
        std::ranges::sort(ran);
        look_at_order(master, ran, functions);
    }
    /// Of a leaver some may not have come.
    void look_at_order(Node master, const std::vector<std::uint64_t>& came,
                       const std::vector<std::uint64_t>& expected) const {
        if (!job_.leavers.contains(master)) {
            EXPECT_EQ(came, expected) << "of node " << master;
            return;
        }
        EXPECT_TRUE(std::ranges::is_sorted(came, std::less_equal<>()))
            << "of node " << master << ": " << testing::PrintToString(came);
        EXPECT_TRUE(std::ranges::includes(expected, came)) << "of node " << master;
    }

    Channel& channel_;
    const RandomJob& job_;
    std::vector<std::vector<std::uint64_t>> had_; // by master; handlers write here for as long as there is an engine
    std::mutex ran_mutex_;
    std::vector<std::vector<std::uint64_t>> ran_; // by master; functions write here, with the mutex
    Node nodes_ready_ = 0;                        // nodes that have the segments, if this one leaves
    Member member_;
    Segment<std::byte> stored_;
    Segment<Flag> flags_;
    std::vector<std::function<void()>> looks_; // at what was answered
    Handler<std::uint64_t, Bytes> note_;
    Function<std::vector<Node>(Node, std::uint64_t, std::vector<std::byte>)> identify_;
    Function<std::vector<std::byte>(Node, std::uint64_t, std::vector<std::byte>)> echo_;
    Function<std::vector<Node>(std::vector<Node>, std::vector<Node>)> join_;
    Handler<> ready_;
};

} // namespace kumi::group_test
