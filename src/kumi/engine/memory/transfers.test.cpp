// What goes out in pieces: how much of it at once, in which order, and what it is told to whom.

#include "kumi/engine/dispatcher.hpp"

#include "loopback/victim.hpp"

#include <gtest/gtest.h>

namespace kumi::engine::transfers_test {
namespace {

using engine::Place;
using loopback::Victim;

constexpr OperationId asked{7, 9}; // a peer's own

/// One segment, large enough for all.
class DispatcherTransfers : public testing::Test {
protected:
    explicit DispatcherTransfers(const Victim::Options& options = {}) : victim(std::move(handlers), options) {
        const auto made = victim.dispatcher->segments().add(content.size());
        EXPECT_TRUE(made);
        id = made->id;
        memory = made->bytes;
        for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<std::byte>(i * 7 + (i >> 9));
    }
    /// The node says that it has handled all that was sent to it.
    void credit(Node node) {
        const auto turn = victim.dispatcher->take_turn();
        given[node] += static_cast<std::uint16_t>(victim.under_way(node));
        victim.handled[node] = given[node];
        victim.hears(node, Kind::credit);
    }
    std::size_t puts() { return victim.sent(Kind::put).size(); }

    std::vector<std::byte> content = std::vector<std::byte>(requests_max * chunk_bytes);
    Handlers handlers; // moved to the victim
    const Handler<> take = handlers.add("take", [](Call&) {});
    Victim victim;
    SegmentId id = 0;
    MutableBytes memory;
    std::vector<std::uint16_t> given = std::vector<std::uint16_t>(4);
};

TEST_F(DispatcherTransfers, a_long_put_leaves_a_quarter_of_the_requests_to_others) {
    ASSERT_TRUE(victim.dispatcher->memory().start_put({1, id, 0}, content, {}));
    victim.poll();
    ASSERT_EQ(puts(), requests_max * 3 / 4);
    for (std::uint32_t i = 0; i < requests_max / 4; ++i) ASSERT_TRUE(victim.engine->send(1, take)) << i;
    EXPECT_EQ(victim.under_way(1), requests_max);
    credit(1);
    victim.poll();
    EXPECT_EQ(puts(), content.size() / chunk_bytes - requests_max * 3 / 4) << "the rest of it";
}

TEST_F(DispatcherTransfers, transfers_to_one_node_take_turns) {
    ASSERT_TRUE(victim.dispatcher->memory().start_put({1, id, 0}, Bytes(content).first(20 * chunk_bytes), {}));
    ASSERT_TRUE(
        victim.dispatcher->memory().start_put({1, id, 32 * chunk_bytes}, Bytes(content).first(20 * chunk_bytes), {}));
    victim.poll();
    std::size_t in_a_row = 0, longest = 0;
    bool was_first = true;
    const auto pieces = victim.sent(Kind::put);
    ASSERT_EQ(pieces.size(), 40u);
    for (const auto& piece : pieces) {
        const bool is_first = piece.head<Put>().to.offset < 32 * chunk_bytes;
        in_a_row = is_first == was_first ? in_a_row + 1 : 1;
        was_first = is_first;
        longest = std::max(longest, in_a_row);
    }
    EXPECT_LE(longest, 8u) << "the second did not wait for the first";
}

TEST_F(DispatcherTransfers, so_many_transfers_to_one_node_take_turns_and_others_wait_in_line) {
    victim.channel.refuse(1);
    for (std::uint64_t i = 0; i < 17; ++i)
        ASSERT_TRUE(victim.dispatcher->memory().start_put({1, id, i * 5 * chunk_bytes},
                                                          Bytes(content).first(5 * chunk_bytes), {}));
    victim.channel.refuse(1, false);
    victim.dispatcher->progress().poll();
    const auto pieces = victim.sent(Kind::put);
    EXPECT_EQ(pieces.size(), 16 * 4u);
    for (const auto& piece : pieces) EXPECT_LT(piece.head<Put>().to.offset, 16 * 5 * chunk_bytes);
    credit(1);
    victim.poll();
    EXPECT_EQ(puts(), 17 * 5 - 16 * 4u) << "and all get there";
}

TEST_F(DispatcherTransfers, a_long_get_asks_for_so_many_pieces_at_once) {
    std::vector<std::byte> target(40 * chunk_bytes);
    Flag arrived = 0;
    ASSERT_TRUE(victim.dispatcher->memory().start_get({1, id, 0}, target, &arrived));
    victim.poll();
    auto gets = victim.sent(Kind::get);
    ASSERT_EQ(gets.size(), 16u);
    std::size_t answered = 0;
    while (answered < 40 && answered < gets.size()) {
        const Get get = gets[answered].head<Get>();
        EXPECT_EQ(get.from.offset, answered * chunk_bytes);
        EXPECT_EQ(get.position, answered * chunk_bytes);
        EXPECT_EQ(get.bytes, chunk_bytes);
        victim.handled[1] = static_cast<std::uint16_t>(++answered);
        EXPECT_EQ(load_flag(arrived), 0u);
        victim.hears(1, Kind::got, Got{get.operation, get.position}, Bytes(content).subspan(get.position, get.bytes),
                     false);
        victim.poll();
        for (auto& next : victim.sent(Kind::get)) gets.push_back(next);
        EXPECT_EQ(gets.size(), std::min<std::size_t>(40, 16 + answered));
    }
    EXPECT_EQ(load_flag(arrived), 1u);
    EXPECT_TRUE(std::ranges::equal(target, Bytes(content).first(target.size())));
    EXPECT_TRUE(victim.dispatcher->operations().sync(now()));
}

/// Gets of a peer's, which find no room for their answers.
class LateGets : public DispatcherTransfers {
protected:
    void get(Node source, std::uint64_t offset, std::uint64_t bytes, SegmentId segment) {
        victim.hears(source, Kind::get, Get{asked, {segment, 0, offset}, bytes, 1, 0, offset});
        victim.poll();
    }
    void get(Node source, std::uint64_t offset, std::uint64_t bytes) { get(source, offset, bytes, id); }
    std::uint64_t waiting_bytes() {
        const auto turn = victim.dispatcher->take_turn();
        return victim.dispatcher->outbox(turn).backlog().bytes();
    }
    /// Of each answer that has left, where its data was.
    std::vector<std::uint64_t> answered() {
        std::vector<std::uint64_t> all;
        for (const auto& got : victim.sent(Kind::got)) {
            const auto position = got.head<Got>().position;
            EXPECT_TRUE(std::ranges::equal(got.data<Got>(), Bytes(memory).subspan(position, got.data<Got>().size())));
            all.push_back(position);
        }
        return all;
    }
};

TEST_F(LateGets, are_answered_in_order_when_there_is_room_with_what_the_memory_then_has) {
    victim.channel.refuse(1);
    get(1, 0, chunk_bytes);
    get(1, chunk_bytes, 8);
    EXPECT_TRUE(answered().empty());
    EXPECT_EQ(waiting_bytes(), 0u) << "nothing is copied";
    get(2, 2 * chunk_bytes, chunk_bytes);
    EXPECT_EQ(answered(), std::vector<std::uint64_t>{2 * chunk_bytes}) << "other nodes need not wait";
    std::ranges::fill(memory.first(chunk_bytes), std::byte{0x33});
    victim.channel.refuse(1, false);
    get(1, 3 * chunk_bytes, 8);
    EXPECT_EQ(answered(), (std::vector<std::uint64_t>{0, chunk_bytes, 3 * chunk_bytes}));
    EXPECT_TRUE(victim.dispatcher->progress().poll() == 0 && answered().empty()) << "each once";
}

TEST_F(LateGets, take_a_credit_until_they_are_answered) {
    const auto handled = [&] {
        const auto turn = victim.dispatcher->take_turn();
        return victim.dispatcher->outbox(turn).credits().handled_here(1);
    };
    get(1, 0, chunk_bytes);
    EXPECT_EQ(handled(), 1u);
    victim.channel.refuse(1);
    get(1, 0, chunk_bytes);
    get(1, 0, 8);
    EXPECT_EQ(handled(), 1u);
    victim.channel.refuse(1, false);
    victim.poll();
    EXPECT_EQ(handled(), 3u);
}

TEST_F(LateGets, of_memory_that_goes_meanwhile_are_refused) {
    const auto exposed = victim.dispatcher->segments().expose(memory.first(chunk_bytes));
    ASSERT_TRUE(exposed);
    victim.channel.refuse(1);
    get(1, 0, 4096, *exposed);
    get(1, 8, 8);
    ASSERT_TRUE(victim.dispatcher->segments().conceal({0, *exposed, 0}));
    victim.channel.refuse(1, false);
    victim.poll();
    EXPECT_NE(victim.refusal(1, asked), "");
}

TEST_F(LateGets, of_a_node_that_is_lost_are_forgotten) {
    victim.channel.refuse(1);
    get(1, 0, chunk_bytes);
    const auto turn = [&] { return victim.dispatcher->take_turn(); };
    EXPECT_TRUE(victim.dispatcher->memory().transfers().has_late_gets(turn(), 1));
    victim.channel.lose(1);
    for (int i = 0; i < 2 * 256; ++i) victim.dispatcher->progress().poll();
    EXPECT_FALSE(victim.dispatcher->memory().transfers().has_late_gets(turn(), 1));
    victim.channel.refuse(1, false);
    victim.poll();
    EXPECT_TRUE(answered().empty());
}

TEST_F(DispatcherTransfers, sync_waits_for_a_transfer_that_has_not_left) {
    victim.channel.refuse(1);
    ASSERT_TRUE(victim.dispatcher->memory().start_put({1, id, 0}, Bytes(content).first(5000), {}));
    EXPECT_FALSE(victim.dispatcher->operations().sync(now()));
    victim.channel.refuse(1, false);
    victim.poll();
    EXPECT_FALSE(victim.dispatcher->operations().sync(now())) << "it is under way";
    credit(1);
    victim.poll();
    EXPECT_TRUE(victim.dispatcher->operations().sync(now()));
}

// ---- copies for others

TEST_F(DispatcherTransfers, a_copy_to_a_third_node_is_done_when_that_has_handled_its_last_piece) {
    std::ranges::copy(content, memory.begin());
    victim.hears(1, Kind::copy, Copy{asked, {id, 0, 0}, 2, 0, {id, 0, 64}, 2 * chunk_bytes, {}});
    victim.poll();
    const auto sent = victim.channel.take_sent();
    std::size_t pieces = 0;
    for (const auto& letter : sent) {
        Header header{};
        ASSERT_TRUE(read_value(letter.bytes, header));
        EXPECT_NE(header.kind, static_cast<std::uint16_t>(Kind::done)) << "it is only under way";
        pieces += letter.peer == 2 && header.kind == static_cast<std::uint16_t>(Kind::put) ? 1 : 0;
    }
    EXPECT_EQ(pieces, 2u);
    victim.handled[2] = 1;
    victim.hears(2, Kind::credit);
    victim.poll();
    EXPECT_TRUE(victim.sent(Kind::done).empty());
    victim.handled[2] = 2;
    victim.hears(2, Kind::credit);
    victim.poll();
    const auto done = victim.sent(Kind::done);
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].to, 1u);
    EXPECT_EQ(done[0].head<Done>().operation, asked);
}

TEST_F(DispatcherTransfers, a_copy_that_its_target_refuses_is_told_to_who_asked_for_it) {
    victim.hears(1, Kind::copy, Copy{asked, {id, 0, 0}, 2, 0, {id, 0, 64}, 100, {}});
    victim.poll();
    const auto pieces = victim.sent(Kind::put);
    ASSERT_EQ(pieces.size(), 1u);
    victim.hears(2, Kind::failed, Failed{pieces[0].head<Put>().operation}, bytes_of(std::string_view("no room")),
                 false);
    victim.poll();
    EXPECT_EQ(victim.refusal(1, asked), "node 2: no room");
    credit(2);
    victim.poll();
    EXPECT_TRUE(victim.sent(Kind::done).empty());
}

// ---- rendezvous

TEST_F(DispatcherTransfers, an_offer_is_given_to_whom_it_was_made_under_its_key_and_oldest_first) {
    Flag first = 0, second = 0, other = 0;
    ASSERT_TRUE(victim.dispatcher->rendezvous().offer(5, 1, Bytes(content).first(10), &first, 1));
    ASSERT_TRUE(victim.dispatcher->rendezvous().offer(5, 1, Bytes(content).subspan(10, 20), &second, 1));
    ASSERT_TRUE(victim.dispatcher->rendezvous().offer(6, 1, Bytes(content).first(30), &other, 1));
    victim.hears(2, Kind::want, Want{5, {landing_bit | 1, 4, 0}, 100, asked});
    victim.hears(1, Kind::want, Want{7, {landing_bit | 1, 4, 0}, 100, asked});
    victim.poll();
    EXPECT_EQ(puts(), 0u) << "neither another node nor another key";
    victim.hears(1, Kind::want, Want{5, {landing_bit | 3, 4, 0}, 10, asked}); // exactly as large
    victim.poll();
    EXPECT_EQ(load_flag(first), 1u);
    EXPECT_EQ(load_flag(second) + load_flag(other), 0u);
    const auto sent = victim.channel.take_sent();
    ASSERT_GE(sent.size(), 2u);
    Put put{};
    Done done{};
    ASSERT_TRUE(read_value(Bytes(sent[0].bytes).subspan(sizeof(Header)), put));
    EXPECT_EQ(put.to.segment, landing_bit | 3);
    EXPECT_EQ(put.to.generation, 4u);
    EXPECT_TRUE(
        std::ranges::equal(Bytes(sent[0].bytes).subspan(sizeof(Header) + sizeof put), Bytes(content).first(10)));
    ASSERT_TRUE(read_value(Bytes(sent[1].bytes).subspan(sizeof(Header)), done)); // after the data
    EXPECT_EQ(done.operation, asked);
    EXPECT_EQ(done.value, 10u);
}

TEST_F(DispatcherTransfers, an_offer_that_is_one_byte_too_large_is_told_to_both) {
    Flag given = 0;
    victim.hears(1, Kind::want, Want{5, {landing_bit, 0, 0}, 9, asked});
    victim.poll();
    ASSERT_TRUE(victim.dispatcher->rendezvous().offer(5, 1, Bytes(content).first(10), &given, 1));
    victim.poll();
    const std::string refused = victim.refusal(1, asked);
    EXPECT_NE(refused.find("10 bytes"), std::string::npos) << refused;
    EXPECT_FALSE(victim.dispatcher->operations().sync(now()));
    EXPECT_EQ(load_flag(given), 0u);
}

TEST_F(DispatcherTransfers, a_flag_that_has_its_value_already_loses_it_until_it_is_true_again) {
    Flag given = 1, arrived = 0;
    ASSERT_TRUE(victim.dispatcher->rendezvous().offer(5, 1, Bytes(content).first(10), &given, 1));
    EXPECT_EQ(load_flag(given), 0u);
    std::vector<std::byte> target(10);
    ASSERT_TRUE(victim.dispatcher->rendezvous().accept(6, 2, target, &arrived, 0));
    EXPECT_NE(load_flag(arrived), 0u);
    const auto wants = victim.sent(Kind::want);
    ASSERT_EQ(wants.size(), 1u);
    victim.hears(1, Kind::want, Want{5, {landing_bit, 0, 0}, 10, asked});
    victim.handled[2] = 1;
    victim.hears(2, Kind::done, Done{wants[0].head<Want>().operation, 0}, {}, false);
    victim.poll();
    EXPECT_EQ(load_flag(given), 1u);
    EXPECT_EQ(load_flag(arrived), 0u);
}

TEST_F(DispatcherTransfers, who_wants_something_names_a_landing) {
    ASSERT_TRUE(victim.dispatcher->rendezvous().offer(5, 1, Bytes(content).first(10), nullptr, 1));
    victim.hears(1, Kind::want, Want{5, {id, 0, 0}, 100, asked});
    victim.poll();
    EXPECT_NE(victim.refusal(1), "");
    victim.hears(1, Kind::want, Want{5, {landing_bit, 0, 0}, 100, asked});
    victim.poll();
    EXPECT_EQ(puts(), 1u) << "the offer is still there";
}

TEST_F(DispatcherTransfers, so_many_may_want_something_and_one_more_is_refused) {
    constexpr std::uint64_t most = 1 << 16;
    for (std::uint64_t key = 0; key < most; ++key)
        victim.hears(1 + key % 2, Kind::want, Want{key, {landing_bit, 0, 0}, 100, asked});
    victim.poll();
    EXPECT_TRUE(victim.sent(Kind::failed).empty());
    victim.hears(1, Kind::want, Want{0, {landing_bit, 0, 0}, 100, asked});
    victim.poll();
    EXPECT_NE(victim.refusal(1, asked).find("too much"), std::string::npos);
    ASSERT_TRUE(victim.dispatcher->rendezvous().offer(0, 1, Bytes(content).first(10), nullptr, 1)); // one less
    for (int i = 0; i < 2; ++i) victim.hears(1, Kind::want, Want{99'999'999, {landing_bit, 0, 0}, 100, asked});
    victim.poll();
    EXPECT_EQ(victim.sent(Kind::failed).size(), 1u) << "one finds room";
    victim.channel.lose(2);
    for (int i = 0; i < 2 * 256; ++i) victim.dispatcher->progress().poll();
    for (std::uint64_t key = 0; key < most / 2; ++key)
        victim.hears(1, Kind::want, Want{key, {landing_bit, 0, 0}, 100, asked});
    victim.poll();
    EXPECT_TRUE(victim.sent(Kind::failed).empty()) << "what a lost node wanted is forgotten";
}

} // namespace
} // namespace kumi::engine::transfers_test
