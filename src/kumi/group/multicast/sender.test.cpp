#include "kumi/group/multicast/sender.hpp"

#include "kumi/group/wire/message.hpp"
#include "loopback/silent_service.hpp"
#include "loopback/victim.hpp"

#include <gtest/gtest.h>

namespace kumi::group::sender_test {
namespace {

constexpr auto first_service = engine::Kind::first_of_layers;
constexpr Purpose to_take{Use::take, 0, 7};

class SenderTest : public testing::Test {
protected:
    std::optional<loopback::SilentService> service;
    loopback::Victim victim{{}, {.nodes = 6}};
    Topology topology;
    SendQueue queue{*victim.dispatcher, service.emplace(*victim.dispatcher).port};
    Relays relays{*victim.dispatcher, service->port, topology, queue};
    Deliveries deliveries{0};
    Streams streams{*victim.dispatcher, service->port, topology, queue, relays, deliveries};
    CostProbe probe{*victim.dispatcher, service->port, topology, queue, Costs{}, Costs{}};
    HeldAnswers held{1000, 100};
    Fetches fetches{*victim.dispatcher, queue, held, 1000};
    Sender sender{*victim.dispatcher, {topology, queue, relays, streams, probe, fetches}, {}};
    engine::Turn turn = victim.dispatcher->take_turn();
    std::vector<std::string> told;

    Draft draft_of(const Set& to, std::size_t bytes = 8) {
        const std::vector<std::byte> content(bytes);
        auto draft = sender.draft(to, to_take, Pieces(content));
        EXPECT_TRUE(draft);
        return *std::move(draft);
    }
    /// As Multicasts does where this node is no member.
    Relay& begin(const Set& to) {
        Draft draft = draft_of(to);
        const auto before = sender.room_for(turn, draft);
        EXPECT_TRUE(before);
        Relay& relay = sender.begin(turn, draft, *before, [this](Result<Outcome> outcome) {
            told.push_back(outcome ? "missing " + outcome->missing.text() : outcome.error().text());
        });
        relays.close_one(turn, relay);
        return relay;
    }
    void answer(Relay& relay, const Set& missing = {}, std::string_view trouble = {}) {
        ReceivedAnswer answer;
        answer.missing = missing;
        answer.trouble = trouble;
        EXPECT_TRUE(relays.take_answer(turn, relay, relay.children.back().to, answer));
        ASSERT_EQ(relays.next_complete(turn), &relay);
        auto ended = relays.remove(turn, relay);
        sender.end(turn, *ended);
        relays.give_back(turn, std::move(ended));
    }
};

TEST_F(SenderTest, what_cannot_be_sent_is_an_error) {
    const auto error_of = [&](const Set& to) { return sender.draft(to, to_take, Pieces(Bytes{})).error().text(); };
    EXPECT_EQ(error_of({}), "multicast to an empty set: name at least one node");
    EXPECT_EQ(error_of({1, 6}), "multicast to 1,6: there is no node 6, this job has nodes 0 to 5");
}

TEST_F(SenderTest, one_message_leaves_and_names_what_its_members_must_have_had_before) {
    begin({1, 2});
    begin({3});
    begin({2, 3, 4});
    const auto sent = victim.sent(first_service);
    ASSERT_EQ(sent.size(), 3u);
    for (std::size_t i = 0; i < sent.size(); ++i) EXPECT_EQ(sent[i].head<Cast>().name, (Name{0, i + 1}));
    const auto head = sent[2].head<Cast>();
    const auto lead = read_lead(sent[2].data<Cast>().first(head.lead_bytes), 6);
    ASSERT_TRUE(lead);
    EXPECT_EQ(lead->set, (Set{2, 3, 4}));
    EXPECT_EQ(lead->members, (Set{2, 3, 4}));
    ASSERT_EQ(lead->before.size(), 2u);
    EXPECT_EQ(lead->before[0].sequence, 2u);
    EXPECT_EQ(lead->before[0].members, Set{3});
    EXPECT_EQ(lead->before[1].sequence, 1u);
    EXPECT_EQ(lead->before[1].members, Set{2});
    EXPECT_TRUE(sender.has_begun(3));
    EXPECT_FALSE(sender.has_begun(4));
}

TEST_F(SenderTest, the_program_is_told_how_one_has_ended_and_members_that_are_missing_that_it_is_over) {
    Relay& first = begin({1, 2});
    Relay& second = begin({1, 2});
    victim.channel.take_sent();
    answer(second, {2, 4});
    EXPECT_EQ(told, std::vector<std::string>{"missing 2"}) << "node 4 is no member";
    const auto sent = victim.sent(first_service);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].to, 2u);
    EXPECT_EQ(sent[0].head<Over>().name, (Name{0, 2}));
    EXPECT_EQ(sent[0].head<Over>().before, 1u);
    EXPECT_EQ(sender.under_way(), 1u);
    answer(first, {}, "node 1: no");
    EXPECT_EQ(told.back(), "multicast to 1-2: node 1: no");
    EXPECT_EQ(sender.under_way(), 0u);
}

TEST_F(SenderTest, no_more_are_under_way_than_may_be) {
    std::vector<Relay*> begun;
    for (std::size_t i = 0; i < Groups::under_way_max; ++i) begun.push_back(&begin({1, 2, 3}));
    EXPECT_FALSE(sender.room_for(turn, draft_of({1})));
    answer(*begun.back());
    EXPECT_TRUE(sender.room_for(turn, draft_of({1})));
}

TEST_F(SenderTest, one_that_all_members_had_may_stay_under_way_for_any_number_of_later_ones) {
    begin({1, 2});
    begin({3});
    for (std::uint64_t i = 0; i < Sequences::window / 2 - 3; ++i) answer(begin({1, 2}));
    EXPECT_TRUE(sender.room_for(turn, draft_of({1})));
    answer(begin({1, 2}));
    EXPECT_TRUE(sender.room_for(turn, draft_of({1}))) << "the first was had by all";
    answer(begin({1, 2}));
    EXPECT_FALSE(sender.room_for(turn, draft_of({1}))) << "the second may still have to come";
    EXPECT_EQ(sender.under_way(), 2u);
}

TEST_F(SenderTest, a_member_that_missed_later_ones_may_still_have_to_get_the_first) {
    begin({1, 2});
    for (std::uint64_t i = 0; i < Sequences::window / 2 - 1; ++i) answer(begin({1, 2}), {2});
    EXPECT_FALSE(sender.room_for(turn, draft_of({1})));
}

TEST_F(SenderTest, so_many_bytes_are_under_way_unless_it_is_the_only_one) {
    Draft large = draft_of({1, 2});
    large.bytes = Streams::under_way_bytes_max + 1;
    EXPECT_TRUE(sender.room_for(turn, large));
    begin({1});
    EXPECT_FALSE(sender.room_for(turn, large));
    large.bytes = Streams::under_way_bytes_max - 8;
    EXPECT_TRUE(sender.room_for(turn, large));
}

TEST_F(SenderTest, what_is_large_goes_in_blocks) {
    const std::size_t bytes = std::size_t{4} << 20;
    EXPECT_TRUE(goes_in_blocks(sender.choice(turn, bytes, 4).way));
    Draft draft = draft_of({1, 2, 3, 4}, bytes);
    ASSERT_TRUE(draft.streamed);
    Relay& relay = sender.begin(turn, draft, {}, [](const Result<Outcome>&) {});
    EXPECT_TRUE(relay.is_in_blocks);
    EXPECT_NE(streams.find(relay.name), nullptr);
    const auto sent = victim.sent(first_service);
    ASSERT_FALSE(sent.empty());
    EXPECT_EQ(sent[0].head<Kind>(), Kind::block);
}

TEST_F(SenderTest, another_member_is_the_first_each_time_and_none_that_is_lost) {
    Set firsts;
    for (std::uint64_t sequence = 0; sequence < 3; ++sequence)
        firsts.add(choose_first(*victim.dispatcher, topology, {1, 2, 3}, sequence));
    EXPECT_EQ(firsts, (Set{1, 2, 3}));
    victim.channel.lose(2);
    for (std::uint64_t sequence = 0; sequence < 3; ++sequence)
        EXPECT_NE(choose_first(*victim.dispatcher, topology, {1, 2, 3}, sequence), 2u);
    const Topology hosts({{0, 1, 1, 0, 1, 1}});
    for (std::uint64_t sequence = 0; sequence < 3; ++sequence)
        EXPECT_EQ(choose_first(*victim.dispatcher, hosts, {1, 3, 4}, sequence), 3u) << "it is near";
}

} // namespace
} // namespace kumi::group::sender_test
