// What a node says that is not as others say it: a peer that has the handler of groups, but makes its messages by hand.

#include "engine/one_thread.hpp"
#include "group/node.hpp"

#include "kumi/group/mailbox.hpp"
#include "kumi/group/wire.hpp"

#include <limits>

namespace kumi::group_test {
namespace {

using engine_test::OneThread;
using group::Answer;
using group::Block;
using group::Cast;
using group::Kind;
using group::Name;
using group::Place;
using group::Purpose;
using group::Use;

/// The set, and nothing before.
std::vector<std::byte> lead_of(const Set& set) {
    std::vector<std::byte> lead;
    set.encode(lead);
    lead.resize(lead.size() + sizeof(std::uint32_t)); // how many are before
    set.encode(lead);                                 // all members
    lead.resize((lead.size() + 7) / 8 * 8);
    return lead;
}

std::vector<std::byte> joined(std::initializer_list<Bytes> parts) {
    std::vector<std::byte> all;
    for (const Bytes part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
}

std::vector<std::byte> cast_of(const Name& name, const Purpose& purpose, const Set& set, Bytes content) {
    const auto lead = lead_of(set);
    return joined({bytes_of(Cast{Kind::cast, static_cast<std::uint32_t>(lead.size()), name, purpose, {0, 1}, 1}), lead, content});
}

std::vector<std::byte> block_of(const Name& name, const Purpose& purpose, const Set& set, Node root, std::uint64_t bytes, std::uint32_t block_bytes, Bytes data,
                                group::Way way = group::Way::circulant) {
    const auto lead = lead_of(set);
    return joined({bytes_of(Block{Kind::block, static_cast<std::uint32_t>(lead.size()), name, purpose, bytes, block_bytes, 0, root, way, 0, 0, 1}), lead, data});
}

/// Node 0 has groups, whose handlers are 0 and 1, and a handler that counts, which is 2; node 1 says what it likes, and then node 0 looks.
struct Victim {
    Member member;
    std::vector<std::uint64_t> handled;
    std::optional<Handler<std::uint64_t>> note;
};
using Say = std::function<void(Bytes)>;

void run(const std::function<void(const Say&)>& speak, const std::function<void(Victim&)>& look, bool is_one_host = false) {
    OneThread world({.nodes = 2, .seed = 1});
    if (is_one_host) world.share_memory();
    bool has_spoken = false, is_over = false;
    world.run([&](Channel& channel) {
        if (channel.self() == 0) {
            Victim victim;
            victim.note = victim.member.handlers.add("note", [&](Call&, std::uint64_t number) { victim.handled.push_back(number); });
            victim.member.open(channel, world.setup());
            victim.member.engine->wait_until([&] { return has_spoken; });
            look(victim);
            is_over = true;
        } else {
            Handlers handlers;
            const auto group = handlers.add("kumi.group", [](Call&, Bytes) {});
            handlers.add("kumi.group.post", [](Call&, Bytes) {});
            handlers.add("note", [](Call&, std::uint64_t) {});
            auto engine = engine_test::open_alone(channel, std::move(handlers));
            speak([&](Bytes message) { good(engine.send(0, group, message)); });
            good(engine.sync());
            has_spoken = true;
            engine.wait_until([&] { return is_over; });
        }
    });
}

constexpr Purpose note{Use::handler, 2, 0};

TEST(HostileGroups, who_is_told_of_a_multicast_of_its_own_that_it_never_began_goes_on_as_before) {
    run(
        [](const Say& say) {
            for (const std::uint32_t sequence : {1u, 100u}) say(cast_of({0, sequence}, note, {0}, bytes_of(std::uint64_t{7})));
            say(block_of({0, 2}, note, {0, 1}, 1, 8, 1024, bytes_of(std::uint64_t{7})));
        },
        [](Victim& victim) {
            EXPECT_TRUE(victim.handled.empty());
            for (std::uint64_t number = 1; number < 5; ++number) EXPECT_TRUE(good(victim.member.groups.multicast({0}, *victim.note, number).get()).empty());
            EXPECT_EQ(victim.handled, (std::vector<std::uint64_t>{1, 2, 3, 4}));
        });
}

TEST(HostileGroups, the_handler_of_groups_is_none_to_be_called_by_them) {
    run(
        [](const Say& say) {
            const Purpose itself{Use::handler, 0, 0};
            say(cast_of({1, 1}, itself, {0}, cast_of({1, 2}, note, {0}, bytes_of(std::uint64_t{7}))));
            const Purpose post{Use::handler, 1, 0}; // would come from whom the multicast names as its master
            say(cast_of({1, 3}, post, {0}, bytes_of(group::Post{.key = 1, .kind = group::PostKind::trouble})));
            say(cast_of({1, 3}, note, {0}, bytes_of(std::uint64_t{8}))); // the other one was none
        },
        [](Victim& victim) { EXPECT_EQ(victim.handled, std::vector<std::uint64_t>{8}); });
}

TEST(HostileGroups, the_user_is_told_once_of_messages_that_make_no_sense) {
    testing::internal::CaptureStderr();
    run(
        [](const Say& say) {
            for (std::uint32_t kind = 100; kind < 103; ++kind) say(bytes_of(kind));
        },
        [](Victim& victim) { EXPECT_TRUE(victim.handled.empty()); });
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "kumi: warning: node 0 can make nothing of a message of node 1: "
                                                      "do all nodes run the same program, with the same version of Kumi?\n");
}

TEST(HostileGroups, memory_is_not_taken_for_more_than_a_master_may_have_under_way) {
    run(
        [](const Say& say) {
            for (std::uint32_t sequence = 1; sequence < 1000; ++sequence)
                say(block_of({1, sequence}, note, {0, 1}, 1, Groups::content_bytes_max, 32 << 10, pattern(32 << 10, 0)));
        },
        [](Victim& victim) { EXPECT_TRUE(victim.handled.empty()); });
}

TEST(HostileGroups, a_content_is_looked_for_only_where_its_master_has_memory) {
    for (const bool is_one_host : {false, true}) {
        run(
            [](const Say& say) {
                std::uint64_t sequence = 0;
                for (const Place place : {Place{0, std::uint64_t{1} << 40}, Place{std::uint64_t{1} << 40, 8}, Place{0, ~std::uint64_t{0}}, Place{~std::uint64_t{0}, 8}}) {
                    auto message = cast_of({1, ++sequence}, note, {0}, bytes_of(place));
                    copy_bytes(message.data(), bytes_of(Kind::placed));
                    say(message);
                    message.pop_back(); // half a place
                    say(message);
                }
            },
            [](Victim& victim) { EXPECT_TRUE(victim.handled.empty()); }, is_one_host);
    }
}

TEST(HostileGroups, blocks_past_the_last_one_and_ways_that_there_are_not_are_dropped) {
    run(
        [](const Say& say) {
            say(block_of({1, 1}, note, {0, 1}, 1, 8, 1024, pattern(5000, 0)));
            say(block_of({1, 2}, note, {0, 1}, 1, 3000, 1024, pattern(3001, 0)));
            say(block_of({1, 3}, note, {0, 1}, 1, 3000, 1024, pattern(2047, 0)));
            for (const std::uint32_t way : {0u, 1u, 5u, ~0u}) say(block_of({1, 4 + way % 8}, note, {0, 1}, 1, 8, 1024, bytes_of(std::uint64_t{7}), static_cast<group::Way>(way)));
            say(block_of({1, 20}, note, {0, 1}, 1, 8, 1024, bytes_of(std::uint64_t{7}), group::Way::scatter_ring));
        },
        [](Victim& victim) { EXPECT_EQ(victim.handled, std::vector<std::uint64_t>{7}); });
}

TEST(HostileGroups, answers_before_their_time_take_no_more_memory_than_there_is_for_them) {
    constexpr std::size_t bytes = 100'000, count = 1500;
    run(
        [](const Say& say) {
            std::vector<std::byte> nobody;
            Set{}.encode(nobody);
            for (std::uint64_t sequence = 1; sequence <= count; ++sequence) {
                const Answer head{Kind::answer, static_cast<std::uint32_t>(nobody.size()), {1, sequence}, group::no_relay, 0, group::Brings::values};
                say(joined({bytes_of(head), nobody, pattern(bytes, 0)}));
            }
        },
        [](Victim& victim) { EXPECT_LE(victim.member.groups.kept() * bytes, std::size_t{64} << 20); });
}

TEST(HostileGroups, a_multicast_that_comes_again_and_again_is_not_passed_on_without_end) {
    constexpr std::size_t count = 5000;
    run(
        [](const Say& say) {
            const Purpose to_be_taken{Use::take, 0, 7};
            for (std::size_t i = 0; i < count; ++i) say(cast_of({1, 1}, to_be_taken, {0}, bytes_of(std::uint64_t{7})));
        },
        [](Victim& victim) {
            EXPECT_GT(victim.member.groups.kept(), 1u);
            EXPECT_LE(victim.member.groups.kept(), 2000u);
        });
}

TEST(HostileGroups, who_is_told_that_multicasts_are_over_which_never_began_has_the_next_ones) {
    run(
        [](const Say& say) {
            for (const std::uint64_t sequence : {1u, 3u, 4u}) say(joined({bytes_of(group::Over{Kind::over, 0, {1, sequence}, sequence - 1})}));
            say(joined({bytes_of(group::Over{Kind::over, 0, {0, 1}, 0})})); // its own
            say(cast_of({1, 2}, note, {0}, bytes_of(std::uint64_t{2})));
            say(cast_of({1, 5}, note, {0}, bytes_of(std::uint64_t{5})));
        },
        [](Victim& victim) {
            EXPECT_EQ(victim.handled, (std::vector<std::uint64_t>{2, 5}));
            EXPECT_EQ(victim.member.groups.kept(), 0u);
        });
}

TEST(HostileGroups, blocks_are_as_large_as_masters_make_them) {
    run([](const Say& say) { say(block_of({1, 1}, note, {0, 1}, 1, Groups::content_bytes_max, 1, pattern(1, 0))); },
        [](Victim& victim) { EXPECT_TRUE(victim.handled.empty()); });
}

} // namespace
} // namespace kumi::group_test
