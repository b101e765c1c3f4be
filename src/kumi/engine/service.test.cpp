#include "kumi/engine/service.hpp"

#include "loopback/victim.hpp"

#include "kumi/base/sync/thread_number.hpp"

#include <gtest/gtest.h>

namespace kumi::engine::service_test {
namespace {

using loopback::Victim;

/// A layer as small as one can be: it keeps the numbers that come, and tells what the engine told it.
class Tiny final : public Service {
public:
    explicit Tiny(Dispatcher& dispatcher) : port(dispatcher.add_service(*this)) {}

    Handled on_message(const Turn&, Node source, std::uint16_t kind, Bytes body) override {
        std::uint32_t number = 0;
        if (!read_value(body, number)) return Handled::no;
        told.push_back(fmt::format("{} of kind {} from {}", number, kind, source));
        return is_later ? Handled::later : Handled::yes;
    }
    bool go_on(const Turn&) noexcept override { return told.push_back("go on"), goes_on; }
    void check_silent_peers(const Turn&) noexcept override { told.push_back("look after"); }
    void on_lost(const Turn&, Node node) noexcept override { told.push_back(fmt::format("lost {}", node)); }
    bool is_done(const Turn&) const noexcept override { return ++asked_whether_done > 3; }
    void on_end(const Turn&) noexcept override { told.push_back("end"); }

    std::vector<std::string> take_told() { return std::exchange(told, {}); }

    Port port;
    std::vector<std::string> told;
    bool goes_on = false;
    bool is_later = false;
    mutable int asked_whether_done = 0;
};

/// The kind on the wire of a kind of a service.
Kind kind_of(int service, int kind) {
    return static_cast<Kind>(static_cast<int>(Kind::first_of_layers) + service * 16 + kind);
}

std::vector<std::byte> message_of(std::uint32_t number) {
    std::vector<std::byte> message(sizeof(Header));
    const Bytes bytes = bytes_of(number);
    message.insert(message.end(), bytes.begin(), bytes.end());
    return message;
}

using Told = std::vector<std::string>;

TEST(Services, each_gets_the_messages_of_its_own_kinds_in_order) {
    std::optional<Tiny> first, second;
    Victim victim;
    first.emplace(*victim.dispatcher);
    second.emplace(*victim.dispatcher);
    victim.hears(1, kind_of(0, 0), 1u);
    victim.hears(2, kind_of(1, 15), 2u);
    victim.hears(1, kind_of(0, 15), 3u);
    victim.hears(1, kind_of(1, 0), 4u);
    victim.poll();
    EXPECT_EQ(first->take_told(), (Told{"1 of kind 0 from 1", "3 of kind 15 from 1"}));
    EXPECT_EQ(second->take_told(), (Told{"2 of kind 15 from 2", "4 of kind 0 from 1"}));
}

TEST(Services, what_makes_no_sense_to_one_or_is_for_none_is_refused) {
    std::optional<Tiny> tiny;
    Victim victim;
    tiny.emplace(*victim.dispatcher);
    victim.hears(1, kind_of(0, 3), true); // without a number
    victim.poll();
    EXPECT_EQ(victim.refusal(1), "it could make nothing of a message of kind 147: do all nodes run the same program, "
                                 "with the same version of Kumi?");
    testing::internal::CaptureStderr();
    victim.hears(1, kind_of(0, 3), false);
    victim.poll();
    EXPECT_EQ(victim.refusal(1), "");
    EXPECT_NE(testing::internal::GetCapturedStderr().find("can make nothing of a message of node 1"),
              std::string::npos);
    victim.hears(2, kind_of(1, 0), 1u);
    victim.poll();
    EXPECT_EQ(victim.refusal(2), "it could make nothing of a message of kind 160: do all nodes run the same program, "
                                 "with the same version of Kumi?");
    EXPECT_TRUE(tiny->take_told().empty());
}

TEST(Services, a_port_sends_requests_of_its_kind_and_they_are_credits) {
    std::optional<Tiny> first, second;
    Victim victim;
    first.emplace(*victim.dispatcher);
    second.emplace(*victim.dispatcher);
    auto message = message_of(5);
    EXPECT_TRUE(second->port.try_send(1, 7, message, bytes_of(6u)));
    const auto sent = victim.sent(kind_of(1, 7));
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].to, 1u);
    EXPECT_EQ(sent[0].header.is_request, base::thread_number() << 1 | 1);
    EXPECT_EQ(sent[0].head<std::uint32_t>(), 5u);
    EXPECT_EQ(sent[0].rest.size(), 8u);
    EXPECT_EQ(victim.under_way(1), 1u);
    EXPECT_FALSE(second->port.try_send(3, 7, message)) << "there is no such node";
    EXPECT_FALSE(second->port.send(3, 7, message));
    for (unsigned i = 1; i < requests_max; ++i) EXPECT_TRUE(first->port.send(1, 0, message));
    EXPECT_FALSE(first->port.try_send(1, 0, message)) << "no more credits";
    victim.handled[1] = 1;
    victim.hears(1, Kind::credit);
    victim.poll();
    EXPECT_TRUE(first->port.try_send(1, 0, message));
}

TEST(Services, messages_that_have_been_handled_are_credits_of_their_sender) {
    std::optional<Tiny> tiny;
    Victim victim;
    tiny.emplace(*victim.dispatcher);
    victim.hears(1, kind_of(0, 0), 1u);
    victim.poll();
    victim.hears(1, Kind::please);
    victim.poll();
    const auto told = victim.sent(Kind::credit);
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].header.handled, 1u);
}

TEST(Services, a_message_that_is_handled_later_is_a_credit_of_its_sender_from_then_on) {
    std::optional<Tiny> tiny;
    Victim victim;
    tiny.emplace(*victim.dispatcher);
    tiny->is_later = true;
    victim.hears(1, kind_of(0, 0), 1u);
    victim.hears(1, Kind::please);
    victim.poll();
    EXPECT_TRUE(victim.sent(Kind::credit).empty());
    tiny->port.note_handled(victim.dispatcher->take_turn(), 1, sizeof 1u);
    victim.poll();
    const auto told = victim.sent(Kind::credit);
    ASSERT_EQ(told.size(), 1u) << "it has asked";
    EXPECT_EQ(told[0].header.handled, 1u);
}

TEST(Services, a_large_message_that_is_handled_later_is_in_its_sender_s_window_until_then) {
    std::optional<Tiny> tiny;
    Victim victim({}, {.kept_bytes_max = 0}); // windows of 64 KiB
    tiny.emplace(*victim.dispatcher);
    tiny->is_later = true;
    const std::vector<std::byte> large(20'000);
    victim.hears(1, kind_of(0, 0), 1u, large);
    victim.poll();
    EXPECT_TRUE(victim.sent(Kind::taken).empty());
    tiny->port.note_handled(victim.dispatcher->take_turn(), 1, sizeof 1u + large.size());
    const auto told = victim.sent(Kind::taken);
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].head<Taken>().bytes[2], sizeof(Header) + sizeof 1u + large.size() + ByteWindows::overhead);
}

TEST(Services, with_the_turn_a_message_that_has_no_room_waits_in_the_engine) {
    std::optional<Tiny> tiny;
    Victim victim;
    tiny.emplace(*victim.dispatcher);
    auto message = message_of(5);
    {
        const auto turn = victim.dispatcher->take_turn();
        for (unsigned i = 0; i < requests_max + 1; ++i) EXPECT_TRUE(tiny->port.send(1, 0, message));
    }
    EXPECT_EQ(victim.sent(kind_of(0, 0)).size(), requests_max);
    victim.handled[1] = 1;
    victim.hears(1, Kind::credit);
    victim.poll();
    EXPECT_EQ(victim.sent(kind_of(0, 0)).size(), 1u);
}

TEST(Services, one_goes_on_while_it_wants_to_and_what_it_did_is_progress) {
    std::optional<Tiny> first, second;
    Victim victim;
    first.emplace(*victim.dispatcher);
    second.emplace(*victim.dispatcher);
    EXPECT_EQ(victim.dispatcher->progress().poll(), 0u);
    first->port.want_progress(victim.dispatcher->take_turn(), false); // as before
    second->port.want_progress(victim.dispatcher->take_turn(), true);
    second->port.want_progress(victim.dispatcher->take_turn(), true);
    EXPECT_EQ(victim.dispatcher->progress().poll(), 0u);
    second->goes_on = true;
    EXPECT_EQ(victim.dispatcher->progress().poll(), 1u);
    EXPECT_EQ(second->take_told(), (Told{"go on", "go on"}));
    first->port.want_progress(victim.dispatcher->take_turn(), true);
    second->port.want_progress(victim.dispatcher->take_turn(), false);
    EXPECT_EQ(victim.dispatcher->progress().poll(), 0u);
    first->port.want_progress(victim.dispatcher->take_turn(), false);
    victim.dispatcher->progress().poll();
    EXPECT_EQ(first->take_told(), Told{"go on"});
    EXPECT_TRUE(second->take_told().empty());
}

TEST(Services, all_are_told_of_lost_nodes_of_silence_and_of_the_end) {
    std::optional<Tiny> first, second;
    {
        Victim victim;
        first.emplace(*victim.dispatcher);
        second.emplace(*victim.dispatcher);
        victim.time = 2 * loopback::far_away.count();
        const auto are_told = [&] { return !first->told.empty() && !second->told.empty(); };
        victim.dispatcher->progress().wait_until(are_told, now() + loopback::far_away);
        for (Tiny* const tiny : {&*first, &*second}) EXPECT_EQ(tiny->take_told(), Told{"look after"});
        victim.channel.lose(2);
        victim.dispatcher->progress().wait_until(are_told, now() + loopback::far_away);
        for (Tiny* const tiny : {&*first, &*second}) {
            const Told told = tiny->take_told();
            ASSERT_FALSE(told.empty());
            for (const std::string& one : told) EXPECT_EQ(one, "lost 2");
            tiny->asked_whether_done = 0;
        }
    }
    for (Tiny* const tiny : {&*first, &*second}) {
        EXPECT_EQ(tiny->told.back(), "end");
        EXPECT_GT(tiny->asked_whether_done, 3) << "the engine waits until all are done";
    }
}

} // namespace
} // namespace kumi::engine::service_test
