// Answers that are too large to come with those of others: how they stay at a member, and how a master fetches them.

#include "group/puppets.hpp"

#include <algorithm>
#include <cstddef>

namespace kumi::group_test {
namespace {

using group::Fetch;
using group::Fetched;
using group::Kind;
using group::Name;
using group::Use;
using group::ValueHead;

class Fetching : public PuppetTest {};

std::vector<std::byte> reference_to(Node node, std::uint32_t bytes) {
    return joined({bytes_of(ValueHead{node, bytes | group::held_flag})});
}
std::vector<std::byte> fetch_of(const Name& name, std::uint64_t offset, bool is_unwanted = false) {
    return joined({bytes_of(Fetch{Kind::fetch, is_unwanted ? 1u : 0u, name, offset})});
}
std::vector<std::byte> fetched_of(const Name& name, std::uint64_t offset, Bytes data, bool is_gone = false) {
    return joined({bytes_of(Fetched{Kind::fetched, is_gone ? 1u : 0u, name, offset}), data});
}

/// What puppets have heard since the last time: nothing but messages of that form.
template <class Head>
std::vector<std::pair<Node, Head>> take_all(Stage& stage, Kind kind) {
    std::vector<std::pair<Node, Head>> all;
    for (const Stage::Heard& one : stage.take_heard()) {
        EXPECT_EQ(one.kind(), kind);
        Head head{};
        EXPECT_TRUE(read_value(Bytes(one.bytes), head));
        all.emplace_back(one.by, head);
    }
    std::ranges::sort(all, {}, [](const auto& entry) { return entry.first; });
    return all;
}
std::vector<std::pair<Node, Fetch>> take_fetches(Stage& stage) { return take_all<Fetch>(stage, Kind::fetch); }

// ---- as a member

/// Node 1 has asked node 0 for an answer of 8 bytes and more, which stays there. Returns its size.
std::uint32_t hold(Stage& stage, const Name& name, std::uint64_t number = 5) {
    stage.say(1, cast_of(name, {Use::gather, Stage::tenfold_number, 7}, {0}, argument_of(number)));
    stage.settle();
    const auto answers = stage.take_answers();
    EXPECT_EQ(answers.size(), 1u);
    const auto size = static_cast<std::uint32_t>(argument_of(number).size());
    EXPECT_EQ(answers.at(0).values, reference_to(0, size));
    return size;
}

TEST_F(Fetching, a_member_keeps_an_answer_that_is_larger_than_the_master_said_until_it_is_fetched) {
    play({.nodes = 3}, [](Stage& stage) {
        const Name name{1, 1};
        hold(stage, name);
        EXPECT_EQ(stage.member.groups->kept(), 1u);
        stage.say(1, fetch_of(name, 0));
        stage.settle();
        const auto heard = stage.take_heard();
        ASSERT_EQ(heard.size(), 1u);
        EXPECT_EQ(heard[0].by, 1u);
        EXPECT_EQ(heard[0].bytes, fetched_of(name, 0, argument_of(50)));
        EXPECT_EQ(stage.member.groups->kept(), 0u);
        stage.say(1, fetch_of(name, 0));
        stage.settle();
        const auto again = take_all<Fetched>(stage, Kind::fetched);
        ASSERT_EQ(again.size(), 1u);
        EXPECT_EQ(again[0].second.is_gone, 1u);
        // One that just comes at once is not kept.
        const auto size = argument_of(50).size();
        stage.say(1, cast_of({1, 2}, {Use::gather, Stage::tenfold_number, size}, {0}, argument_of(5)));
        stage.settle();
        const ValueHead head{0, static_cast<std::uint32_t>(size)};
        EXPECT_EQ(stage.take_answers().at(0).values, joined({bytes_of(head), argument_of(50)}));
        EXPECT_EQ(stage.member.groups->kept(), 0u);
    });
}

TEST_F(Fetching, a_member_drops_an_answer_that_is_not_wanted_or_that_the_master_did_not_hear_of) {
    play({.nodes = 3}, [](Stage& stage) {
        hold(stage, {1, 1});
        hold(stage, {1, 2});
        EXPECT_EQ(stage.member.groups->kept(), 2u);
        stage.say(1, fetch_of({1, 1}, 0, true));
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), 1u);
        stage.say(1, joined({bytes_of(group::Over{Kind::over, 0, {1, 2}, 0})}));
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), 0u);
        hold(stage, {1, 3});
        stage.lose(1);
        EXPECT_EQ(stage.member.groups->kept(), 0u) << "its master is lost";
    });
}

TEST_F(Fetching, a_node_does_not_end_before_its_answers_are_fetched_or_their_master_is_lost) {
    const auto afterwards = [](Stage& stage) {
        const auto heard = stage.take_heard();
        ASSERT_EQ(heard.size(), 1u);
        EXPECT_EQ(heard[0].bytes, fetched_of({1, 1}, 0, argument_of(50)));
    };
    play({.afterwards = afterwards}, [](Stage& stage) {
        hold(stage, {1, 1});
        stage.say(1, fetch_of({1, 1}, 0)); // while node 0 ends
        stage.member.engine.reset();
    });
}

TEST_F(Fetching, nobody_but_the_master_gets_an_answer_and_only_part_by_part) {
    for (const auto& said : {std::pair{2u, fetch_of({1, 1}, 0)}, std::pair{2u, fetch_of({1, 1}, 0, true)},
                             std::pair{1u, fetch_of({1, 1}, 3)}}) {
        testing::internal::CaptureStderr();
        play({.nodes = 3}, [&](Stage& stage) {
            hold(stage, {1, 1});
            stage.say(said.first, said.second);
            stage.settle();
            EXPECT_TRUE(stage.take_heard().empty());
            EXPECT_EQ(stage.member.groups->kept(), 1u);
        });
        EXPECT_NE(testing::internal::GetCapturedStderr().find("can make nothing of a message"), std::string::npos);
    }
}

// ---- as a master

using Gathering = Future<group::Gathered<std::uint64_t>>;

/// Node 0 asks nodes 1 and 2. One of them answers for both, with these values.
Gathering ask_two(Stage& stage, Bytes values) {
    Gathering future = stage.member.groups->gather({1, 2}, stage.tenfold, std::uint64_t{5});
    stage.settle();
    const auto casts = stage.take_casts();
    EXPECT_EQ(casts.size(), 1u) << "one of them does the rest";
    constexpr std::uint64_t half_of_a_message = 128 << 10;
    EXPECT_EQ(casts.at(0).head.purpose.tag, half_of_a_message / 2 - sizeof(ValueHead)) << "for two";
    stage.say(casts.at(0).by, answer_of(casts.at(0).head.name, casts.at(0).head.relay, {}, {}, values));
    stage.settle();
    return future;
}
const Name first{0, 1};
const std::vector<std::byte> value = argument_of(77);
const auto value_bytes = static_cast<std::uint32_t>(value.size());

TEST_F(Fetching, a_master_asks_each_member_for_one_part_after_the_other) {
    play({.nodes = 3}, [](Stage& stage) {
        Gathering future = ask_two(stage, joined({reference_to(2, value_bytes), reference_to(1, value_bytes)}));
        auto asked = take_fetches(stage);
        ASSERT_EQ(asked.size(), 2u);
        for (const Node node : {1u, 2u}) {
            EXPECT_EQ(asked[node - 1].first, node);
            EXPECT_EQ(asked[node - 1].second.name, first);
            EXPECT_EQ(asked[node - 1].second.offset, 0u);
            EXPECT_EQ(asked[node - 1].second.is_unwanted, 0u);
        }
        EXPECT_EQ(stage.member.groups->kept(), 1u);
        stage.say(2, fetched_of(first, 0, value));
        stage.say(1, fetched_of(first, 0, Bytes(value).first(3)));
        stage.settle();
        EXPECT_FALSE(future.is_ready());
        asked = take_fetches(stage);
        ASSERT_EQ(asked.size(), 1u);
        EXPECT_EQ(asked[0].first, 1u);
        EXPECT_EQ(asked[0].second.offset, 3u);
        stage.say(1, fetched_of(first, 3, Bytes(value).subspan(3)));
        stage.settle();
        EXPECT_EQ(good(future.get(now())), (group::Gathered<std::uint64_t>{{1, 77}, {2, 77}}));
        EXPECT_EQ(stage.member.groups->kept(), 0u);
        EXPECT_TRUE(stage.take_heard().empty());
    });
}

TEST_F(Fetching, a_member_that_is_lost_before_its_last_part_has_not_answered_and_others_have) {
    for (const bool is_lost_first : {false, true})
        play({.nodes = 3}, [&](Stage& stage) {
            const auto here = joined({bytes_of(ValueHead{1, value_bytes}), value});
            Gathering future = stage.member.groups->gather({1, 2}, stage.tenfold, std::uint64_t{5});
            stage.settle();
            auto casts = stage.take_casts();
            // Node 2 must not be the one that passes it on, if it is lost before.
            while (casts.at(0).by == 2) {
                stage.say(2, answer_of(casts[0].head.name, casts[0].head.relay, {1, 2}));
                stage.settle();
                (void)stage.take_heard();
                future = stage.member.groups->gather({1, 2}, stage.tenfold, std::uint64_t{5});
                stage.settle();
                casts = stage.take_casts();
            }
            const Name name = casts[0].head.name;
            if (is_lost_first) stage.lose(2);
            stage.say(1, answer_of(name, casts[0].head.relay, {}, {}, joined({here, reference_to(2, value_bytes)})));
            stage.settle();
            if (!is_lost_first) {
                EXPECT_EQ(take_fetches(stage).size(), 1u);
                stage.say(2, fetched_of(name, 0, Bytes(value).first(3)));
                stage.settle();
                EXPECT_FALSE(future.is_ready());
                stage.lose(2);
            }
            EXPECT_EQ(good(future.get(now())), (group::Gathered<std::uint64_t>{{1, 77}}));
            EXPECT_EQ(stage.member.groups->kept(), 0u);
        });
}

TEST_F(Fetching, a_member_that_has_forgotten_its_answer_has_not_answered) {
    play({.nodes = 3}, [](Stage& stage) {
        Gathering future = ask_two(stage, joined({reference_to(1, value_bytes), reference_to(2, value_bytes)}));
        stage.say(1, fetched_of(first, 0, {}, true));
        stage.say(2, fetched_of(first, 0, value));
        stage.settle();
        EXPECT_EQ(good(future.get(now())), (group::Gathered<std::uint64_t>{{2, 77}}));
    });
}

TEST_F(Fetching, a_member_that_answers_more_than_it_said_or_something_else_has_not_answered) {
    auto longer = value;
    longer.emplace_back();
    for (const auto& message : {fetched_of(first, 0, longer), fetched_of(first, 1, value), fetched_of(first, 0, {})}) {
        testing::internal::CaptureStderr();
        play({.nodes = 3}, [&](Stage& stage) {
            Gathering future = ask_two(stage, joined({reference_to(1, value_bytes), reference_to(2, value_bytes)}));
            (void)stage.take_heard();
            stage.say(1, message);
            stage.settle();
            const auto told = take_fetches(stage);
            ASSERT_EQ(told.size(), 1u);
            EXPECT_EQ(told[0].first, 1u);
            EXPECT_EQ(told[0].second.is_unwanted, 1u) << "it need not keep the answer";
            stage.say(1, fetched_of(first, 0, value)); // too late
            stage.say(2, fetched_of(first, 0, value));
            stage.settle();
            EXPECT_EQ(good(future.get(now())), (group::Gathered<std::uint64_t>{{2, 77}}));
            stage.say(2, fetched_of(first, 0, value)); // it is over
            stage.settle();
            EXPECT_EQ(stage.member.groups->kept(), 0u);
        });
        EXPECT_NE(testing::internal::GetCapturedStderr().find("can make nothing of a message of node 1"),
                  std::string::npos);
    }
}

TEST_F(Fetching, a_part_that_was_not_asked_for_makes_no_sense_and_changes_nothing) {
    testing::internal::CaptureStderr();
    play({.nodes = 4}, [](Stage& stage) {
        Gathering future = ask_two(stage, joined({reference_to(1, value_bytes), reference_to(2, value_bytes)}));
        stage.say(3, fetched_of(first, 0, value));
        stage.settle();
        for (const Node node : {1u, 2u}) stage.say(node, fetched_of(first, 0, value));
        stage.settle();
        EXPECT_EQ(good(future.get(now())), (group::Gathered<std::uint64_t>{{1, 77}, {2, 77}}));
    });
    EXPECT_NE(testing::internal::GetCapturedStderr().find("can make nothing of a message of node 3"),
              std::string::npos);
}

TEST_F(Fetching, answers_that_are_too_large_together_are_refused_before_anything_is_fetched) {
    play({.nodes = 3}, [](Stage& stage) {
        constexpr auto half = static_cast<std::uint32_t>(Groups::answers_bytes_max / 2);
        Gathering future = ask_two(stage, joined({reference_to(1, half), reference_to(2, half + 1)}));
        const auto refused = future.get(now());
        expect_error(refused, {"multicast to 1-2", "the answers take", "the most is 1"});
        EXPECT_EQ(refused.error().code(), ErrorCode::too_large);
        const auto told = take_fetches(stage);
        ASSERT_EQ(told.size(), 2u);
        for (const auto& [node, fetch] : told) EXPECT_EQ(fetch.is_unwanted, 1u) << node;
        EXPECT_EQ(stage.member.groups->kept(), 0u);
    });
}

TEST_F(Fetching, members_whose_answers_are_not_wanted_because_another_failed_are_told) {
    play({.nodes = 3}, [](Stage& stage) {
        const Gathering future = stage.member.groups->gather({0, 1, 2}, stage.complain, std::uint64_t{1});
        stage.settle();
        for (const HeardCast& cast : stage.take_casts())
            stage.say(cast.by, answer_of(cast.head.name, cast.head.relay, {}, {}, reference_to(cast.by, value_bytes)));
        stage.settle();
        EXPECT_TRUE(future.is_ready());
        const auto told = take_fetches(stage);
        ASSERT_EQ(told.size(), 2u);
        for (const auto& [node, fetch] : told) EXPECT_EQ(fetch.is_unwanted, 1u) << node;
    });
}

TEST_F(Fetching, the_code_of_what_went_wrong_at_a_member_reaches_the_master) {
    play({.nodes = 3}, [](Stage& stage) {
        Gathering future = stage.member.groups->gather({1, 2}, stage.tenfold, std::uint64_t{5});
        stage.settle();
        const auto cast = stage.take_casts().at(0);
        auto answer = answer_of(cast.head.name, cast.head.relay, {}, "it is too much");
        const auto code = static_cast<std::uint16_t>(ErrorCode::too_large);
        copy_bytes(answer.data() + offsetof(group::Answer, code), bytes_of(code));
        stage.say(cast.by, answer);
        stage.settle();
        const auto refused = future.get(now());
        expect_error(refused, {"multicast to 1-2: it is too much"});
        EXPECT_EQ(refused.error().code(), ErrorCode::too_large);
    });
}

TEST_F(Fetching, references_to_answers_of_others_and_second_ones_are_not_followed) {
    play({.nodes = 4}, [](Stage& stage) {
        Gathering future = ask_two(stage, joined({reference_to(3, value_bytes), reference_to(0, value_bytes),
                                                  reference_to(1, value_bytes), reference_to(1, value_bytes)}));
        const auto asked = take_fetches(stage);
        ASSERT_EQ(asked.size(), 1u);
        EXPECT_EQ(asked[0].first, 1u);
        stage.say(1, fetched_of(first, 0, value));
        stage.settle();
        EXPECT_EQ(good(future.get(now())), (group::Gathered<std::uint64_t>{{1, 77}}));
    });
}

TEST_F(Fetching, a_member_that_says_nothing_is_looked_after) {
    play({.nodes = 3, .looks_after = true}, [](Stage& stage) {
        const Gathering future = ask_two(stage, joined({reference_to(1, value_bytes), reference_to(2, value_bytes)}));
        stage.look(2);
        EXPECT_FALSE(future.is_ready());
        for (const Node node : {1u, 2u}) stage.say(node, fetched_of(first, 0, value));
        stage.settle();
        EXPECT_TRUE(future.is_ready());
    });
}

} // namespace
} // namespace kumi::group_test
