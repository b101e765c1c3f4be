// What a node says that is not as others say it: a peer that has the handler of groups, but makes its messages by hand.

#include "group/puppets.hpp"

#include "kumi/group/wire/message.hpp"

#include <limits>

namespace kumi::group_test {
namespace {

using group::Answer;
using group::Block;
using group::Cast;
using group::Kind;
using group::Name;
using group::Over;
using group::Place;
using group::Purpose;
using group::Use;

class HostileGroups : public PuppetTest {};

/// Whether node 0 can make something of this message of node 1's: if not, it says so. Whatever it was, what others say
/// is handled as before.
bool makes_sense(Bytes message) {
    testing::internal::CaptureStderr();
    play({.nodes = 3}, [&](Stage& stage) {
        stage.say(1, message);
        stage.settle();
        const std::vector<std::uint64_t> before = stage.handled;
        stage.say(2, cast_of({2, 1000}, to_note, {0}, bytes_of(std::uint64_t{4711})));
        stage.settle();
        EXPECT_EQ(stage.handled.size(), before.size() + 1);
        EXPECT_EQ(stage.handled.back(), 4711u);
    });
    return testing::internal::GetCapturedStderr().find("can make nothing of a message of node 1") == std::string::npos;
}

TEST_F(HostileGroups, who_is_told_of_a_multicast_of_its_own_that_it_never_began_goes_on_as_before) {
    play({}, [](Stage& stage) {
        for (const std::uint32_t sequence : {1u, 100u})
            stage.say(1, cast_of({0, sequence}, to_note, {0}, bytes_of(std::uint64_t{7})));
        stage.say(
            1, BlockOf{.name = {0, 2}, .purpose = to_note, .set = {0, 1}, .bytes = 8}.with(bytes_of(std::uint64_t{7})));
        stage.say(1, answer_of({0, 3}, group::no_relay));
        stage.settle();
        EXPECT_TRUE(stage.handled.empty());
        EXPECT_EQ(stage.member.groups->kept(), 0u);
        for (std::uint64_t number = 1; number < 5; ++number)
            EXPECT_TRUE(good(stage.member.groups->multicast({0}, stage.note, number).get()).empty());
        EXPECT_EQ(stage.handled, (std::vector<std::uint64_t>{1, 2, 3, 4}));
    });
    const BlockOf block{.name = {0, 1}, .purpose = to_note, .set = {0, 1}, .bytes = 8};
    EXPECT_FALSE(makes_sense(block.with(bytes_of(std::uint64_t{7})))); // it has begun none
    EXPECT_FALSE(makes_sense(cast_of({0, 1}, to_note, {0}, bytes_of(std::uint64_t{7}))));
}

TEST_F(HostileGroups, a_block_of_a_multicast_that_is_over_is_only_late) {
    testing::internal::CaptureStderr();
    play({}, [](Stage& stage) {
        EXPECT_TRUE(good(stage.member.groups->multicast({0}, stage.note, std::uint64_t{1}).get()).empty());
        stage.say(
            1, BlockOf{.name = {0, 1}, .purpose = to_note, .set = {0, 1}, .bytes = 8}.with(bytes_of(std::uint64_t{7})));
        stage.settle();
    });
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(HostileGroups, what_is_to_be_done_with_a_content_must_be_possible_here) {
    const auto is_possible = [](const Purpose& purpose, Bytes content) {
        return makes_sense(cast_of({1, 1}, purpose, {0}, content));
    };
    const auto argument = argument_of(5);
    const std::uint64_t number = 5;
    EXPECT_TRUE(is_possible(to_note, bytes_of(number)));
    EXPECT_FALSE(is_possible({Use::handler, Stage::handlers_count, 0}, bytes_of(number)));
    EXPECT_TRUE(is_possible({Use::gather, Stage::functions_count - 1, 0}, argument));
    EXPECT_FALSE(is_possible({Use::gather, Stage::functions_count, 0}, argument));
    EXPECT_TRUE(is_possible({Use::reduce, Stage::tenfold_number, Stage::minus_number}, argument));
    EXPECT_FALSE(is_possible({Use::reduce, Stage::functions_count, Stage::minus_number}, argument));
    EXPECT_FALSE(is_possible({Use::reduce, Stage::tenfold_number, Stage::functions_count}, argument));
    EXPECT_FALSE(is_possible({Use::reduce, Stage::tenfold_number, std::uint64_t{1} << 32}, argument)); // not function 0
    EXPECT_TRUE(is_possible({Use::store, 0, 0}, argument)) << "that it goes nowhere is answered";
    EXPECT_FALSE(is_possible({static_cast<Use>(5), 0, 0}, argument));
}

TEST_F(HostileGroups, a_cast_without_a_lead_cannot_be_taken_because_it_does_not_name_the_members) {
    const std::uint64_t number = 5;
    EXPECT_TRUE(makes_sense(lone_cast_of({1, 1}, to_note, bytes_of(number))));
    EXPECT_FALSE(makes_sense(lone_cast_of({1, 1}, {Use::take, 0, 7}, bytes_of(number))));
    EXPECT_FALSE(makes_sense(lone_cast_of({0, 1}, to_note, bytes_of(number)))) << "of this node's own";
    EXPECT_FALSE(makes_sense(lone_cast_of({1, 1}, {Use::handler, Stage::handlers_count, 0}, bytes_of(number))));
}

TEST_F(HostileGroups, messages_of_kinds_that_groups_do_not_have_are_refused) {
    testing::internal::CaptureStderr();
    play({}, [](Stage& stage) {
        const auto cast = cast_of({1, 1}, to_note, {0}, bytes_of(std::uint64_t{7}));
        stage.say(1, cast, 1);
        stage.say(1, cast, 15);
        // would make no sense, if it were one
        stage.post(1, {.key = 1, .taken = 1, .kind = group::MessageKind::taken}, {}, 1);
        stage.settle();
        EXPECT_TRUE(stage.handled.empty());
        stage.say(1, cast);
        stage.settle();
        EXPECT_EQ(stage.handled, std::vector<std::uint64_t>{7});
    });
    EXPECT_EQ(testing::internal::GetCapturedStderr().find("node 0 can make nothing"), std::string::npos)
        << "its sender is told";
}

TEST_F(HostileGroups, the_user_is_told_once_of_messages_that_make_no_sense) {
    testing::internal::CaptureStderr();
    play({}, [](Stage& stage) {
        for (std::uint32_t kind = 100; kind < 103; ++kind) stage.say(1, bytes_of(kind));
        stage.settle();
        EXPECT_TRUE(stage.handled.empty());
    });
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "kumi: warning: node 0 can make nothing of a message of node 1: "
              "do all nodes run the same program, with the same version of Kumi?\n");
}

TEST_F(HostileGroups, a_message_that_is_cut_short_makes_no_sense) {
    const std::uint64_t number = 7;
    const auto whole = cast_of({1, 1}, to_note, {0}, bytes_of(number));
    EXPECT_TRUE(makes_sense(whole));
    const std::size_t before_content = whole.size() - sizeof number;
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{3}, std::size_t{4}, sizeof(Cast) - 1, sizeof(Cast), before_content - 1})
        EXPECT_FALSE(makes_sense(Bytes(whole).first(bytes))) << bytes;
    const auto lone = lone_cast_of({1, 1}, to_note, bytes_of(number));
    for (const std::size_t bytes : {sizeof(Cast) - 1, sizeof(Cast)})
        EXPECT_EQ(makes_sense(Bytes(lone).first(bytes)), bytes == sizeof(Cast)) << bytes;
    const auto block = BlockOf{.name = {1, 1}, .purpose = to_note, .set = {0, 1}, .bytes = 8}.with(bytes_of(number));
    EXPECT_TRUE(makes_sense(block));
    for (const std::size_t bytes :
         {sizeof(Block) - 1, sizeof(Block), block.size() - sizeof number - 1, block.size() - 1})
        EXPECT_FALSE(makes_sense(Bytes(block).first(bytes))) << bytes;
    for (const std::size_t bytes : {sizeof(Over) - 1, sizeof(Over)})
        EXPECT_EQ(makes_sense(Bytes(bytes_of(Over{Kind::over, 0, {1, 1}, 0})).first(bytes)), bytes == sizeof(Over));
    for (const Kind kind : {Kind::probe, Kind::probed}) {
        const group::Probe probe{kind, 1, 1};
        for (const std::size_t bytes : {sizeof probe - 1, sizeof probe})
            EXPECT_EQ(makes_sense(Bytes(bytes_of(probe)).first(bytes)), bytes == sizeof probe);
    }
}

TEST_F(HostileGroups, nodes_that_there_are_not_are_neither_masters_nor_members) {
    const std::uint64_t number = 7;
    // This job has nodes 0 to 2.
    for (const Node master : {2u, 3u}) {
        EXPECT_EQ(makes_sense(cast_of({master, 10}, to_note, {0}, bytes_of(number))), master == 2);
        EXPECT_EQ(makes_sense(BlockOf{.name = {master, 10}, .purpose = to_note, .set = {0, 1}, .bytes = 8}.with(
                      bytes_of(number))),
                  master == 2);
        EXPECT_EQ(makes_sense(answer_of({master, 10}, group::no_relay)), master == 2);
        EXPECT_EQ(makes_sense(bytes_of(Over{Kind::over, 0, {master, 10}, 0})), master == 2);
    }
    EXPECT_FALSE(makes_sense(bytes_of(Over{Kind::over, 0, {0, 1}, 0}))) << "nobody tells a master so";
    for (const Node last : {2u, 3u}) {
        EXPECT_EQ(makes_sense(cast_of({1, 1}, to_be_taken, {0, last}, bytes_of(number))), last == 2);
        EXPECT_EQ(makes_sense(cast_of({1, 1}, to_note, {0}, bytes_of(number), {{7, {last}}})), last == 2);
        EXPECT_EQ(makes_sense(answer_of({1, 1}, group::no_relay, {last})), last == 2);
        EXPECT_EQ(
            makes_sense(BlockOf{.name = {1, 1}, .purpose = to_note, .set = {0, 1}, .root = last - 1, .bytes = 8}.with(
                bytes_of(number))),
            last == 2);
        const auto lead = lead_of({0}, {}, Set{0, last}); // all members
        EXPECT_EQ(
            makes_sense(joined(
                {bytes_of(Cast{Kind::cast, static_cast<std::uint32_t>(lead.size()), {1, 1}, to_be_taken, {0, 1}, 1}),
                 lead})),
            last == 2);
    }
    // What is passed on to this node is for this node.
    EXPECT_FALSE(makes_sense(cast_of({1, 1}, to_note, {1, 2}, bytes_of(number))));
    EXPECT_FALSE(
        makes_sense(BlockOf{.name = {1, 1}, .purpose = to_note, .set = {1, 2}, .bytes = 8}.with(bytes_of(number))));
}

TEST_F(HostileGroups, a_lead_is_aligned_and_has_nothing_behind_it) {
    const auto with = [](const std::vector<std::byte>& lead) {
        const std::uint64_t number = 7;
        return makes_sense(
            joined({bytes_of(Cast{Kind::cast, static_cast<std::uint32_t>(lead.size()), {1, 1}, to_note, {0, 1}, 1}),
                    lead, bytes_of(number)}));
    };
    auto lead = lead_of({0});
    EXPECT_TRUE(with(lead));
    lead.resize(lead.size() + 8);
    EXPECT_FALSE(with(lead)) << "it is longer than it has to be";
    lead.resize(lead.size() - 12);
    EXPECT_FALSE(with(lead)) << "what is behind it is not aligned";
    // No more can be before than a master has under way.
    for (const std::size_t count : {Groups::under_way_max, Groups::under_way_max + 1}) {
        BeforeList before;
        for (std::size_t i = 0; i < count; ++i) before.emplace_back(i + 1, Set{1});
        EXPECT_EQ(with(lead_of({0}, before)), count == Groups::under_way_max);
    }
}

TEST_F(HostileGroups, memory_is_not_taken_for_more_than_a_master_may_have_under_way) {
    // Only the first block comes: so they stay, each as a relay and a stream.
    const auto block = [](std::uint64_t sequence, std::uint64_t bytes) {
        return BlockOf{.name = {1, sequence}, .purpose = to_note, .set = {0, 1}, .bytes = bytes, .block_bytes = 1024}
            .with(pattern(1024, 0));
    };
    play({}, [&](Stage& stage) {
        stage.say(1, block(1, Groups::content_bytes_max + 1));
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), 0u) << "a content has a gigabyte at most";
        stage.say(1, block(2, Groups::content_bytes_max));
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), 2u) << "one alone may be as large as a content can be";
        stage.say(1, block(3, 1025));
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), 2u) << "but not if there are others";
    });
    play({.nodes = 3}, [&](Stage& stage) {
        constexpr std::uint64_t under_way_bytes_max = std::uint64_t{256} << 20;
        stage.say(1, block(1, 2048));
        stage.say(1, block(2, under_way_bytes_max - 2048 + 1));
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), 2u) << "one byte too many";
        stage.say(1, block(3, under_way_bytes_max - 2048));
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), 4u);
        stage.say(1, block(4, 1025));
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), 4u);
        // Each master has its own; and what is there whole does not count.
        stage.say(2, BlockOf{.name = {2, 1}, .purpose = to_note, .set = {0, 2}, .root = 2, .bytes = 2048}.with(
                         pattern(1024, 0)));
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), 6u);
    });
}

TEST_F(HostileGroups, no_more_multicasts_are_taken_than_a_master_may_have_under_way) {
    play({}, [](Stage& stage) {
        for (std::uint64_t sequence = 1; sequence <= Groups::under_way_max + 10; ++sequence)
            stage.say(1, BlockOf{.name = {1, sequence}, .purpose = to_note, .set = {0, 1}, .bytes = 1025}.with(
                             pattern(1024, 0)));
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), 2 * Groups::under_way_max);
    });
    // What waits to be taken: twice as many, since a master may not know of those that are taken just now.
    play({}, [](Stage& stage) {
        const std::uint64_t number = 7;
        for (std::uint64_t sequence = 1; sequence <= 2 * Groups::under_way_max + 10; ++sequence)
            stage.say(1, cast_of({1, sequence}, to_be_taken, {0}, bytes_of(number)));
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), 2 * 2 * Groups::under_way_max); // each has a relay
        EXPECT_TRUE(stage.take_heard().empty());
        for (std::uint64_t sequence = 1; sequence <= 2 * Groups::under_way_max; ++sequence)
            EXPECT_EQ(good(stage.member.groups->next()).sequence, sequence);
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), 0u);
        EXPECT_EQ(stage.take_answers().size(), 2 * Groups::under_way_max);
    });
}

TEST_F(HostileGroups, a_multicast_that_comes_again_and_again_is_not_passed_on_without_end) {
    play({}, [](Stage& stage) {
        const std::uint64_t number = 7;
        for (std::size_t i = 0; i < 4 * Groups::under_way_max + 10; ++i)
            stage.say(1, cast_of({1, 1}, to_be_taken, {0}, bytes_of(number)));
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), 4 * Groups::under_way_max + 1);
        EXPECT_EQ(good(stage.member.groups->next()).tag, 7u); // once
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), 0u);
        EXPECT_EQ(stage.take_answers().size(), 4 * Groups::under_way_max); // whoever passed it on is answered
        stage.say(1, cast_of({1, 2}, to_be_taken, {0}, bytes_of(number))); // and there is room for others again
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), 2u);
    });
}

TEST_F(HostileGroups, a_content_is_looked_for_only_where_its_master_has_memory) {
    for (const bool is_one_host : {false, true}) {
        play({.is_one_host = is_one_host}, [](Stage& stage) {
            std::uint64_t sequence = 0;
            for (const Place place : {Place{0, std::uint64_t{1} << 40}, Place{std::uint64_t{1} << 40, 8},
                                      Place{0, ~std::uint64_t{0}}, Place{~std::uint64_t{0}, 8}}) {
                auto message = cast_of({1, ++sequence}, to_note, {0}, bytes_of(place));
                copy_bytes(message.data(), bytes_of(Kind::placed));
                stage.say(1, message);
                message.pop_back(); // half a place
                stage.say(1, message);
            }
            stage.settle();
            EXPECT_TRUE(stage.handled.empty());
            EXPECT_EQ(stage.member.groups->kept(), 0u);
        });
    }
}

TEST_F(HostileGroups, blocks_past_the_last_one_and_ways_that_there_are_not_are_dropped) {
    play({}, [](Stage& stage) {
        const auto block = [](std::uint64_t sequence, std::uint64_t bytes, std::uint32_t way = 2) {
            return BlockOf{.name = {1, sequence},
                           .purpose = to_note,
                           .set = {0, 1},
                           .bytes = bytes,
                           .way = static_cast<group::Way>(way)};
        };
        stage.say(1, block(1, 8).with(pattern(5000, 0)));
        stage.say(1, block(2, 3000).with(pattern(3001, 0)));
        stage.say(1, block(3, 3000).with(pattern(2047, 0)));
        for (const std::uint32_t way : {0u, 1u, 5u, ~0u})
            stage.say(1, block(4 + way % 8, 8, way).with(bytes_of(std::uint64_t{7})));
        stage.say(1, block(20, 8, 3).with(bytes_of(std::uint64_t{7})));
        stage.settle();
        EXPECT_EQ(stage.handled, std::vector<std::uint64_t>{7});
    });
}

TEST_F(HostileGroups, data_is_taken_only_as_whole_blocks_that_there_are) {
    // Three blocks, of which the last has 952 bytes.
    const auto try_data = [](std::uint32_t index, std::size_t bytes) {
        return makes_sense(
            BlockOf{.name = {1, 1}, .purpose = to_note, .set = {0, 1}, .bytes = 3000, .index = index}.with(
                pattern(bytes, 0)));
    };
    EXPECT_TRUE(try_data(0, 1024));
    EXPECT_TRUE(try_data(0, 2048));
    EXPECT_TRUE(try_data(1, 1024));
    EXPECT_TRUE(try_data(1, 1024 + 952));
    EXPECT_TRUE(try_data(2, 952));
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{951}, std::size_t{953}, std::size_t{1024}})
        EXPECT_FALSE(try_data(2, bytes)) << bytes;
    for (const std::size_t bytes : {std::size_t{1023}, std::size_t{1025}, std::size_t{2049}, std::size_t{3000}})
        EXPECT_FALSE(try_data(1, bytes)) << bytes;
    EXPECT_FALSE(try_data(3, 0));
    EXPECT_FALSE(try_data(3, 952));
    EXPECT_FALSE(try_data(~0u - 1, 952));
}

TEST_F(HostileGroups, answers_before_their_time_take_no_more_memory_than_there_is_for_them) {
    constexpr std::size_t early_bytes_max = std::size_t{64} << 20, each = 128 << 10, count = early_bytes_max / each;
    const std::vector<std::byte> values(each - answer_of({1, 1}, group::no_relay).size());
    play({}, [&](Stage& stage) {
        // To the last byte: when there is room for one more of 128 KiB, one that takes a byte more does not fit.
        for (std::uint64_t sequence = 1; sequence < count; ++sequence)
            stage.say(1, answer_of({1, sequence}, group::no_relay, {}, {}, values));
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), count - 1);
        auto longer = values;
        longer.emplace_back();
        stage.say(1, answer_of({1, count}, group::no_relay, {}, {}, longer));
        stage.settle();
        stage.say(1, answer_of({1, count + 1}, group::no_relay, {}, {}, values));
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), count);
        stage.say(1, answer_of({1, count + 2}, group::no_relay));
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), count);
        // What is over makes room.
        stage.say(1, bytes_of(Over{Kind::over, 0, {1, 1}, 0}));
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), count - 1);
        stage.say(1, answer_of({1, count + 3}, group::no_relay, {}, {}, values));
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), count);
    });
}

TEST_F(HostileGroups, answers_that_came_before_their_time_make_room_when_it_has_come) {
    constexpr std::size_t early_bytes_max = std::size_t{64} << 20, each = 256 << 10, count = early_bytes_max / each;
    const std::vector<std::byte> values(each - answer_of({1, 1}, group::no_relay).size());
    play({.nodes = 3}, [&](Stage& stage) {
        for (std::uint64_t sequence = 1; sequence <= count; ++sequence)
            stage.say(2, answer_of({1, sequence}, group::no_relay, {}, {}, values));
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), count);
        const std::uint64_t number = 7;
        stage.say(1, BlockOf{.name = {1, 1}, .purpose = to_note, .set = {0, 2}, .root = 0, .bytes = sizeof number}.with(
                         bytes_of(number)));
        stage.settle();
        EXPECT_EQ(stage.handled, std::vector<std::uint64_t>{number});
        EXPECT_EQ(stage.member.groups->kept(), count - 1);
        stage.say(2, answer_of({1, count + 1}, group::no_relay, {}, {}, values));
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), count);
    });
}

TEST_F(HostileGroups, an_answer_has_a_set_a_text_that_is_not_long_and_values) {
    const Name name{1, 1};
    std::vector<std::byte> nobody;
    Set{}.encode(nobody);
    const auto with = [&](std::uint32_t set_bytes, std::uint32_t text_bytes, group::Brings brings, std::size_t bytes) {
        const auto padding = std::vector<std::byte>(bytes);
        return makes_sense(joined(
            {bytes_of(Answer{Kind::answer, set_bytes, name, group::no_relay, text_bytes, brings}), nobody, padding}));
    };
    const auto set_bytes = static_cast<std::uint32_t>(nobody.size());
    EXPECT_TRUE(with(set_bytes, 0, group::Brings::nothing, 0));
    EXPECT_TRUE(with(set_bytes, 1000, group::Brings::values, 1000));
    EXPECT_FALSE(with(set_bytes, 1001, group::Brings::values, 1001));
    EXPECT_TRUE(with(set_bytes, 10, group::Brings::resignation, 10));
    EXPECT_FALSE(with(set_bytes, 11, group::Brings::resignation, 10));
    EXPECT_FALSE(with(set_bytes, 0, static_cast<group::Brings>(3), 0));
    EXPECT_FALSE(with(set_bytes + 1, 0, group::Brings::nothing, 0));
    EXPECT_FALSE(with(set_bytes + 1, 0, group::Brings::nothing, 1)) << "the set is not all of it";
    EXPECT_FALSE(with(set_bytes - 1, 0, group::Brings::nothing, 0));
    EXPECT_FALSE(makes_sense(Bytes(answer_of(name, group::no_relay)).first(sizeof(Answer) - 1)));
}

TEST_F(HostileGroups, who_is_told_that_multicasts_are_over_which_never_began_has_the_next_ones) {
    play({}, [](Stage& stage) {
        for (const std::uint64_t sequence : {1u, 3u, 4u})
            stage.say(1, bytes_of(Over{Kind::over, 0, {1, sequence}, sequence - 1}));
        stage.say(1, bytes_of(Over{Kind::over, 0, {0, 1}, 0})); // its own
        stage.say(1, cast_of({1, 2}, to_note, {0}, bytes_of(std::uint64_t{2})));
        stage.say(1, cast_of({1, 5}, to_note, {0}, bytes_of(std::uint64_t{5})));
        stage.settle();
        EXPECT_EQ(stage.handled, (std::vector<std::uint64_t>{2, 5}));
        EXPECT_EQ(stage.member.groups->kept(), 0u);
    });
}

TEST_F(HostileGroups, no_more_places_in_the_order_are_kept_than_a_master_may_need) {
    play({}, [](Stage& stage) {
        for (std::uint64_t sequence = 2; sequence < 2 * Groups::under_way_max + 100; ++sequence)
            stage.say(1, bytes_of(Over{Kind::over, 0, {1, sequence}, sequence - 1}));
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), 2 * Groups::under_way_max);
    });
}

TEST_F(HostileGroups, blocks_are_as_large_as_masters_make_them) {
    constexpr std::uint32_t message_bytes_max = 256 << 10; // on a network that takes more
    const auto try_size = [](std::uint32_t block_bytes) {
        return makes_sense(BlockOf{.name = {1, 1},
                                   .purpose = to_note,
                                   .set = {0, 1},
                                   .bytes = 3 * std::uint64_t{block_bytes},
                                   .block_bytes = block_bytes}
                               .with(pattern(block_bytes, 0)));
    };
    EXPECT_FALSE(try_size(1));
    EXPECT_FALSE(try_size(1023));
    EXPECT_TRUE(try_size(1024));
    EXPECT_TRUE(try_size(message_bytes_max / 2));
    EXPECT_FALSE(try_size(message_bytes_max / 2 + 1));
}

// ---- multicasts from the memory of this node, that others ask for

/// An ask for 8 bytes of the memory at `from`, to be stored at the puppets of `to`.
std::vector<std::byte> ask_for(global_ptr<std::byte> from, const Set& to, std::uint64_t number = 7,
                               std::uint32_t places = 0) {
    std::vector<std::byte> message;
    group::append(message, bytes_of(group::SourceAsk{number, engine::place_of(from), 8, places, 0}));
    group::append(message, bytes_of(group::StoreHead{}));
    to.encode(message);
    return message;
}

struct Told {
    group::SourceEnded head{};
    Set missing;
    std::string text;
};
Told read_told(const Stage::Heard& heard) {
    Told told;
    Bytes bytes(heard.bytes);
    EXPECT_TRUE(group::take(bytes, told.head));
    told.missing = Set::decode(bytes, 3).value_or(Set{});
    told.text = kumi::text_of(bytes);
    return told;
}

TEST_F(HostileGroups, a_node_that_asks_for_a_multicast_from_memory_is_told_how_it_ended) {
    play({.nodes = 3}, [](Stage& stage) {
        std::uint64_t value = 4711;
        const auto from = good(stage.member.engine->memory().expose(std::span(&value, 1))).as<std::byte>();
        stage.ask(1, ask_for(from, {1, 2}));
        stage.settle();
        EXPECT_TRUE(stage.told.empty()) << "nobody has answered";
        stage.lose(2);
        const auto casts = stage.take_casts();
        ASSERT_FALSE(casts.empty());
        EXPECT_EQ(stage.member.groups->kept(), 1u);
        for (const HeardCast& cast : casts)
            if (cast.by == 1) stage.say(1, answer_of(cast.head.name, cast.head.relay));
        stage.settle();
        ASSERT_EQ(stage.told.size(), 1u);
        const Told told = read_told(stage.told[0]);
        EXPECT_EQ(stage.told[0].by, 1u);
        EXPECT_EQ(told.head.number, 7u);
        EXPECT_EQ(told.head.has_failed, 0u) << told.text;
        EXPECT_EQ(told.missing, Set{2});
        good(stage.member.engine->memory().conceal(from));
        stage.ask(1, ask_for(from, {1}, 8));
        stage.settle();
        ASSERT_EQ(stage.told.size(), 2u);
        EXPECT_EQ(read_told(stage.told[1]).head.has_failed, 1u);
        EXPECT_EQ(read_told(stage.told[1]).head.number, 8u);
        EXPECT_EQ(read_told(stage.told[1]).head.code, static_cast<std::uint32_t>(ErrorCode::not_found));
    });
}

TEST_F(HostileGroups, an_ask_for_a_multicast_from_memory_that_makes_no_sense_is_refused) {
    std::uint64_t value = 4711;
    using Make = std::function<std::vector<std::byte>(global_ptr<std::byte>)>;
    enum class Refusal { none, of_message, of_ask };
    const auto refusal_of = [&](const Make& make, std::uint16_t kind = group::source_ask_kind) {
        Refusal refusal = Refusal::none;
        testing::internal::CaptureStderr();
        play({.nodes = 3}, [&](Stage& stage) {
            const auto from = good(stage.member.engine->memory().expose(std::span(&value, 1))).as<std::byte>();
            stage.ask(1, make(from), kind);
            stage.settle();
            EXPECT_TRUE(stage.take_heard().empty());
            if (stage.told.empty()) return;
            EXPECT_EQ(read_told(stage.told[0]).head.number, 7u);
            EXPECT_EQ(read_told(stage.told[0]).head.has_failed, 1u);
            refusal = Refusal::of_ask;
        });
        const std::string said = testing::internal::GetCapturedStderr();
        const bool is_of_message = said.find("node 0: it could make nothing of a message") != std::string::npos;
        return is_of_message ? Refusal::of_message : refusal;
    };
    const std::size_t whole = ask_for({}, {1}).size();
    for (std::size_t bytes = 0; bytes < whole; ++bytes) {
        const auto cut = [&](auto from) {
            auto message = ask_for(from, {1});
            message.resize(bytes);
            return message;
        };
        // Who has asked is told, if the message says what its number is.
        EXPECT_EQ(refusal_of(cut), bytes < sizeof(group::SourceAsk) ? Refusal::of_message : Refusal::of_ask) << bytes;
    }
    const auto longer = [](auto from) {
        auto message = ask_for(from, {1});
        message.resize(message.size() + 8);
        return message;
    };
    EXPECT_EQ(refusal_of(longer), Refusal::of_ask);
    EXPECT_EQ(refusal_of([](auto from) { return ask_for(from, {3}); }), Refusal::of_ask) << "no such node";
    EXPECT_EQ(refusal_of([](auto from) { return ask_for(from, {1}, 7, 1); }), Refusal::of_ask) << "no place follows";
    EXPECT_EQ(refusal_of([](auto from) { return ask_for(from, {1}, 7, ~0u); }), Refusal::of_ask);
    EXPECT_EQ(refusal_of([](auto from) { return ask_for(from, {1}); }, 2), Refusal::of_message) << "no such kind";
}

TEST_F(HostileGroups, only_the_source_says_how_a_multicast_from_its_memory_ended) {
    testing::internal::CaptureStderr();
    play({.nodes = 3}, [](Stage& stage) {
        const auto segment = good(stage.member.engine->memory().allocate<std::uint64_t>());
        auto done = stage.member.groups->multicast(std::vector{segment}, segment.on(1), 1);
        stage.settle();
        std::vector<std::byte> ended;
        group::append(ended, bytes_of(group::SourceEnded{1, 0, 0}));
        Set().encode(ended);
        stage.ask(1, Bytes(ended).first(ended.size() - 1), group::source_ended_kind);
        stage.ask(2, ended, group::source_ended_kind);
        stage.settle();
        EXPECT_FALSE(done.is_ready());
        stage.ask(1, ended, group::source_ended_kind);
        stage.settle();
        ASSERT_TRUE(done.is_ready());
        EXPECT_TRUE(good(done.get()).empty());
        stage.ask(1, ended, group::source_ended_kind); // late, and no harm
        stage.settle();
        auto lost = stage.member.groups->multicast(std::vector{segment}, segment.on(1), 1);
        stage.settle();
        stage.lose(1);
        ASSERT_TRUE(lost.is_ready());
        expect_code(lost.get(), ErrorCode::node_lost, {"node 1", "some members"});
    });
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("node 0: it could make nothing of a message"), std::string::npos) << said;
}

} // namespace
} // namespace kumi::group_test
