// Offers and accepts that are withdrawn: what is still read and written, and what the other node is told.

#include "kumi/engine/dispatcher.hpp"

#include "loopback/victim.hpp"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>

namespace kumi::engine::rendezvous_test {
namespace {

using loopback::Victim;

constexpr OperationId asked{7, 9}, asked_later{8, 1}; // a peer's own

class DispatcherRendezvous : public testing::Test {
protected:
    DispatcherRendezvous() {
        for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<std::byte>(i * 7 + (i >> 9));
    }
    Rendezvous& rendezvous() { return victim.dispatcher->rendezvous(); }
    OfferToken offer(std::uint64_t key, Bytes source, Flag* flag = nullptr) {
        return *rendezvous().offer(key, 1, source, flag, 1);
    }
    void hears_want(std::uint64_t key, OperationId operation, std::uint64_t bytes = 1 << 30) {
        const Place landing{landing_bit | operation.index, operation.generation, 0};
        victim.hears(1, Kind::want, Want{key, landing, bytes, operation});
        victim.poll();
    }
    /// Node 1 has handled all that was sent to it, so there is room for more.
    void credit() {
        given = static_cast<std::uint16_t>(given + victim.under_way(1));
        victim.handled[1] = given;
        victim.hears(1, Kind::credit);
        victim.poll();
    }
    /// Where pieces went, since the last call.
    std::vector<Place> pieces() {
        std::vector<Place> all;
        for (const auto& piece : victim.sent(Kind::put)) all.push_back(piece.head<Put>().to);
        return all;
    }
    static void expect_over(const Result<void>& cancelled) {
        ASSERT_FALSE(cancelled);
        EXPECT_EQ(cancelled.error().code(), ErrorCode::not_found);
    }

    std::vector<std::byte> content = std::vector<std::byte>(8 << 20);
    Victim victim;
    std::uint16_t given = 0;
};

// ---- offers

TEST_F(DispatcherRendezvous, an_offer_that_nobody_took_is_withdrawn_and_the_next_one_is_taken) {
    Flag first_flag = 0, second_flag = 0, third_flag = 0;
    const OfferToken first = offer(5, Bytes(content).first(10), &first_flag);
    const OfferToken second = offer(5, Bytes(content).first(20), &second_flag);
    offer(5, Bytes(content).first(30), &third_flag);
    const OfferToken other = offer(6, Bytes(content).first(40));
    EXPECT_TRUE(rendezvous().cancel(second));
    expect_over(rendezvous().cancel(second));
    hears_want(5, asked);
    EXPECT_EQ(load_flag(first_flag), 1u);
    expect_over(rendezvous().cancel(first));
    hears_want(5, asked_later);
    EXPECT_EQ(load_flag(second_flag), 0u);
    EXPECT_EQ(load_flag(third_flag), 1u);
    EXPECT_TRUE(rendezvous().cancel(other));
    victim.channel.take_sent();
    hears_want(6, asked);
    EXPECT_TRUE(pieces().empty());
    credit();
    EXPECT_TRUE(victim.dispatcher->operations().sync(now())) << "none of this is an error";
}

TEST_F(DispatcherRendezvous, an_offer_that_is_being_sent_is_read_no_more_and_the_other_node_is_told) {
    Flag flag = 0;
    const OfferToken token = offer(5, content, &flag);
    hears_want(5, asked);
    const std::size_t sent = pieces().size();
    EXPECT_GT(sent, 0u);
    EXPECT_LT(sent, content.size() / chunk_bytes);
    EXPECT_TRUE(rendezvous().cancel(token));
    const auto refused = victim.sent(Kind::failed);
    ASSERT_EQ(refused.size(), 1u);
    EXPECT_EQ(refused[0].to, 1u);
    EXPECT_EQ(refused[0].head<Failed>().operation, asked);
    EXPECT_EQ(refused[0].head<Failed>().code, static_cast<std::uint32_t>(ErrorCode::cancelled));
    credit();
    EXPECT_TRUE(victim.channel.take_sent().empty());
    EXPECT_EQ(load_flag(flag), 0u);
    expect_over(rendezvous().cancel(token));
    EXPECT_TRUE(victim.dispatcher->operations().sync(now())) << "nor does it wait for the rest";
}

TEST_F(DispatcherRendezvous, a_token_of_no_offer_stops_no_put) {
    const auto id = victim.dispatcher->segments().add(content.size())->id;
    ASSERT_TRUE(victim.dispatcher->memory().start_put({1, id, 0}, content, {}));
    victim.channel.take_sent();
    expect_over(rendezvous().cancel(OfferToken{0, 1, 0}));
    credit();
    EXPECT_FALSE(pieces().empty());
}

TEST_F(DispatcherRendezvous, an_offer_to_a_lost_node_is_refused_at_once) {
    victim.channel.lose(1);
    for (int i = 0; i < 2 * 256; ++i) victim.dispatcher->progress().poll();
    const auto offered = rendezvous().offer(5, 1, content, nullptr, 1);
    ASSERT_FALSE(offered);
    EXPECT_EQ(offered.error().code(), ErrorCode::node_lost);
}

// ---- accepts of another node

TEST_F(DispatcherRendezvous, an_accept_that_waited_is_forgotten_when_it_is_withdrawn) {
    hears_want(5, asked);
    hears_want(5, asked_later);
    victim.hears(1, Kind::withdraw, Withdraw{5, asked});
    victim.poll();
    const auto told = victim.sent(Kind::withdrawn);
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].to, 1u);
    EXPECT_EQ(told[0].head<Withdraw>().operation, asked);
    offer(5, Bytes(content).first(10));
    const auto went = pieces();
    ASSERT_EQ(went.size(), 1u);
    EXPECT_EQ(went[0].segment, landing_bit | asked_later.index);
}

TEST_F(DispatcherRendezvous, what_is_sent_for_an_accept_that_is_withdrawn_is_for_the_next_one) {
    Flag first_flag = 0, second_flag = 0;
    offer(5, content, &first_flag);
    hears_want(5, asked);
    offer(5, Bytes(content).first(10), &second_flag);
    pieces();
    victim.hears(1, Kind::withdraw, Withdraw{5, asked});
    victim.poll();
    EXPECT_EQ(victim.sent(Kind::withdrawn).size(), 1u);
    credit();
    EXPECT_TRUE(pieces().empty());
    EXPECT_EQ(load_flag(first_flag), 0u);
    hears_want(5, asked_later);
    for (int i = 0; i < 4; ++i) {
        for (const Place& to : pieces()) EXPECT_EQ(to.segment, landing_bit | asked_later.index);
        credit();
    }
    EXPECT_EQ(load_flag(first_flag), 1u) << "it is older than the other one";
    EXPECT_EQ(load_flag(second_flag), 0u);
    EXPECT_TRUE(victim.dispatcher->operations().sync(now())) << "the offering node has noticed nothing";
}

TEST_F(DispatcherRendezvous, an_accept_that_waits_gets_what_one_before_it_withdrew_from) {
    Flag flag = 0;
    offer(5, content, &flag);
    hears_want(5, asked);
    hears_want(5, asked_later);
    pieces();
    victim.hears(1, Kind::withdraw, Withdraw{5, asked});
    victim.poll();
    credit();
    const auto went = pieces();
    ASSERT_FALSE(went.empty());
    for (const Place& to : went) EXPECT_EQ(to.segment, landing_bit | asked_later.index);
    EXPECT_EQ(went[0].offset, 0u) << "from its start";
}

TEST_F(DispatcherRendezvous, an_accept_is_withdrawn_by_its_own_node_and_number_only) {
    Flag flag = 0;
    offer(5, content, &flag);
    hears_want(5, asked);
    pieces();
    victim.hears(2, Kind::withdraw, Withdraw{5, asked});
    victim.hears(1, Kind::withdraw, Withdraw{5, {asked.index, asked.generation + 1}});
    victim.poll();
    EXPECT_EQ(victim.sent(Kind::withdrawn).size(), 2u) << "they are answered all the same";
    credit();
    EXPECT_FALSE(pieces().empty()) << "it goes on";
    testing::internal::CaptureStderr();
    victim.hears(1, Kind::withdraw, std::uint32_t{5}); // cut
    victim.hears(1, Kind::withdrawn, Withdraw{5, asked}, {}, false); // of nothing
    victim.poll();
    testing::internal::GetCapturedStderr();
    EXPECT_EQ(victim.sent(Kind::failed).size(), 1u);
}

TEST_F(DispatcherRendezvous, withdrawn_accepts_make_room_for_others) {
    for (std::uint32_t i = 0; i < 1 << 16; ++i) {
        victim.hears(1, Kind::want, Want{5, {landing_bit, 0, 0}, 100, {i, 0}});
        if (i % 1000 == 0) victim.poll();
    }
    victim.poll();
    victim.channel.take_sent();
    victim.hears(1, Kind::withdraw, Withdraw{5, {4711, 0}});
    for (int i = 0; i < 2; ++i) hears_want(6, asked);
    EXPECT_EQ(victim.sent(Kind::failed).size(), 1u) << "for one of two";
}

// ---- accepts of this node

class DispatcherAccepts : public DispatcherRendezvous {
protected:
    AcceptToken accept(MutableBytes into, Flag* flag = nullptr) {
        const auto token = rendezvous().accept(5, 1, into, flag, 1);
        EXPECT_TRUE(token);
        const auto wants = victim.sent(Kind::want);
        if (!wants.empty()) want = wants[0].head<Want>();
        return *token;
    }
    void hears_piece(const Want& for_whom, std::uint64_t offset, Bytes data) {
        Place to = for_whom.to;
        to.offset = offset;
        victim.hears(1, Kind::put, Put{no_operation, to, {}}, data);
        victim.poll();
    }

    /// Withdraws, and does not wait for the other node.
    void cancel_at_once(const AcceptToken& token) {
        const auto cancelled = rendezvous().cancel(token, now());
        ASSERT_FALSE(cancelled);
        EXPECT_EQ(cancelled.error().code(), ErrorCode::timed_out);
    }
    /// What the other node does when it is told.
    void on_withdraw(std::function<void(const Withdraw&)> then) {
        victim.channel.on_sent = [then](Node, Bytes bytes) {
            Header header{};
            Withdraw what{};
            if (read_value(bytes, header) && header.kind == static_cast<std::uint16_t>(Kind::withdraw) &&
                read_value(bytes.subspan(sizeof header), what))
                then(what);
        };
    }

    std::vector<std::byte> target = std::vector<std::byte>(1000, std::byte{0xAA});
    Want want{};
};

TEST_F(DispatcherAccepts, nothing_is_written_for_one_that_is_withdrawn_and_what_comes_late_is_no_error) {
    Flag flag = 0;
    const AcceptToken token = accept(target, &flag);
    hears_piece(want, 0, Bytes(content).first(100));
    EXPECT_EQ(target[99], content[99]);
    std::ranges::fill(target, std::byte{0xAA});
    cancel_at_once(token);
    expect_over(rendezvous().cancel(token, now()));
    const auto told = victim.sent(Kind::withdraw);
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].to, 1u);
    EXPECT_EQ(told[0].head<Withdraw>().key, 5u);
    EXPECT_EQ(told[0].head<Withdraw>().operation, want.operation);
    hears_piece(want, 100, Bytes(content).first(100));
    victim.hears(1, Kind::done, Done{want.operation, 200}, {}, false);
    victim.poll();
    EXPECT_TRUE(victim.sent(Kind::failed).empty()) << "the other node does not know yet";
    EXPECT_EQ(std::ranges::count(target, std::byte{0xAA}), 1000);
    EXPECT_EQ(load_flag(flag), 0u);
    victim.hears(1, Kind::withdrawn, told[0].head<Withdraw>(), {}, false);
    hears_piece(want, 100, Bytes(content).first(100));
    EXPECT_EQ(victim.sent(Kind::failed).size(), 1u) << "now it does";
    EXPECT_EQ(std::ranges::count(target, std::byte{0xAA}), 1000);
}

TEST_F(DispatcherAccepts, one_is_withdrawn_when_the_other_node_has_let_it_go) {
    Flag flag = 0;
    const AcceptToken token = accept(target, &flag);
    on_withdraw([&](const Withdraw& what) {
        EXPECT_EQ(what.operation, want.operation);
        victim.hears(1, Kind::put, Put{no_operation, want.to, {}}, Bytes(content).first(100)); // it had left before
        victim.hears(1, Kind::withdrawn, what, {}, false);
    });
    EXPECT_TRUE(rendezvous().cancel(token, now() + loopback::far_away));
    EXPECT_EQ(load_flag(flag), 0u);
    std::ranges::fill(target, std::byte{0xAA});
    hears_piece(want, 0, Bytes(content).first(100));
    EXPECT_EQ(std::ranges::count(target, std::byte{0xAA}), 1000);
    EXPECT_EQ(victim.sent(Kind::failed).size(), 1u) << "no honest node sends it";
    expect_over(rendezvous().cancel(token, now() + loopback::far_away));
}

TEST_F(DispatcherAccepts, data_that_is_complete_before_the_answer_is_there) {
    Flag flag = 0;
    const AcceptToken token = accept(target, &flag);
    on_withdraw([&](const Withdraw& what) {
        victim.hears(1, Kind::put, Put{no_operation, want.to, {}}, Bytes(content).first(100));
        victim.hears(1, Kind::done, Done{want.operation, 100}, {}, false);
        victim.hears(1, Kind::withdrawn, what, {}, false);
    });
    expect_over(rendezvous().cancel(token, now() + loopback::far_away));
    EXPECT_EQ(load_flag(flag), 1u);
    EXPECT_EQ(target[99], content[99]);
}

TEST_F(DispatcherAccepts, who_withdraws_is_told_when_the_other_node_is_lost) {
    const AcceptToken token = accept(target);
    on_withdraw([&](const Withdraw&) { victim.channel.lose(1); });
    expect_over(rendezvous().cancel(token, now() + loopback::far_away));
}

TEST_F(DispatcherAccepts, late_pieces_of_one_that_was_withdrawn_do_not_land_in_the_next) {
    const AcceptToken token = accept(target);
    const Want first = want;
    cancel_at_once(token);
    Flag flag = 0;
    accept(MutableBytes(target).first(500), &flag);
    EXPECT_EQ(want.operation.index, first.operation.index) << "the slot is the same";
    hears_piece(first, 0, Bytes(content).first(100));
    victim.hears(1, Kind::done, Done{first.operation, 100}, {}, false);
    victim.poll();
    EXPECT_EQ(std::ranges::count(target, std::byte{0xAA}), 1000);
    EXPECT_EQ(load_flag(flag), 0u);
    hears_piece(want, 0, Bytes(content).first(100));
    victim.hears(1, Kind::done, Done{want.operation, 100}, {}, false);
    victim.poll();
    EXPECT_EQ(load_flag(flag), 1u);
    EXPECT_EQ(target[99], content[99]);
}

TEST_F(DispatcherAccepts, one_that_is_complete_or_has_failed_is_not_withdrawn) {
    const AcceptToken token = accept(target);
    victim.hears(1, Kind::done, Done{want.operation, 0}, {}, false);
    victim.poll();
    expect_over(rendezvous().cancel(token, never));
    const AcceptToken lost = accept(target);
    victim.channel.lose(1);
    for (int i = 0; i < 2 * 256; ++i) victim.dispatcher->progress().poll();
    expect_over(rendezvous().cancel(lost, never));
    EXPECT_TRUE(victim.sent(Kind::withdraw).empty());
    expect_over(rendezvous().cancel(AcceptToken{}, never));
}

TEST_F(DispatcherAccepts, the_other_node_is_told_when_there_is_room_and_after_the_accept) {
    const AcceptToken token = accept(target);
    victim.channel.refuse(1);
    cancel_at_once(token);
    EXPECT_TRUE(victim.sent(Kind::withdraw).empty());
    victim.channel.refuse(1, false);
    victim.poll();
    EXPECT_EQ(victim.sent(Kind::withdraw).size(), 1u);
    // In a handler, where the accept itself waits for room.
    {
        const auto turn = victim.dispatcher->take_turn();
        victim.channel.refuse(1);
        const auto second = rendezvous().accept(5, 1, target, nullptr, 1);
        ASSERT_TRUE(second);
        cancel_at_once(*second);
        victim.channel.refuse(1, false);
    }
    victim.poll();
    std::vector<Kind> kinds;
    for (const auto& letter : victim.channel.take_sent()) {
        Header header{};
        ASSERT_TRUE(read_value(letter.bytes, header));
        kinds.push_back(static_cast<Kind>(header.kind));
    }
    EXPECT_EQ(kinds, (std::vector{Kind::want, Kind::withdraw}));
}

TEST_F(DispatcherAccepts, a_node_that_is_lost_need_not_be_told) {
    const AcceptToken token = accept(target);
    victim.channel.refuse(1);
    cancel_at_once(token);
    victim.channel.lose(1);
    for (int i = 0; i < 2 * 256; ++i) victim.dispatcher->progress().poll();
    const auto turn = victim.dispatcher->take_turn();
    EXPECT_FALSE(rendezvous().is_withdrawn(turn, 1, want.to));
}

} // namespace
} // namespace kumi::engine::rendezvous_test
