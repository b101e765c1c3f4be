// What a member does with a multicast, message by message: whom it passes it on to, in what order it has it, what it
// answers and when.

#include "group/puppets.hpp"

#include <algorithm>
#include <map>

namespace kumi::group_test {
namespace {

using group::Brings;
using group::Kind;
using group::Name;
using group::Over;
using group::Purpose;
using group::RelayId;
using group::Use;

class Relays : public PuppetTest {};

/// As a function answers it, and as it travels with others.
std::vector<std::byte> value_of(Node node, std::uint64_t number) {
    const auto value = argument_of(number);
    return joined({bytes_of(group::ValueHead{node, static_cast<std::uint32_t>(value.size())}), value});
}

constexpr Purpose to_tenfold{Use::gather, Stage::tenfold_number, Stage::any_size};
constexpr Purpose to_count{Use::gather, Stage::count_number, Stage::any_size};
constexpr Purpose to_complain{Use::gather, Stage::complain_number, Stage::any_size};

std::vector<std::byte> numbered_cast(std::uint64_t sequence, const BeforeList& before = {},
                                     const Purpose& purpose = to_note) {
    return cast_of({1, sequence}, purpose, {0}, bytes_of(sequence), before);
}

using Numbers = std::vector<std::uint64_t>;

// ---- casts for one node alone

TEST_F(Relays, a_cast_without_a_lead_is_handled_once_and_answered_each_time) {
    play({.nodes = 3}, [](Stage& stage) {
        const std::uint64_t number = 4711;
        for (const Node parent : {Node{1}, Node{2}}) { // node 1 may be lost before its parent has the answer
            stage.say(parent, lone_cast_of({1, 9}, to_note, bytes_of(number), {parent, 6}));
            stage.settle();
            const auto answers = stage.take_answers();
            ASSERT_EQ(answers.size(), 1u);
            EXPECT_EQ(answers[0].by, parent);
            EXPECT_EQ(answers[0].head.name, (Name{1, 9}));
            EXPECT_EQ(answers[0].head.relay.index, parent);
            EXPECT_EQ(answers[0].head.relay.generation, 6u);
            EXPECT_TRUE(answers[0].missing.empty());
            EXPECT_EQ(answers[0].text, "");
            EXPECT_EQ(answers[0].head.brings, Brings::nothing);
        }
        EXPECT_EQ(stage.handled, Numbers{number});
        EXPECT_EQ(stage.member.groups->kept(), 0u);
    });
}

TEST_F(Relays, a_cast_without_a_lead_comes_after_what_waits_here) {
    play({.nodes = 2}, [](Stage& stage) {
        stage.say(1, numbered_cast(3, {{2, {0}}})); // waits for the second
        stage.say(1, lone_cast_of({1, 4}, to_note, bytes_of(std::uint64_t{4})));
        stage.settle();
        EXPECT_EQ(stage.handled, Numbers{});
        stage.say(1, lone_cast_of({1, 2}, to_note, bytes_of(std::uint64_t{2})));
        stage.settle();
        EXPECT_EQ(stage.handled, (Numbers{2, 3, 4}));
        EXPECT_EQ(stage.take_answers().size(), 3u);
        EXPECT_EQ(stage.member.groups->kept(), 0u);
    });
}

TEST_F(Relays, what_a_handler_throws_is_in_the_answer_of_a_cast_without_a_lead) {
    play({.nodes = 2}, [](Stage& stage) {
        stage.meanwhile = [] { throw std::runtime_error("broken"); };
        stage.say(1, lone_cast_of({1, 1}, {Use::handler, Stage::meanwhile_number, 0}, Bytes{}));
        stage.settle();
        const auto answers = stage.take_answers();
        ASSERT_EQ(answers.size(), 1u);
        EXPECT_NE(answers[0].text.find("broken"), std::string::npos) << answers[0].text;
    });
}

TEST_F(Relays, only_members_that_must_wait_get_a_lead) {
    play({.nodes = 4}, [](Stage& stage) {
        const auto leads_of = [&](const Set& set, std::uint64_t number) {
            auto done = stage.member.groups->multicast(set, stage.note, number);
            stage.settle();
            std::map<Node, bool> leads;
            for (const HeardCast& cast : stage.take_casts()) {
                EXPECT_EQ(cast.set, Set{cast.by}) << "three nodes are a flat tree";
                EXPECT_EQ(cast.head.lead_bytes != 0, !cast.before.empty());
                leads[cast.by] = cast.head.lead_bytes != 0;
            }
            return leads;
        };
        using Leads = std::map<Node, bool>;
        EXPECT_EQ(leads_of({0, 1, 2}, 1), (Leads{{1, false}, {2, false}}));
        EXPECT_EQ(leads_of({0, 2, 3}, 2), (Leads{{2, true}, {3, false}})) << "node 2 may not have had the first";
        EXPECT_EQ(stage.handled, (Numbers{1, 2}));
    });
}

// ---- passing on

TEST_F(Relays, children_get_their_parts_with_all_that_concerns_them_and_the_parent_an_answer_when_all_have_answered) {
    play({.nodes = 7}, [](Stage& stage) {
        const Set set{0, 2, 3, 4, 5}, all{0, 2, 3, 4, 5, 6};
        const Name name{1, 9};
        const Purpose purpose{Use::take, 0, 77};
        const auto lead = lead_of(set, {{7, {2, 5, 6}}, {8, {6}}}, all);
        const std::uint64_t number = 4711;
        stage.say(1, joined({bytes_of(group::Cast{
                                 Kind::cast, static_cast<std::uint32_t>(lead.size()), name, purpose, {5, 6}, 0.25}),
                             lead, bytes_of(number)}));
        stage.settle();
        const auto casts = stage.take_casts();
        ASSERT_GE(casts.size(), 2u);
        Set reached;
        std::optional<RelayId> id;
        for (const HeardCast& cast : casts) {
            EXPECT_TRUE(cast.set.contains(cast.by));
            EXPECT_TRUE((reached & cast.set).empty());
            reached |= cast.set;
            EXPECT_EQ(cast.head.name, name);
            EXPECT_EQ(cast.head.purpose.use, Use::take);
            EXPECT_EQ(cast.head.purpose.tag, 77u);
            EXPECT_EQ(cast.head.gap, 0.25);
            EXPECT_EQ(cast.all, all);
            EXPECT_EQ(cast.content, joined({bytes_of(number)}));
            BeforeList before; // what concerns members of that part
            if (const Set some = cast.set & Set{2, 5}; !some.empty()) before.emplace_back(7, some);
            EXPECT_EQ(cast.before, before);
            if (id) {
                EXPECT_EQ(cast.head.relay.index, id->index);
            }
            id = cast.head.relay;
        }
        EXPECT_EQ(reached, set - Set{0});
        // Not before this node has it itself, and all whom it was passed on to have answered.
        const Arrival arrival = good(stage.member.groups->next());
        EXPECT_EQ(arrival.members, all);
        EXPECT_EQ(arrival.sequence, 9u);
        stage.settle();
        EXPECT_TRUE(stage.take_heard().empty());
        for (std::size_t i = 0; i < casts.size(); ++i) {
            stage.say(casts[i].by, answer_of(name, *id, i == 0 ? Set{casts[i].set.last()} : Set{}));
            stage.settle();
            EXPECT_EQ(stage.heard.empty(), i + 1 < casts.size());
        }
        const auto answers = stage.take_answers();
        ASSERT_EQ(answers.size(), 1u);
        EXPECT_EQ(answers[0].by, 1u);
        EXPECT_EQ(answers[0].head.name, name);
        EXPECT_EQ(answers[0].head.relay.index, 5u);
        EXPECT_EQ(answers[0].head.relay.generation, 6u);
        EXPECT_EQ(answers[0].missing, Set{casts[0].set.last()});
        EXPECT_EQ(answers[0].head.brings, Brings::nothing);
        EXPECT_EQ(stage.member.groups->kept(), 0u);
    });
}

/// Node 0 passes a multicast of node 1 on to nodes 2 and 3, each of which cares for itself; answers the number of that
/// relay.
RelayId pass_on_to_two(Stage& stage, const Name& name, const Purpose& purpose, Bytes content) {
    stage.say(1, cast_of(name, purpose, {0, 2, 3}, content, {}, {0, 1}, 0.01)); // a flat tree
    stage.settle();
    const auto casts = stage.take_casts();
    EXPECT_EQ(casts.size(), 2u);
    for (const HeardCast& cast : casts) EXPECT_EQ(cast.set, Set{cast.by});
    return casts.empty() ? RelayId{} : casts[0].head.relay;
}

TEST_F(Relays, an_answer_counts_once_and_only_from_a_child_and_for_what_it_was_asked) {
    play({.nodes = 5}, [](Stage& stage) {
        const std::uint64_t number = 1;
        const Name name{1, 1};
        const RelayId id = pass_on_to_two(stage, name, to_note, bytes_of(number));
        EXPECT_EQ(stage.handled, Numbers{1});
        stage.say(2, answer_of(name, id));
        stage.say(2, answer_of(name, id));                            // again
        stage.say(4, answer_of(name, id));                            // no child
        stage.say(3, answer_of({1, 2}, id));                          // of something else
        stage.say(3, answer_of({2, 1}, id));                          // of somebody else
        stage.say(3, answer_of(name, {id.index, id.generation + 1})); // of another life
        stage.say(3, answer_of(name, {id.index + 1, id.generation}));
        stage.say(3, answer_of(name, {1000, 1}));
        stage.settle();
        EXPECT_TRUE(stage.take_heard().empty());
        EXPECT_EQ(stage.member.groups->kept(), 1u);
        stage.say(3, answer_of(name, id));
        stage.settle();
        EXPECT_EQ(stage.take_answers().size(), 1u);
        EXPECT_EQ(stage.member.groups->kept(), 0u);
        stage.say(3, answer_of(name, id)); // it is over
        stage.settle();
        EXPECT_TRUE(stage.take_heard().empty());
    });
}

TEST_F(Relays, who_is_missing_is_told_of_all_children_and_trouble_of_the_first) {
    play({.nodes = 5}, [](Stage& stage) {
        const std::uint64_t number = 1;
        const Name name{1, 1};
        const RelayId id = pass_on_to_two(stage, name, to_note, bytes_of(number));
        stage.say(3, answer_of(name, id, {3}, "the first trouble"));
        stage.settle();
        stage.say(2, answer_of(name, id, {2, 4}, "the second"));
        stage.settle();
        const auto answers = stage.take_answers();
        ASSERT_EQ(answers.size(), 1u);
        EXPECT_EQ(answers[0].missing, (Set{2, 3, 4}));
        EXPECT_EQ(answers[0].text, "the first trouble");
    });
}

TEST_F(Relays, what_a_handler_throws_is_told_but_not_all_of_it) {
    play({}, [](Stage& stage) {
        // A handler that gets less than its arguments, or a function that throws: both are told.
        stage.say(1, cast_of({1, 1}, to_note, {0}, {}));
        stage.settle();
        const auto answers = stage.take_answers();
        ASSERT_EQ(answers.size(), 1u);
        EXPECT_NE(answers[0].text.find("node 0"), std::string::npos) << answers[0].text;
        EXPECT_TRUE(answers[0].missing.empty());
        stage.say(1, cast_of({1, 2}, to_complain, {0}, argument_of(2000)));
        stage.settle();
        const auto long_ones = stage.take_answers();
        ASSERT_EQ(long_ones.size(), 1u);
        EXPECT_EQ(long_ones[0].text.size(), 500u);
        EXPECT_EQ(long_ones[0].head.brings, Brings::nothing);
    });
}

/// The content of a multicast into memory.
std::vector<std::byte> store_of(SegmentId segment, std::uint64_t offset, Bytes data, const Notice& notice = {}) {
    return joined({bytes_of(group::StoreHead{{segment, 0, offset}, notice}), data});
}

TEST_F(Relays, what_is_stored_is_written_and_passed_on_and_answered_when_all_below_have_it) {
    play({.nodes = 5}, [](Stage& stage) {
        const Purpose to_store{Use::store, 0, 0};
        const auto segment = good(stage.member.engine->dispatcher().segments().add(4096));
        const Notice notice{Notice::Kind::set, segment.id, 2048, 1};
        const auto data = pattern(1000, 5);
        const auto zeros = [&](std::size_t begin, std::size_t end) {
            return std::ranges::all_of(segment.bytes.subspan(begin, end - begin),
                                       [](std::byte byte) { return byte == std::byte{0}; });
        };

        stage.member.groups->discard_stores(true);
        Name name{1, 1};
        RelayId id = pass_on_to_two(stage, name, to_store, store_of(segment.id, 8, data, notice));
        EXPECT_TRUE(zeros(0, 4096));
        stage.member.groups->discard_stores(false);
        for (const Node child : {2u, 3u}) stage.say(child, answer_of(name, id));
        stage.settle();
        EXPECT_EQ(stage.take_answers().size(), 1u);

        name.sequence = 2;
        id = pass_on_to_two(stage, name, to_store, store_of(segment.id, 8, data, notice));
        EXPECT_TRUE(is_pattern(segment.bytes.subspan(8, 1000), 5));
        EXPECT_TRUE(zeros(0, 8) && zeros(1008, 2048) && zeros(2056, 4096));
        EXPECT_EQ(segment.bytes[2048], std::byte{1});
        stage.say(2, answer_of(name, id));
        stage.settle();
        EXPECT_TRUE(stage.take_answers().empty()) << "node 3 has not answered";
        stage.say(3, answer_of(name, id));
        stage.settle();
        const auto answers = stage.take_answers();
        ASSERT_EQ(answers.size(), 1u);
        EXPECT_EQ(answers[0].text, "");
        EXPECT_TRUE(answers[0].missing.empty());

        // Places and flags that are nowhere, and contents that end too early: others still get them.
        std::ranges::fill(segment.bytes, std::byte{0});
        for (const auto& content :
             {store_of(segment.id, 3097, data), store_of(segment.id + 1, 0, data), store_of(0x80000000u, 0, data),
              store_of(segment.id, ~std::uint64_t{7}, data), store_of(segment.id, 4096, bytes_of(std::uint64_t{1})),
              joined({Bytes(data).first(sizeof(group::StoreHead) - 1)})}) {
            ++name.sequence;
            id = pass_on_to_two(stage, name, to_store, content);
            for (const Node child : {2u, 3u}) stage.say(child, answer_of(name, id));
            stage.settle();
            const auto refused = stage.take_answers();
            ASSERT_EQ(refused.size(), 1u);
            EXPECT_NE(refused[0].text.find("node 0: "), std::string::npos) << refused[0].text;
            EXPECT_TRUE(zeros(0, 4096)) << refused[0].text;
        }
        stage.say(1, cast_of({1, name.sequence + 1}, to_store, {0},
                             store_of(segment.id, 0, data, {Notice::Kind::count, segment.id, 4088, 1})));
        stage.settle();
        const auto unnoticed = stage.take_answers();
        ASSERT_EQ(unnoticed.size(), 1u);
        EXPECT_NE(unnoticed[0].text.find("flag"), std::string::npos) << unnoticed[0].text;
        EXPECT_TRUE(is_pattern(segment.bytes.first(1000), 5)) << "the data is there";
    });
}

TEST_F(Relays, sync_waits_for_stores_of_this_node_and_not_for_those_that_it_passes_on) {
    play({.nodes = 5}, [](Stage& stage) {
        engine::Engine& engine = *stage.member.engine;
        const auto segment = good(engine.dispatcher().segments().add(64));
        const std::uint64_t value = 6;
        const Name others{1, 1};
        const RelayId id =
            pass_on_to_two(stage, others, {Use::store, 0, 0}, store_of(segment.id, 0, bytes_of(value)));
        stage.settle(); // the children have said that they handled it
        good(engine.sync(now()));
        Flag is_synced = 0;
        auto stored = stage.member.groups->multicast({0, 2}, global_ptr<std::uint64_t>(0, segment.id, 8), {&value, 1});
        good(engine.start_sync(is_synced));
        stage.settle();
        const auto casts = stage.take_casts();
        ASSERT_EQ(casts.size(), 1u);
        EXPECT_FALSE(engine.sync(now()));
        EXPECT_EQ(load_flag(is_synced), 0u);
        stage.say(2, answer_of(casts[0].head.name, casts[0].head.relay));
        stage.settle();
        EXPECT_TRUE(stored.is_ready());
        EXPECT_EQ(load_flag(is_synced), 1u);
        good(engine.sync(now()));
        EXPECT_EQ(segment.bytes[8], std::byte{6});
        for (const Node child : {2u, 3u}) stage.say(child, answer_of(others, id));
        stage.settle();
    });
}

TEST_F(Relays, what_is_gathered_comes_by_node_and_what_is_reduced_is_combined_by_node) {
    play({.nodes = 5}, [](Stage& stage) {
        Name name{1, 1};
        RelayId id = pass_on_to_two(stage, name, to_tenfold, argument_of(5));
        stage.say(3, answer_of(name, id, {}, {}, value_of(3, 53)));
        stage.settle();
        stage.say(2, answer_of(name, id, {}, {}, value_of(2, 52)));
        stage.settle();
        auto answers = stage.take_answers();
        ASSERT_EQ(answers.size(), 1u);
        EXPECT_EQ(answers[0].head.brings, Brings::values);
        EXPECT_EQ(answers[0].values, joined({value_of(0, 50), value_of(2, 52), value_of(3, 53)}));

        name.sequence = 2;
        id = pass_on_to_two(stage, name, {Use::reduce, Stage::tenfold_number, Stage::minus_number}, argument_of(100));
        stage.say(3, answer_of(name, id, {}, {}, argument_of(7)));
        stage.settle();
        stage.say(2, answer_of(name, id, {2}, {})); // it has none
        stage.settle();
        answers = stage.take_answers();
        ASSERT_EQ(answers.size(), 1u);
        EXPECT_EQ(answers[0].missing, Set{2});
        EXPECT_EQ(answers[0].values, argument_of(993));
    });
}

TEST_F(Relays, answers_together_take_half_a_message_at_most) {
    constexpr std::size_t values_bytes_max = std::size_t{128} << 10;
    play({.nodes = 5}, [](Stage& stage) {
        const std::size_t own = value_of(0, 50).size();
        for (const std::size_t more : {0u, 1u}) {
            const Name name{1, 1 + more};
            const RelayId id = pass_on_to_two(stage, name, to_tenfold, argument_of(5));
            stage.say(2, answer_of(name, id));
            stage.say(3, answer_of(name, id, {}, {}, pattern(values_bytes_max - own + more, 1)));
            stage.settle();
            const auto answers = stage.take_answers();
            ASSERT_EQ(answers.size(), 1u);
            EXPECT_EQ(answers[0].values.size(), more == 0 ? values_bytes_max : 0);
            EXPECT_EQ(answers[0].text.find("the answers take") != std::string::npos, more != 0) << answers[0].text;
        }
    });
}

TEST_F(Relays, those_whom_a_lost_child_was_to_care_for_get_it_from_its_parent) {
    play({.nodes = 7}, [](Stage& stage) {
        const std::uint64_t number = 1;
        const Name name{1, 1};
        stage.say(1, cast_of(name, to_note, {0, 2, 3, 4, 5, 6}, bytes_of(number)));
        stage.settle();
        auto casts = stage.take_casts();
        const auto largest = std::ranges::max_element(casts, {}, [](const HeardCast& cast) { return cast.set.size(); });
        const Node lost = largest->by;
        const Set part = largest->set;
        ASSERT_GE(part.size(), 2u);
        Set waited;
        for (const HeardCast& cast : casts) waited.add(cast.by);
        const RelayId id = casts[0].head.relay;
        stage.lose(lost);
        casts = stage.take_casts();
        Set reached;
        for (const HeardCast& cast : casts) {
            reached |= cast.set;
            waited.add(cast.by);
            EXPECT_EQ(cast.content, joined({bytes_of(number)}));
        }
        EXPECT_EQ(reached, part - Set{lost});
        waited.remove(lost);
        for (const Node node : waited) {
            EXPECT_TRUE(stage.heard.empty());
            stage.say(node, answer_of(name, id));
            stage.settle();
        }
        const auto answers = stage.take_answers();
        ASSERT_EQ(answers.size(), 1u);
        EXPECT_EQ(answers[0].missing, Set{lost});
        EXPECT_EQ(stage.handled, Numbers{1});
    });
}

TEST_F(Relays, children_that_do_not_answer_are_sent_something_now_and_then) {
    play({.nodes = 3, .looks_after = true}, [](Stage& stage) {
        const std::uint64_t number = 1;
        const auto sent_in_some_looks = [&] {
            stage.look(3);
            const std::uint64_t before = stage.channel().sent(2).messages;
            stage.look(3);
            return stage.channel().sent(2).messages - before;
        };
        stage.say(1, cast_of({1, 1}, to_note, {0, 2}, bytes_of(number)));
        stage.settle();
        const auto casts = stage.take_casts();
        ASSERT_EQ(casts.size(), 1u);
        stage.say(2, bytes_of(group::Probe{Kind::probe, 0, 1})); // so node 0 knows that all it sent has come
        EXPECT_GT(sent_in_some_looks(), 0u) << "a network learns by it that a node is gone";
        stage.say(2, answer_of({1, 1}, casts[0].head.relay));
        stage.settle();
        EXPECT_EQ(sent_in_some_looks(), 0u);
    });
}

TEST_F(Relays, a_child_that_is_lost_already_is_not_waited_for) {
    play({.nodes = 4}, [](Stage& stage) {
        const std::uint64_t number = 1;
        stage.lose(3);
        stage.say(1, cast_of({1, 1}, to_note, {0, 3}, bytes_of(number)));
        stage.settle();
        const auto answers = stage.take_answers();
        ASSERT_EQ(answers.size(), 1u);
        EXPECT_EQ(answers[0].missing, Set{3});
    });
}

TEST_F(Relays, who_has_passed_something_on_leaves_when_it_has_answered) {
    const auto afterwards = [](Stage& stage) {
        const auto answers = stage.take_answers();
        ASSERT_EQ(answers.size(), 1u);
        EXPECT_EQ(answers[0].by, 1u);
    };
    play({.nodes = 4, .afterwards = afterwards}, [](Stage& stage) {
        const std::uint64_t number = 1;
        const Name name{1, 1};
        const RelayId id = pass_on_to_two(stage, name, to_note, bytes_of(number));
        for (const Node child : {2u, 3u}) stage.say(child, answer_of(name, id)); // while it leaves
        stage.member.engine.reset();
    });
}

// ---- once, and in order

TEST_F(Relays, what_comes_again_is_answered_again_and_not_done_again) {
    play({.nodes = 4}, [](Stage& stage) {
        const std::uint64_t number = 1;
        for (const Node parent : {1u, 2u, 3u}) {
            stage.say(parent, cast_of({1, 1}, to_note, {0}, bytes_of(number), {}, {parent, 1}));
            stage.settle();
            const auto answers = stage.take_answers();
            ASSERT_EQ(answers.size(), 1u);
            EXPECT_EQ(answers[0].by, parent);
            EXPECT_EQ(answers[0].head.relay.index, parent);
            EXPECT_TRUE(answers[0].missing.empty());
        }
        EXPECT_EQ(stage.handled, Numbers{1});
        // What functions answered is answered once more, for it may have been lost with somebody.
        for (const Node parent : {1u, 2u}) {
            stage.say(parent, cast_of({1, 2}, to_count, {0}, argument_of(0)));
            stage.settle();
            const auto answers = stage.take_answers();
            ASSERT_EQ(answers.size(), 1u);
            EXPECT_EQ(answers[0].values, value_of(0, 1));
        }
    });
}

TEST_F(Relays, values_are_kept_of_as_many_as_a_master_may_have_under_way) {
    play({}, [](Stage& stage) {
        const auto ask = [&](std::uint64_t sequence) {
            stage.say(1, cast_of({1, sequence}, to_tenfold, {0}, argument_of(sequence)));
            stage.settle();
            const auto answers = stage.take_answers();
            EXPECT_EQ(answers.size(), 1u);
            return answers.at(0);
        };
        for (std::uint64_t sequence = 1; sequence <= Groups::under_way_max + 1; ++sequence)
            EXPECT_EQ(ask(sequence).values, value_of(0, 10 * sequence));
        const HeardAnswer forgotten = ask(1);
        EXPECT_EQ(forgotten.missing, Set{0}) << "it cannot tell";
        EXPECT_EQ(forgotten.head.brings, Brings::nothing);
        EXPECT_EQ(ask(2).values, value_of(0, 20));
    });
}

TEST_F(Relays, what_must_come_before_is_waited_for_if_it_concerns_this_node) {
    play({.nodes = 3}, [](Stage& stage) {
        const auto say = [&](std::uint64_t sequence, const BeforeList& before) {
            stage.say(1, numbered_cast(sequence, before));
            stage.settle();
        };
        say(3, {{2, {2}}, {1, {1}}});
        EXPECT_EQ(stage.handled, Numbers{3});
        say(6, {{5, {0, 2}}});
        say(7, {{6, {0}}});
        EXPECT_EQ(stage.handled, Numbers{3});
        EXPECT_EQ(stage.take_answers().size(), 1u) << "who has not had it does not answer";
        say(8, {}); // the master does not know that others wait here
        EXPECT_EQ(stage.handled, Numbers{3});
        say(5, {{4, {0}}});
        EXPECT_EQ(stage.handled, Numbers{3});
        say(4, {});
        EXPECT_EQ(stage.handled, (Numbers{3, 4, 5, 6, 7, 8}));
        EXPECT_EQ(stage.take_answers().size(), 5u);
        EXPECT_EQ(stage.member.groups->kept(), 0u);
        say(9, {{8, {0}}, {3, {0}}}); // which it has had
        EXPECT_EQ(stage.handled.back(), 9u);
        // Masters have no order among each other.
        stage.say(2, cast_of({2, 6}, to_note, {0}, bytes_of(std::uint64_t{26}), {{5, {0}}}));
        stage.settle();
        say(10, {{9, {0}}});
        EXPECT_EQ(stage.handled.back(), 10u);
    });
}

TEST_F(Relays, one_that_waits_for_several_waits_for_all_of_them) {
    play({.nodes = 3}, [](Stage& stage) {
        const auto say = [&](std::uint64_t sequence, const BeforeList& before = {}) {
            stage.say(1, numbered_cast(sequence, before));
            stage.settle();
        };
        say(9, {{7, {0}}, {8, {0}}});
        say(7);
        EXPECT_EQ(stage.handled, Numbers{7});
        say(8);
        EXPECT_EQ(stage.handled, (Numbers{7, 8, 9}));
    });
}

TEST_F(Relays, what_waits_to_be_taken_is_not_waited_for_by_what_comes_after_it) {
    play({}, [](Stage& stage) {
        stage.say(1, numbered_cast(1, {}, to_be_taken));
        stage.say(1, numbered_cast(2, {{1, {0}}}));
        stage.say(1, numbered_cast(3, {{1, {0}}}, to_be_taken));
        stage.settle();
        EXPECT_EQ(stage.handled, Numbers{2});
        EXPECT_EQ(stage.take_answers().size(), 1u) << "what was not taken is not answered";
        EXPECT_EQ(good(stage.member.groups->next()).sequence, 1u);
        EXPECT_EQ(good(stage.member.groups->next()).sequence, 3u);
        stage.settle();
        EXPECT_EQ(stage.take_answers().size(), 2u);
        EXPECT_FALSE(stage.member.groups->next(now()));
    });
}

TEST_F(Relays, one_that_comes_after_a_later_one_was_had_is_missing) {
    play({}, [](Stage& stage) {
        stage.say(1, numbered_cast(5));
        stage.say(1, numbered_cast(4));
        stage.settle();
        EXPECT_EQ(stage.handled, Numbers{5});
        const auto answers = stage.take_answers();
        ASSERT_EQ(answers.size(), 2u);
        EXPECT_TRUE(answers[0].missing.empty());
        EXPECT_EQ(answers[1].missing, Set{0});
        stage.say(1, numbered_cast(8, {}, to_be_taken)); // as good as had
        stage.say(1, numbered_cast(7));
        stage.settle();
        EXPECT_EQ(stage.handled, Numbers{5});
    });
}

TEST_F(Relays, what_the_master_says_is_over_is_not_waited_for_and_not_had) {
    play({.nodes = 3}, [](Stage& stage) {
        const auto over = [&](Node by, std::uint64_t sequence, std::uint64_t before) {
            stage.say(by, bytes_of(Over{Kind::over, 0, {1, sequence}, before}));
            stage.settle();
        };
        const auto say = [&](std::uint64_t sequence, const BeforeList& before = {}) {
            stage.say(1, numbered_cast(sequence, before));
            stage.settle();
        };
        say(5, {{4, {0}}});
        over(2, 4, 0);
        EXPECT_EQ(stage.handled, Numbers{}) << "only the master knows";
        over(1, 4, 0);
        EXPECT_EQ(stage.handled, Numbers{5});
        stage.take_heard();
        say(4);
        EXPECT_EQ(stage.handled, Numbers{5}) << "it is too late";
        const auto answers = stage.take_answers();
        ASSERT_EQ(answers.size(), 1u);
        EXPECT_EQ(answers[0].missing, Set{0});

        // What comes after it still comes after what was before it.
        say(9, {{8, {0}}});
        over(1, 8, 7);
        EXPECT_EQ(stage.handled, Numbers{5});
        say(7);
        EXPECT_EQ(stage.handled, (Numbers{5, 7, 9}));

        // What is here is had all the same, in its turn.
        say(12, {{11, {0}}});
        over(1, 12, 11);
        say(11);
        EXPECT_EQ(stage.handled, (Numbers{5, 7, 9, 11, 12}));
        EXPECT_EQ(stage.member.groups->kept(), 0u);
    });
}

TEST_F(Relays, what_a_lost_master_will_not_send_any_more_is_not_waited_for_after_some_time) {
    play({.nodes = 3, .looks_after = true}, [](Stage& stage) {
        stage.say(1, numbered_cast(5, {{4, {0}}}));
        stage.say(1, answer_of({1, 8}, group::no_relay)); // of one that it knows nothing of
        stage.settle();
        EXPECT_EQ(stage.member.groups->kept(), 3u);
        stage.look(5);
        EXPECT_EQ(stage.handled, Numbers{}) << "the master is there";
        stage.lose(1);
        EXPECT_EQ(stage.handled, Numbers{}) << "others may still have it";
        stage.look(4);
        EXPECT_EQ(stage.handled, Numbers{5});
        EXPECT_EQ(stage.member.groups->kept(), 0u);
    });
}

TEST_F(Relays, what_others_still_have_of_a_lost_master_is_waited_for) {
    play({.nodes = 3, .looks_after = true}, [](Stage& stage) {
        stage.say(1, numbered_cast(9, {{8, {0}}}));
        stage.settle();
        stage.lose(1);
        for (std::uint64_t sequence = 5; sequence <= 8; ++sequence) { // while something comes nobody gives up
            stage.look(1);
            EXPECT_EQ(stage.handled.size(), sequence - 5);
            stage.say(2, numbered_cast(sequence));
            stage.settle();
        }
        EXPECT_EQ(stage.handled, (Numbers{5, 6, 7, 8, 9}));
    });
}

// ---- the master

TEST_F(Relays, a_master_that_is_no_member_sends_to_one_of_them_and_to_another_the_next_time) {
    play({.nodes = 6, .topology = Topology({{0, 1, 0, 0, 0, 1}})}, [](Stage& stage) {
        Set firsts;
        for (std::uint64_t number = 1; number <= 3; ++number) {
            auto done = stage.member.groups->multicast({1, 2, 3, 4, 5}, stage.note, number);
            stage.settle();
            const auto casts = stage.take_casts();
            ASSERT_EQ(casts.size(), 1u);
            EXPECT_EQ(casts[0].set, (Set{1, 2, 3, 4, 5}));
            EXPECT_EQ(casts[0].head.name, (Name{0, number}));
            firsts.add(casts[0].by);
            EXPECT_FALSE(done.is_ready());
            stage.say(casts[0].by, answer_of(casts[0].head.name, casts[0].head.relay));
            stage.settle();
            EXPECT_TRUE(done.is_ready());
            EXPECT_TRUE(good(done.get()).empty());
        }
        EXPECT_EQ(firsts, (Set{2, 3, 4})) << "those near it";
        (void)stage.member.groups->multicast({1, 5}, stage.note, std::uint64_t{0}); // of whom none is near
        stage.settle();
        EXPECT_EQ(stage.take_casts().size(), 1u);
        stage.lose(3);
        for (std::uint64_t number = 5; number <= 7; ++number) {
            auto done = stage.member.groups->multicast({2, 3, 4}, stage.note, number);
            stage.settle();
            const auto casts = stage.take_casts();
            ASSERT_EQ(casts.size(), 1u) << "one that is there";
            stage.say(casts[0].by, answer_of(casts[0].head.name, casts[0].head.relay, {3}));
            EXPECT_EQ(good(done.get()), Set{3});
        }
    });
}

TEST_F(Relays, a_multicast_names_the_newest_that_each_member_may_not_have_had) {
    play({.nodes = 6}, [](Stage& stage) {
        const auto send = [&](const Set& to) {
            (void)stage.member.groups->multicast(to, stage.note, std::uint64_t{0});
            stage.settle();
            const auto casts = stage.take_casts();
            EXPECT_EQ(casts.size(), 1u);
            return casts.at(0);
        };
        EXPECT_EQ(send({1, 2}).before, BeforeList{});
        EXPECT_EQ(send({2, 3}).before, (BeforeList{{1, {2}}}));
        EXPECT_EQ(send({4}).before, BeforeList{});
        const HeardCast last = send({1, 2, 3, 5});
        EXPECT_EQ(last.before, (BeforeList{{2, {2, 3}}, {1, {1}}}));
        stage.say(last.by, answer_of(last.head.name, last.head.relay));
        stage.settle();
        EXPECT_EQ(send({3, 5}).before, (BeforeList{{2, {3}}})) << "of those that are over nothing is said";
    });
}

TEST_F(Relays, members_that_are_missing_are_told_that_it_is_over_and_what_was_before_it) {
    play({.nodes = 6}, [](Stage& stage) {
        std::vector<HeardCast> casts;
        std::vector<Future<Set>> done;
        for (const Set& to : {Set{2, 3}, Set{3, 4}, Set{1, 2, 3, 4}, Set{2, 3, 4}}) {
            done.push_back(stage.member.groups->multicast(to, stage.note, std::uint64_t{0}));
            stage.settle();
            for (HeardCast& cast : stage.take_casts()) casts.push_back(std::move(cast));
        }
        ASSERT_EQ(casts.size(), 4u);
        stage.say(casts[2].by, answer_of(casts[2].head.name, casts[2].head.relay, {1, 2, 4, 5}));
        stage.settle();
        EXPECT_EQ(good(done[2].get()), (Set{1, 2, 4})) << "and nobody who is no member";
        std::map<Node, Over> told;
        for (const Stage::Heard& heard : stage.take_heard()) {
            EXPECT_EQ(heard.kind(), Kind::over);
            ASSERT_TRUE(read_value(Bytes(heard.bytes), told[heard.by]));
            EXPECT_EQ(told[heard.by].name, (Name{0, 3}));
        }
        ASSERT_EQ(told.size(), 3u);
        EXPECT_EQ(told[1].before, 0u);
        EXPECT_EQ(told[2].before, 1u);
        EXPECT_EQ(told[4].before, 2u) << "none that came after it";
    });
}

TEST_F(Relays, what_went_wrong_at_a_member_is_an_error_at_the_master) {
    play({.nodes = 3}, [](Stage& stage) {
        auto done = stage.member.groups->multicast({1, 2}, stage.note, std::uint64_t{0});
        stage.settle();
        const auto casts = stage.take_casts();
        ASSERT_EQ(casts.size(), 1u);
        stage.say(casts[0].by, answer_of(casts[0].head.name, casts[0].head.relay, {}, "node 2: no"));
        expect_error(done.get(), {"multicast to 1-2: node 2: no"});
    });
}

/// From a handler, which must not wait: refused when a thread would have to.
Result<void> try_in_handler(Stage& stage, const Set& to, Bytes content) {
    std::optional<Future<Set>> begun;
    stage.meanwhile = [&] { begun = stage.member.groups->multicast(to, 7, content); };
    good(stage.member.engine->send(0, stage.call_meanwhile));
    stage.member.engine->wait_until([&] { return begun.has_value(); });
    if (!begun->is_ready()) return {};
    const auto missing = begun->get();
    if (!missing) return missing.error();
    return {};
}

TEST_F(Relays, a_master_has_so_many_multicasts_under_way_and_no_more) {
    play({}, [](Stage& stage) {
        for (std::size_t i = 0; i < Groups::under_way_max; ++i) EXPECT_TRUE(try_in_handler(stage, {0}, {}));
        expect_error(try_in_handler(stage, {0}, {}), {"multicast to 0 from a handler: 512 are under way"});
        (void)good(stage.member.groups->next());
        EXPECT_TRUE(try_in_handler(stage, {0}, {}));
        expect_error(try_in_handler(stage, {0}, {}), {"512 are under way"});
        while (stage.member.groups->next(now())) {
        }
        EXPECT_EQ(stage.member.groups->kept(), 0u);
    });
}

TEST_F(Relays, a_master_has_so_many_bytes_under_way_and_no_more_if_they_are_of_several) {
    constexpr std::size_t most = std::size_t{256} << 20;
    // Zeros that take no memory, until they are copied.
    const std::unique_ptr<void, void (*)(void*)> zeros(std::calloc(Groups::content_bytes_max, 1), std::free);
    const Bytes content(static_cast<const std::byte*>(zeros.get()), Groups::content_bytes_max);
    play({}, [&](Stage& stage) {
        EXPECT_TRUE(try_in_handler(stage, {0}, content.first(1000)));
        expect_error(try_in_handler(stage, {0}, content.first(most - 999)), {"1 are under way"});
        EXPECT_TRUE(try_in_handler(stage, {0}, content.first(most - 1000)));
        expect_error(try_in_handler(stage, {0}, content.first(1)), {"2 are under way"});
        EXPECT_TRUE(try_in_handler(stage, {0}, {}));
        while (stage.member.groups->next(now())) {
        }
        for (int i = 0; i < 2; ++i)
            EXPECT_TRUE(try_in_handler(stage, {0}, content.first(1000))) << "what is over makes room";
        while (stage.member.groups->next(now())) {
        }
        EXPECT_TRUE(try_in_handler(stage, {0}, content)) << "one alone may be as large as can be";
    });
}

TEST_F(Relays, a_handler_that_multicasts_to_its_own_node_has_ended_before_that_is_handled) {
    play({}, [](Stage& stage) {
        bool has_begun = false;
        stage.meanwhile = [&] {
            (void)stage.member.groups->multicast({0}, stage.note, std::uint64_t{1});
            EXPECT_TRUE(stage.handled.empty());
            has_begun = true;
        };
        good(stage.member.engine->send(0, stage.call_meanwhile));
        stage.member.engine->wait_until([&] { return has_begun && !stage.handled.empty(); });
        EXPECT_EQ(stage.handled, Numbers{1});
    });
}

TEST_F(Relays, a_master_does_not_run_away_from_one_that_stays_under_way) {
    play({}, [](Stage& stage) {
        EXPECT_TRUE(try_in_handler(stage, {1}, {})); // node 1 does not answer
        for (std::uint64_t number = 2; number <= 2048; ++number)
            EXPECT_TRUE(good(stage.member.groups->multicast({0}, stage.note, number).get()).empty());
        expect_error(try_in_handler(stage, {0}, {}), {"1 are under way"});
        const auto casts = stage.take_casts();
        ASSERT_EQ(casts.size(), 1u);
        stage.say(1, answer_of(casts[0].head.name, casts[0].head.relay));
        stage.settle();
        EXPECT_TRUE(try_in_handler(stage, {0}, {}));
    });
}

TEST_F(Relays, what_takes_more_than_half_a_message_goes_in_blocks) {
    constexpr std::size_t whole_bytes_max = std::size_t{128} << 10;
    play({}, [](Stage& stage) {
        EXPECT_EQ(stage.member.groups->choice(whole_bytes_max, 2).way, group::Way::tree);
        EXPECT_TRUE(goes_in_blocks(stage.member.groups->choice(whole_bytes_max + 1, 2).way));
    });
    play({.way = group::Way::binomial}, [](Stage& stage) {
        EXPECT_EQ(stage.member.groups->choice(whole_bytes_max, 9).way, group::Way::binomial);
        EXPECT_TRUE(goes_in_blocks(stage.member.groups->choice(whole_bytes_max + 1, 9).way));
    });
}

TEST_F(Relays, among_nodes_of_one_host_a_content_of_some_size_is_told_of_and_not_sent) {
    constexpr std::size_t least = 2 << 10, most = std::size_t{64} << 20;
    const std::unique_ptr<void, void (*)(void*)> zeros(std::calloc(most + 1, 1), std::free);
    const Bytes content(static_cast<const std::byte*>(zeros.get()), most + 1);
    play({.is_one_host = true}, [&](Stage& stage) {
        const auto kind_of = [&](std::size_t bytes) {
            (void)stage.member.groups->multicast({1}, 7, content.first(bytes));
            stage.settle();
            const auto heard = stage.take_heard();
            return heard.empty() ? Kind::over : heard.front().kind();
        };
        EXPECT_EQ(kind_of(least - 1), Kind::cast);
        EXPECT_EQ(kind_of(least), Kind::placed);
        EXPECT_EQ(kind_of(most), Kind::placed);
        EXPECT_EQ(kind_of(most + 1), Kind::block);
    });
}

TEST_F(Relays, a_content_in_the_memory_of_a_master_that_is_lost_since_is_still_found) {
    play({.nodes = 3, .is_one_host = true}, [](Stage& stage) {
        const engine::MemoryMap& map = stage.member.engine->dispatcher().segments().map();
        const std::uint64_t content = 7;
        map.page(1).heap_bytes = 4096;
        copy_bytes(map.find(1, 0, 64, sizeof content), bytes_of(content));
        stage.lose(1);
        stage.settle();
        ASSERT_FALSE(map.reaches(1));
        auto message = cast_of({1, 1}, to_note, {0}, bytes_of(group::Place{64, sizeof content}));
        copy_bytes(message.data(), bytes_of(Kind::placed));
        stage.say(2, message);
        stage.settle();
        EXPECT_EQ(stage.handled, std::vector<std::uint64_t>{content});
    });
}

} // namespace
} // namespace kumi::group_test
