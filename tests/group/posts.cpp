// Messages between members of a set that do something together, one by one: when they go at once, when they are asked
// for, what is kept and what makes no sense.

#include "group/puppets.hpp"

#include "kumi/base/text/fnv.hpp"
#include "kumi/group/group.hpp"
#include "kumi/group/started/blocking_call.hpp"

#include <algorithm>

namespace kumi::group_test {
namespace {

using group::Collective;
using group::CollectiveHeader;
using group::Inboxes;
using group::Mailbox;
using group::MessageKind;
using group::Windows;

class Posts : public PuppetTest {};

/// As groups number their sets.
std::uint64_t key_of(const Set& set) {
    std::vector<std::byte> encoded;
    set.encode(encoded);
    return base::fnv1a(text_of(encoded));
}

const Set both{0, 1};

/// Of node 1, in a broadcast of which it is the root, among nodes 0 and 1.
CollectiveHeader broadcast_of(MessageKind kind, std::uint32_t serial, std::uint64_t bytes) {
    return {.key = key_of(both),
            .serial = serial,
            .bytes = bytes,
            .came_with = bytes,
            .root = 1,
            .collective = static_cast<std::uint8_t>(Collective::broadcast),
            .kind = kind};
}

std::vector<MessageKind> kinds_of(const std::vector<Stage::Posted>& posted) {
    std::vector<MessageKind> kinds;
    for (const Stage::Posted& one : posted) kinds.push_back(one.head.kind);
    return kinds;
}

using Kinds = std::vector<MessageKind>;

// ---- sending

TEST_F(Posts, what_a_node_has_sent_and_another_has_not_received_fits_a_window) {
    play({}, [](Stage& stage) {
        group::Group group = good(stage.member.groups->group(both));
        // A message costs what it has, and 64 bytes: the window is a multiple of these.
        std::vector<std::byte> values(4096 - Windows::message_cost);
        constexpr std::size_t at_once = Windows::window_bytes / 4096;
        for (std::size_t i = 0; i < at_once; ++i) good(group.broadcast(0, values));
        stage.settle();
        EXPECT_EQ(kinds_of(stage.take_posted()), Kinds(at_once, MessageKind::first));
        // One more waits until it is wanted.
        std::uint32_t taken = 0;
        stage.on_post = [&](const Stage::Posted& post) {
            if (post.head.kind == MessageKind::ready)
                stage.post(1,
                           {.key = key_of(both), .serial = post.head.serial, .taken = taken, .kind = MessageKind::go});
            return false;
        };
        good(group.broadcast(0, values));
        stage.settle();
        auto posted = stage.take_posted();
        EXPECT_EQ(kinds_of(posted), (Kinds{MessageKind::ready, MessageKind::more}));
        EXPECT_EQ(posted.at(0).head.bytes, values.size());
        EXPECT_TRUE(posted.at(0).data.empty());
        EXPECT_EQ(posted.at(1).data.size(), values.size());
        // What was received makes room again: too little for this one, and then just enough.
        taken = 4095;
        stage.post(1, {.key = 1, .taken = taken, .kind = MessageKind::taken});
        stage.settle();
        good(group.broadcast(0, values));
        stage.settle();
        EXPECT_EQ(kinds_of(stage.take_posted()), (Kinds{MessageKind::ready, MessageKind::more}));
        taken = 4096;
        stage.post(1, {.key = 1, .taken = taken, .kind = MessageKind::taken});
        stage.settle();
        good(group.broadcast(0, values));
        good(group.broadcast(0, std::span(values).first(1)));
        stage.settle();
        EXPECT_EQ(kinds_of(stage.take_posted()), (Kinds{MessageKind::first, MessageKind::ready, MessageKind::more}));
    });
}

TEST_F(Posts, large_messages_are_asked_for_before_they_go) {
    play({}, [](Stage& stage) {
        group::Group group = good(stage.member.groups->group(both));
        std::vector<std::byte> values(Mailbox::eager_bytes_max + 1);
        values.back() = std::byte{9};
        // In parts that a network takes, the first of which tells how much it is.
        good(group.gather(1, std::span(values).first(Mailbox::eager_bytes_max), std::span<std::byte>()));
        stage.settle();
        auto posted = stage.take_posted();
        EXPECT_EQ(kinds_of(posted), (Kinds{MessageKind::first, MessageKind::more}));
        EXPECT_EQ(posted.at(0).head.bytes, Mailbox::eager_bytes_max);
        EXPECT_EQ(posted.at(0).data.size() + posted.at(1).data.size(), Mailbox::eager_bytes_max);
        stage.on_post = [&](const Stage::Posted& post) {
            if (post.head.kind == MessageKind::ready)
                stage.post(1, {.key = key_of(both), .serial = post.head.serial, .kind = MessageKind::go});
            return false;
        };
        good(group.gather(1, values, std::span<std::byte>()));
        stage.settle();
        posted = stage.take_posted();
        EXPECT_EQ(kinds_of(posted), (Kinds{MessageKind::ready, MessageKind::more, MessageKind::more}));
        EXPECT_EQ(posted.at(2).data.back(), std::byte{9});
    });
}

TEST_F(Posts, one_that_nobody_wants_is_not_waited_with) {
    play({}, [](Stage& stage) {
        group::Group group = good(stage.member.groups->group(both));
        std::vector<std::byte> values(Mailbox::eager_bytes_max + 1);
        stage.on_post = [&](const Stage::Posted& post) {
            if (post.head.kind != MessageKind::ready) return false;
            stage.post(
                1, {.key = key_of(both), .serial = post.head.serial + 1, .kind = MessageKind::go}); // for another call
            stage.post(
                1, {.key = key_of(both) + 1, .serial = post.head.serial, .kind = MessageKind::go}); // for another set
            stage.post(1, {.key = key_of(both), .serial = post.head.serial, .kind = MessageKind::drop});
            return true;
        };
        good(group.gather(1, values, std::span<std::byte>()));
        stage.settle();
        EXPECT_TRUE(stage.posted.empty());
    });
}

TEST_F(Posts, the_sender_is_told_when_half_of_its_window_was_received) {
    play({}, [](Stage& stage) {
        group::Group group = good(stage.member.groups->group(both));
        std::vector<std::byte> values(4096 - Windows::message_cost);
        constexpr std::uint32_t half = Windows::window_bytes / 2 / 4096;
        for (std::uint32_t i = 1; i <= half; ++i) {
            stage.post(1, broadcast_of(MessageKind::first, i, values.size()), values);
            stage.settle();
            EXPECT_TRUE(stage.posted.empty()) << i;
            good(group.broadcast(1, values));
            stage.settle();
        }
        const auto posted = stage.take_posted();
        EXPECT_EQ(kinds_of(posted), Kinds{MessageKind::taken});
        EXPECT_EQ(posted.at(0).head.taken, Windows::window_bytes / 2);
        // Whatever else is sent tells it too.
        good(group.gather(1, std::span(values).first(1), std::span<std::byte>()));
        stage.settle();
        EXPECT_EQ(stage.take_posted().at(0).head.taken, Windows::window_bytes / 2);
    });
}

// ---- receiving

TEST_F(Posts, what_was_sent_for_another_call_or_with_another_size_is_an_error_at_both) {
    const auto error_with = [](const CollectiveHeader& head, Bytes data) {
        std::string text;
        play({}, [&](Stage& stage) {
            group::Group group = good(stage.member.groups->group(both));
            stage.post(1, head, data);
            stage.settle();
            std::vector<std::byte> values(8);
            const auto done = group.scatter(1, std::span<std::byte>(), values, now() + std::chrono::seconds(5));
            if (!done) text = done.error().text();
            stage.settle();
        });
        return text;
    };
    CollectiveHeader good_one = broadcast_of(MessageKind::first, 1, 8);
    good_one.collective = static_cast<std::uint8_t>(Collective::scatter);
    const auto with = [&](auto change) {
        CollectiveHeader changed = good_one;
        change(changed);
        return changed;
    };
    const auto eight = pattern(8, 0), nine = pattern(9, 0);
    EXPECT_EQ(error_with(good_one, eight), "");
    EXPECT_EQ(error_with(
                  with([](CollectiveHeader& post) { post.collective = static_cast<std::uint8_t>(Collective::gather); }),
                  eight),
              "scatter among 0-1: node 1 has called gather with root 1, this node scatter with root 1");
    EXPECT_EQ(error_with(with([](CollectiveHeader& post) { post.collective = 99; }), eight),
              "scatter among 0-1: node 1 has called something else with root 1, this node scatter with root 1");
    EXPECT_EQ(error_with(with([](CollectiveHeader& post) { post.root = 0; }), eight),
              "scatter among 0-1: node 1 has called scatter with root 0, this node scatter with root 1");
    EXPECT_EQ(error_with(with([](CollectiveHeader& post) { post.came_with = 9; }), eight),
              "scatter among 0-1: node 1 came with 9 bytes, this node with 8");
    const std::string other_step =
        "scatter among 0-1: node 1 is at another step: the members' calls are not in the same order";
    EXPECT_EQ(error_with(with([](CollectiveHeader& post) { post.step = 1; }), eight), other_step);
    EXPECT_EQ(error_with(with([](CollectiveHeader& post) { post.bytes = 9; }), nine),
              "scatter among 0-1: node 1 sends 9 bytes, and the array here has 8 bytes");
    EXPECT_EQ(error_with(with([](CollectiveHeader& post) { post.bytes = 7; }), Bytes(eight).first(7)),
              "scatter among 0-1: node 1 sends 7 bytes, and the array here has 8 bytes");
    const std::string text(600, 'x');
    EXPECT_EQ(
        error_with(with([&](CollectiveHeader& post) { post.kind = MessageKind::trouble, post.bytes = text.size(); }),
                   bytes_of(std::string_view(text))),
        "scatter among 0-1: " + std::string(500, 'x'));
}

/// What comes when it has been asked for.
std::string error_when_more_is(std::size_t bytes) {
    std::string text;
    play({}, [&](Stage& stage) {
        group::Group group = good(stage.member.groups->group(both));
        CollectiveHeader ready = broadcast_of(MessageKind::ready, 1, 16);
        ready.collective = static_cast<std::uint8_t>(Collective::reduce);
        ready.root = 0;
        stage.on_post = [&](const Stage::Posted& post) {
            if (post.head.kind != MessageKind::go) return false;
            EXPECT_EQ(post.head.serial, 1u);
            EXPECT_EQ(post.head.taken, 0u) << "what is asked for takes nothing of the window";
            ready.kind = MessageKind::more;
            std::vector<std::uint32_t> ones(8, 1);
            stage.post(1, ready, std::as_bytes(std::span(ones)).first(bytes));
            if (bytes < 16) stage.post(1, ready, std::as_bytes(std::span(ones)).first(16 - bytes));
            return true;
        };
        stage.post(1, ready);
        stage.settle();
        const std::vector<std::uint32_t> mine(4, 10);
        std::vector<std::uint32_t> result(4);
        const auto done = group.reduce(0, mine, result, group::sum, now() + std::chrono::seconds(5));
        if (!done) text = done.error().text();
        else EXPECT_EQ(result, std::vector<std::uint32_t>(4, 11));
        stage.settle();
    });
    return text;
}

TEST_F(Posts, what_was_asked_for_may_come_in_parts_but_not_in_parts_of_a_value_and_no_more_of_it) {
    EXPECT_EQ(error_when_more_is(16), "");
    EXPECT_EQ(error_when_more_is(4), "");
    EXPECT_EQ(error_when_more_is(12), "");
    const std::string senseless = "reduce among 0-1: node 1 has sent what makes no sense";
    EXPECT_EQ(error_when_more_is(20), senseless);
    EXPECT_EQ(error_when_more_is(6), senseless);
}

/// Whether node 0 can make something of these; it is in no call.
bool post_makes_sense(const std::vector<std::pair<CollectiveHeader, std::size_t>>& posts) {
    testing::internal::CaptureStderr();
    play({}, [&](Stage& stage) {
        for (const auto& [head, bytes] : posts) stage.post(1, head, pattern(bytes, 0));
        stage.settle();
        EXPECT_TRUE(stage.posted.empty());
    });
    return testing::internal::GetCapturedStderr().find("can make nothing of a message of node 1") == std::string::npos;
}

TEST_F(Posts, what_makes_no_sense_is_told_and_dropped) {
    const auto first = [](std::uint64_t bytes) { return broadcast_of(MessageKind::first, 1, bytes); };
    const auto more = [](std::uint32_t serial) { return broadcast_of(MessageKind::more, serial, 0); };
    EXPECT_TRUE(post_makes_sense({{first(8), 8}}));
    EXPECT_FALSE(post_makes_sense({{first(8), 9}}));
    EXPECT_TRUE(post_makes_sense({{first(Mailbox::eager_bytes_max), 100}}));
    EXPECT_FALSE(post_makes_sense({{first(Mailbox::eager_bytes_max + 1), 100}}));
    EXPECT_FALSE(post_makes_sense({{more(1), 0}}));
    EXPECT_TRUE(post_makes_sense({{first(8), 3}, {more(1), 5}}));
    EXPECT_FALSE(post_makes_sense({{first(8), 3}, {more(1), 6}}));
    EXPECT_FALSE(post_makes_sense({{first(8), 3}, {more(2), 5}}));
    for (const MessageKind kind : {MessageKind::ask, MessageKind::stuck, MessageKind::chase, MessageKind::mismatch})
        EXPECT_TRUE(post_makes_sense({{broadcast_of(kind, 1, 0), 0}}));
    EXPECT_FALSE(post_makes_sense({{broadcast_of(static_cast<MessageKind>(11), 1, 0), 0}}));
    // Nothing was sent, so nothing can have been received.
    EXPECT_TRUE(post_makes_sense({{{.key = 1, .taken = 0, .kind = MessageKind::taken}, 0}}));
    EXPECT_FALSE(post_makes_sense({{{.key = 1, .taken = 1, .kind = MessageKind::taken}, 0}}));
}

TEST_F(Posts, what_is_still_sent_for_a_call_that_has_failed_is_dropped_and_what_is_sent_for_the_next_is_not) {
    play({}, [](Stage& stage) {
        group::Group group = good(stage.member.groups->group(both));
        std::vector<std::byte> values(8);
        expect_error(group.broadcast(1, values, now()),
                     {"broadcast among 0-1: node 1 has not come within the time given"});
        stage.post(1, broadcast_of(MessageKind::ready, 7, 8));
        stage.post(1, broadcast_of(MessageKind::ready, 7, 8));
        stage.post(1, broadcast_of(MessageKind::first, 7, 8), pattern(8, 7));
        stage.settle();
        const auto posted = stage.take_posted();
        EXPECT_EQ(kinds_of(posted), (Kinds{MessageKind::drop, MessageKind::drop}));
        EXPECT_EQ(posted.at(0).head.serial, 7u);
        stage.post(1, broadcast_of(MessageKind::first, 8, 8), pattern(8, 8));
        stage.settle();
        good(group.broadcast(1, values, now() + std::chrono::seconds(5)));
        EXPECT_EQ(values, pattern(8, 8));
    });
}

TEST_F(Posts, a_member_whose_call_fails_tells_those_who_wait_for_it_and_nobody_else) {
    play({.nodes = 4}, [](Stage& stage) {
        group::Group group = good(stage.member.groups->group({0, 1, 2, 3}));
        // As the root of a scatter it owes each of them a part, and has too much.
        std::vector<std::byte> all(9), mine(2);
        expect_error(group.scatter(0, all, mine),
                     {"scatter among 0-3: the root's array has 9 bytes, and 8 are needed"});
        stage.settle();
        Set told;
        for (const Stage::Posted& post : stage.take_posted()) {
            EXPECT_EQ(post.head.kind, MessageKind::trouble);
            EXPECT_EQ(text_of(post.data), "node 0: the root's array has 9 bytes, and 8 are needed");
            EXPECT_FALSE(told.contains(post.by));
            told.add(post.by);
        }
        EXPECT_EQ(told, (Set{1, 2, 3}));
        // In an allgather of four it owes something to two of them.
        const int one = 1;
        std::vector<int> ones(4);
        expect_error(group.allgather(one, ones, now()),
                     {"allgather among 0-3: node 1 has not come within the time given"});
        stage.settle();
        const auto posted = stage.take_posted();
        EXPECT_EQ(kinds_of(posted), (Kinds{MessageKind::first, MessageKind::trouble}));
        EXPECT_EQ(posted.at(0).by, 3u);
        EXPECT_EQ(posted.at(1).by, 2u);
    });
}

TEST_F(Posts, a_mismatch_is_told_to_all_and_makes_one_call_of_a_node_fail_not_two) {
    play({.nodes = 4}, [](Stage& stage) {
        const Set all{0, 1, 2, 3};
        group::Group group = good(stage.member.groups->group(all));
        const auto post = [&](Node from, MessageKind kind, std::uint32_t serial, std::uint64_t came_with, Bytes data) {
            CollectiveHeader head = broadcast_of(kind, serial, data.size());
            head.key = key_of(all);
            head.came_with = came_with;
            stage.post(from, head, data);
        };
        const auto tell = [&](Node from) {
            post(from, MessageKind::mismatch, 7, 77, bytes_of(std::string_view("all differ")));
        };
        std::vector<std::byte> values(8);
        tell(1);
        expect_error(group.broadcast(1, values), {"broadcast among 0-3: all differ"});
        stage.settle();
        Set told;
        for (const Stage::Posted& one : stage.take_posted()) {
            EXPECT_EQ(one.head.kind, MessageKind::mismatch);
            EXPECT_EQ(one.head.came_with, 77u) << "of the same mismatch";
            EXPECT_EQ(text_of(one.data), "all differ");
            told.add(one.by);
        }
        EXPECT_EQ(told, (Set{1, 2, 3}));
        // Node 2 fails likewise, for the same cause. What it had sent before does not count either; what it sends later
        // does.
        post(2, MessageKind::first, 7, 8, pattern(8, 1));
        tell(2);
        CollectiveHeader head = broadcast_of(MessageKind::first, 8, 8);
        head.key = key_of(all), head.root = 2;
        stage.post(2, head, pattern(8, 2));
        stage.settle();
        good(group.broadcast(2, values, now() + std::chrono::seconds(5)));
        EXPECT_EQ(values, pattern(8, 2));
        // While it is not known, it waits for the next call.
        post(3, MessageKind::mismatch, 9, 78, bytes_of(std::string_view("again")));
        stage.settle();
        expect_error(group.broadcast(3, values), {"broadcast among 0-3: again"});
    });
}

TEST_F(Posts, a_chase_goes_on_along_a_wait_that_becomes_real_later_and_one_that_comes_back_ends_the_call) {
    play({.nodes = 4, .looks_after = true}, [](Stage& stage) {
        const Set all{0, 1, 2, 3};
        group::Group group = good(stage.member.groups->group(all));
        const auto states = [](std::uint64_t lower, std::uint64_t upper) { return lower | upper << 32; };
        const auto post = [&](Node from, MessageKind kind, std::uint64_t bytes, std::uint64_t came_with,
                              std::uint32_t root) {
            stage.post(from, {.key = key_of(all),
                              .serial = 1,
                              .bytes = bytes,
                              .came_with = came_with,
                              .root = root,
                              .collective = static_cast<std::uint8_t>(Collective::gather),
                              .kind = kind});
        };
        std::uint64_t state = 0; // of node 0, in an allgatherv where it waits for node 3
        std::vector<Stage::Posted> heard;
        stage.on_post = [&](const Stage::Posted& one) {
            // of the call, and of its end
            if (one.head.kind < MessageKind::ask || one.head.kind == MessageKind::mismatch) return true;
            if (one.head.kind == MessageKind::ask) {
                EXPECT_EQ(one.by, 3u) << "it waits for nobody else";
                if (std::exchange(state, one.head.bytes) != 0) return true;
                post(1, MessageKind::ask, 5, 0, 2);
                post(1, MessageKind::chase, states(5, state), 1, 0);
                post(1, MessageKind::ask, 6, 0, 2); // when that is answered, the chase has come
                return true;
            }
            heard.push_back(one);
            if (one.head.bytes == states(6, state)) {
                post(3, MessageKind::stuck, states(state + 1, 8), 0, 2); // for another state
                post(3, MessageKind::stuck, states(state, 9), 0, 2);
            }
            // not from the state in which it began, and then from that
            if (one.head.kind == MessageKind::chase && one.head.came_with == 0)
                for (const std::uint64_t begun_in : {state + 1, state})
                    post(2, MessageKind::chase, states(begun_in, state), 0, 3);
            return true;
        };
        expect_error(group.allgatherv(std::vector<int>(1)),
                     {"allgatherv among 0-3: node 3 has called gather with root 2, this node allgatherv"});
        stage.settle();
        const auto was_heard = [&](Node by, MessageKind kind, std::uint64_t bytes, std::uint64_t came_with,
                                   std::uint32_t root) {
            return 1 == std::ranges::count_if(heard, [&](const Stage::Posted& one) {
                       return one.by == by && one.head.kind == kind && one.head.bytes == bytes &&
                              one.head.came_with == came_with && one.head.root == root;
                   });
        };
        EXPECT_TRUE(was_heard(1, MessageKind::stuck, states(5, state), 0, 0));
        EXPECT_TRUE(was_heard(3, MessageKind::chase, states(5, 9), 1, 0))
            << "of node 1: this wait became real after it came";
        EXPECT_TRUE(was_heard(3, MessageKind::chase, states(state, 9), 0, 3)) << "its own";
        EXPECT_TRUE(was_heard(3, MessageKind::chase, states(state + 1, 9), 0, 3))
            << "of another state: not the one that it began";
        EXPECT_EQ(heard.size(), 5u); // and the answer to the second question
    });
}

// ---- what is kept

/// A mailbox at node 0 of two, to which messages are given by hand.
void with_mailbox(const std::function<void(Mailbox&, engine::Dispatcher&)>& look) {
    engine_test::OneThread world({.nodes = 2, .seed = 1, .refusal_chance = 0, .in_flight_max = 1 << 12});
    bool is_over = false;
    world.run([&](Channel& channel) {
        auto dispatcher = good(engine::Dispatcher::open(channel, {}, world.setup().options()));
        std::optional<Mailbox> mailbox;
        std::optional<StandIn> other;
        if (channel.self() == 0) mailbox.emplace(*dispatcher);
        else other.emplace(*dispatcher, [](Bytes) {});
        dispatcher->loop().start();
        engine::Engine engine(std::move(dispatcher));
        if (mailbox) look(*mailbox, mailbox->dispatcher());
        else engine.wait_until([&] { return is_over; });
        is_over = true;
    });
}

std::size_t boxes_of(Mailbox& mailbox) { return mailbox.inboxes(mailbox.dispatcher().take_turn()).size(); }
std::size_t kept_by(Mailbox& mailbox) { return mailbox.inboxes(mailbox.dispatcher().take_turn()).kept(); }

TEST_F(Posts, of_sets_that_are_not_in_use_nothing_is_kept) {
    with_mailbox([](Mailbox& mailbox, engine::Dispatcher& dispatcher) {
        const auto receive = [&](std::uint64_t key) {
            const auto turn = dispatcher.take_turn();
            CollectiveHeader head = broadcast_of(MessageKind::first, 1, 8);
            head.key = key;
            mailbox.on_post(turn, 1, head, pattern(8, key));
        };
        EXPECT_EQ(boxes_of(mailbox), 0u);
        {
            const group::Membership seat(mailbox, both, 5);
            EXPECT_EQ(boxes_of(mailbox), 1u);
        }
        EXPECT_EQ(boxes_of(mailbox), 0u);
        // What comes for one is kept until it is used.
        for (const std::uint64_t key : {5u, 6u, 7u}) receive(key);
        EXPECT_EQ(boxes_of(mailbox), 3u);
        EXPECT_EQ(kept_by(mailbox), 3u);
        for (const std::uint64_t key : {6u, 5u, 7u}) {
            group::Membership seat(mailbox, both, key);
            std::vector<std::byte> values(8);
            EXPECT_TRUE(group::broadcast(seat, 1, values, never));
            EXPECT_EQ(values, pattern(8, key));
        }
        EXPECT_EQ(boxes_of(mailbox), 0u);
        EXPECT_EQ(kept_by(mailbox), 0u);
        // Nor of what comes when nobody wants it.
        const auto turn = dispatcher.take_turn();
        for (const MessageKind kind :
             {MessageKind::go, MessageKind::drop, MessageKind::ask, MessageKind::taken, MessageKind::more})
            mailbox.on_post(turn, 1, broadcast_of(kind, 1, 0), {});
        EXPECT_EQ(boxes_of(mailbox), 0u);
    });
}

TEST_F(Posts, one_thread_at_a_time_is_in_a_call_on_a_set) {
    with_mailbox([](Mailbox& mailbox, engine::Dispatcher&) {
        group::Membership seat(mailbox, {0}, 5), same(mailbox, {0}, 5), other(mailbox, {0}, 6);
        {
            group::BlockingCall call(seat, {.collective = Collective::barrier}, never);
            EXPECT_NE(call.call(), nullptr);
            expect_error(group::barrier(seat, never), {"barrier among 0: another thread is in a call on this set"});
            expect_error(group::barrier(same, never), {"barrier among 0: another thread is in a call on this set"});
            EXPECT_TRUE(group::barrier(other, never));
        }
        EXPECT_TRUE(group::barrier(same, never));
    });
}

TEST_F(Posts, of_more_messages_than_a_node_may_have_sent_some_are_forgotten_but_not_those_of_sets_in_use) {
    with_mailbox([](Mailbox& mailbox, engine::Dispatcher& dispatcher) {
        group::Membership seat(mailbox, both, 0);
        const auto turn = dispatcher.take_turn();
        for (std::uint64_t key = 0; key < Inboxes::kept_max; ++key) {
            CollectiveHeader head = broadcast_of(MessageKind::first, 1, 0);
            head.key = key;
            mailbox.on_post(turn, 1, head, {});
        }
        EXPECT_EQ(kept_by(mailbox), Inboxes::kept_max);
        for (std::uint64_t i = 0; i < 10; ++i) {
            CollectiveHeader head = broadcast_of(MessageKind::first, 1, 0);
            head.key = 1'000'000 + i;
            mailbox.on_post(turn, 1, head, {});
            EXPECT_EQ(kept_by(mailbox), Inboxes::kept_max);
            EXPECT_EQ(boxes_of(mailbox), Inboxes::kept_max);
        }
        EXPECT_EQ(seat.box.early.size(), 1u);
    });
}

TEST_F(Posts, what_was_received_or_forgotten_makes_room_for_others) {
    with_mailbox([](Mailbox& mailbox, engine::Dispatcher& dispatcher) {
        const auto say = [&](std::uint64_t key) {
            const auto turn = dispatcher.take_turn();
            CollectiveHeader head = broadcast_of(MessageKind::first, 1, 0);
            head.key = key;
            mailbox.on_post(turn, 1, head, {});
        };
        const auto receive = [&](std::uint64_t key) {
            group::Membership seat(mailbox, both, key);
            EXPECT_TRUE(group::broadcast(seat, 1, {}, never));
        };
        // As many as may be kept, one after the other: none of them is there for long.
        for (std::uint64_t i = 0; i < Inboxes::kept_max; ++i) {
            say(7);
            receive(7);
        }
        say(8);
        say(9);
        EXPECT_EQ(kept_by(mailbox), 2u);
        receive(8);
        receive(9);
        // Some more than may be kept, of which some are forgotten: when all are gone, others are kept again.
        group::Membership first(mailbox, both, 1), second(mailbox, both, 2);
        for (std::uint64_t i = 0; i < Inboxes::kept_max; ++i) say(1);
        for (std::uint64_t i = 0; i < 10; ++i) say(2);
        EXPECT_EQ(kept_by(mailbox), Inboxes::kept_max);
        while (!first.box.early.empty()) EXPECT_TRUE(group::broadcast(first, 1, {}, never));
        while (!second.box.early.empty()) EXPECT_TRUE(group::broadcast(second, 1, {}, never));
        for (std::uint64_t i = 0; i < Inboxes::kept_max; ++i) say(2);
        EXPECT_EQ(kept_by(mailbox), Inboxes::kept_max);
        EXPECT_EQ(second.box.early.size(), Inboxes::kept_max);
    });
}

TEST_F(Posts, what_was_sent_for_calls_that_have_failed_makes_room_for_others) {
    with_mailbox([](Mailbox& mailbox, engine::Dispatcher& dispatcher) {
        const auto say = [&](MessageKind kind, std::uint64_t key) {
            const auto turn = dispatcher.take_turn();
            CollectiveHeader head = broadcast_of(kind, 1, 0);
            head.key = key;
            if (kind == MessageKind::mismatch) head.came_with = 99; // its number
            mailbox.on_post(turn, 1, head, {});
        };
        // Node 1 tells of a mismatch, by which a call of this node fails.
        say(MessageKind::mismatch, 6);
        {
            group::Membership seat(mailbox, both, 6);
            expect_error(group::broadcast(seat, 1, {}, never), {"broadcast among 0-1"});
        }
        // The same mismatch on another set ends what node 1 has sent there.
        for (std::uint64_t i = 0; i < Inboxes::kept_max; ++i) {
            say(MessageKind::first, 7);
            say(MessageKind::mismatch, 7);
        }
        EXPECT_EQ(kept_by(mailbox), 0u);
        say(MessageKind::first, 8);
        say(MessageKind::first, 9);
        EXPECT_EQ(kept_by(mailbox), 2u);
    });
}

} // namespace
} // namespace kumi::group_test
