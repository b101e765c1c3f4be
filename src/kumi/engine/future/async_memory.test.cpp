// Remote memory by futures, among peers that the test plays: what is under way at once, what cancel() ends, and where
// errors go.

#include "kumi/engine/future/async_memory.hpp"

#include "loopback/victim.hpp"

#include <gtest/gtest.h>
#include <numeric>

namespace kumi::engine::async_memory_test {
namespace {

using namespace std::chrono_literals;
using loopback::Victim;

constexpr std::size_t segment_bytes = 1 << 20;

class AsyncMemoryTest : public testing::Test {
protected:
    AsyncMemoryTest() : made(victim.dispatcher->segments().add(segment_bytes).value()) {}
    AsyncMemory memory() { return victim.engine->memory().async(); }
    global_ptr<std::byte> at(Node node, std::uint64_t offset = 0) const { return {node, made.id, offset}; }
    global_ptr<std::uint64_t> word(Node node, std::uint64_t index = 0) const { return {node, made.id, index * 8}; }
    /// That many requests more were handled by node 1.
    void handles(std::uint16_t more) {
        victim.handled[1] = static_cast<std::uint16_t>(victim.handled[1] + more);
        victim.hears(1, Kind::credit);
        victim.poll();
    }
    /// Node 1 brings what was asked for.
    void brings(const Get& asked, int with) {
        const std::vector<std::byte> data(asked.bytes, static_cast<std::byte>(with));
        victim.hears(1, Kind::got, Got{asked.operation, asked.position}, data, false);
        victim.poll();
    }
    bool sync() { return victim.dispatcher->operations().sync(now()).has_value(); }

    Victim victim;
    MadeSegment made;
};

// ---- atomic operations

TEST_F(AsyncMemoryTest, a_hundred_atomic_operations_are_under_way_at_once) {
    std::vector<Future<std::uint64_t>> before;
    for (int i = 0; i < 100; ++i) before.push_back(memory().fetch_add(word(1), 1));
    const auto requests = victim.sent(Kind::atomic);
    ASSERT_EQ(requests.size(), 100u);
    for (std::size_t i = requests.size(); i-- > 0;) { // answers may come in any order
        const auto asked = requests[i].head<AtomicRequest>();
        EXPECT_EQ(asked.what.kind, Atomic::add);
        EXPECT_FALSE(before[i].is_ready());
        victim.hears(1, Kind::done, Done{asked.operation, 1000 + i}, {}, false);
    }
    victim.poll();
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(*before[i].get(now()), 1000 + i);
    handles(100);
    EXPECT_TRUE(sync());
}

TEST_F(AsyncMemoryTest, values_of_every_type_come_back_as_they_were) {
    const global_ptr<double> real{1, made.id, 0};
    const global_ptr<std::int32_t> narrow{1, made.id, 8};
    const global_ptr<float> small{1, made.id, 12};
    auto one = memory().fetch_add(real, -1.5);
    auto two = memory().fetch_min(narrow, -5);
    auto three = memory().compare_exchange(small, 1.0f, 2.0f);
    const auto sent = victim.sent(Kind::atomic);
    ASSERT_EQ(sent.size(), 3u);
    const auto ask = [&](std::size_t i) { return sent[i].head<AtomicRequest>(); };
    EXPECT_EQ(ask(0).what.kind, Atomic::add_float);
    EXPECT_EQ(from_word<double>(ask(0).what.operand), -1.5);
    EXPECT_EQ(ask(1).what.kind, Atomic::min_signed);
    EXPECT_EQ(ask(1).what.bytes, 4u);
    EXPECT_EQ(from_word<float>(ask(2).what.expected), 1.0f);
    EXPECT_EQ(from_word<float>(ask(2).what.operand), 2.0f);
    victim.hears(1, Kind::done, Done{ask(0).operation, to_word(2.25)}, {}, false);
    victim.hears(1, Kind::done, Done{ask(1).operation, 0xFFFFFFFE}, {}, false);
    victim.hears(1, Kind::done, Done{ask(2).operation, to_word(-0.5f)}, {}, false);
    victim.poll();
    EXPECT_EQ(*one.get(now()), 2.25);
    EXPECT_EQ(*two.get(now()), -2);
    EXPECT_EQ(*three.get(now()), -0.5f);
}

TEST_F(AsyncMemoryTest, starting_a_put_runs_no_continuation_of_an_earlier_one) {
    const std::vector<std::byte> content(64);
    bool has_run = false;
    auto first = memory().put(at(1), content).then([&](const Result<void>&) { has_run = true; });
    const auto sent = static_cast<std::uint16_t>(victim.sent(Kind::put).size());
    ASSERT_GT(sent, 0u);
    {
        const Turn turn = victim.dispatcher->take_turn();
        ASSERT_TRUE(victim.dispatcher->outbox(turn).on_header(1, Header{.handled = sent})) << "as take_in() does";
    }
    victim.handled[1] = sent;
    auto second = memory().put(at(1, 64), content);
    EXPECT_FALSE(has_run) << "the thread that started the second may hold a mutex that the continuation takes";
    victim.poll();
    EXPECT_TRUE(has_run);
    EXPECT_TRUE(first.is_ready());
    handles(sent);
    EXPECT_TRUE(second.is_ready());
}

TEST_F(AsyncMemoryTest, what_this_node_reaches_is_done_at_once) {
    EXPECT_EQ(*memory().fetch_add(word(0), 5).get(now()), 0u);
    EXPECT_EQ(*memory().fetch_xor(word(0), 4).get(now()), 5u);
    EXPECT_TRUE(memory().write(word(0, 1), 9).get(now()));
    EXPECT_EQ(*memory().read(word(0, 1)).get(now()), 9u);
    EXPECT_TRUE(memory().copy(word(0), word(0, 2), 2).get(now()));
    EXPECT_EQ(*memory().read(word(0, 2)).get(now()), 1u);
    EXPECT_TRUE(victim.channel.take_sent().empty());
}

TEST_F(AsyncMemoryTest, what_cannot_be_is_an_error_of_the_future) {
    const auto code_of = [](auto future) { return future.get(now()).error().code(); };
    std::vector<std::byte> bytes(16);
    for (const Node node : {0u, 1u}) {
        EXPECT_EQ(code_of(memory().fetch_add(word(node, segment_bytes), 1)), ErrorCode::not_found);
        EXPECT_EQ(code_of(memory().fetch_add(at(node, 4).as<std::uint64_t>(), 1)), ErrorCode::misuse);
        EXPECT_EQ(code_of(memory().put(at(node, segment_bytes), bytes)), ErrorCode::not_found);
        EXPECT_EQ(code_of(memory().put(at(node), bytes, Notice::set({node, made.id, 4}))), ErrorCode::not_found);
        EXPECT_EQ(code_of(memory().get(at(node, segment_bytes - 15), bytes)), ErrorCode::not_found);
        EXPECT_EQ(code_of(memory().copy(at(node, segment_bytes), at(2), 1)), ErrorCode::not_found);
        EXPECT_EQ(code_of(memory().copy(at(2), at(node, segment_bytes), 1)), ErrorCode::not_found);
        EXPECT_EQ(code_of(memory().copy(at(2), at(node), 1, Notice::set({node, made.id, 4}))), ErrorCode::not_found);
    }
    EXPECT_EQ(code_of(memory().fetch_add(word(9), 1)), ErrorCode::not_found);
    EXPECT_EQ(code_of(memory().read(word(9))), ErrorCode::not_found);
    EXPECT_TRUE(victim.channel.take_sent().empty());
    EXPECT_TRUE(sync()) << "errors come to the futures alone";
}

TEST_F(AsyncMemoryTest, what_the_other_node_refuses_is_told_to_the_future_alone) {
    auto failed = memory().fetch_add(word(1), 1);
    const auto asked = victim.sent(Kind::atomic)[0].head<AtomicRequest>();
    victim.hears(1, Kind::failed, Failed{asked.operation, static_cast<std::uint32_t>(ErrorCode::not_found), 0},
                 bytes_of(std::string_view("nothing there")), false);
    handles(1);
    const auto answer = failed.get(now());
    EXPECT_EQ(answer.error().code(), ErrorCode::not_found);
    EXPECT_EQ(answer.error().text(), "node 1: nothing there");
    EXPECT_TRUE(sync());
}

TEST_F(AsyncMemoryTest, a_lost_node_fails_what_is_under_way) {
    std::vector<std::byte> bytes(16);
    auto added = memory().fetch_add(word(1), 1);
    auto put = memory().put(at(1), bytes);
    auto got = memory().get(at(1), bytes);
    auto copied = memory().copy(at(1), at(2), 16);
    victim.channel.lose(1);
    for (int i = 0; i < 2 * 256; ++i) victim.dispatcher->progress().poll();
    EXPECT_EQ(added.get(now()).error().code(), ErrorCode::node_lost);
    EXPECT_EQ(put.get(now()).error().code(), ErrorCode::node_lost);
    EXPECT_EQ(got.get(now()).error().code(), ErrorCode::node_lost);
    EXPECT_EQ(copied.get(now()).error().code(), ErrorCode::node_lost);
}

TEST_F(AsyncMemoryTest, handlers_may_begin_and_not_wait) {
    std::optional<Future<std::uint64_t>> begun;
    {
        const auto turn = victim.dispatcher->take_turn(); // as in a handler
        begun = memory().fetch_add(word(1), 1);
        EXPECT_EQ(begun->get().error().code(), ErrorCode::misuse);
    }
    victim.hears(1, Kind::done, Done{victim.sent(Kind::atomic)[0].head<AtomicRequest>().operation, 8}, {}, false);
    EXPECT_EQ(*begun->get(now() + 10s), 8u);
}

// ---- gets

TEST_F(AsyncMemoryTest, a_get_is_ready_when_all_of_it_has_come) {
    std::vector<std::byte> target(100'000);
    auto got = memory().get(at(1, 50), target);
    const auto asked = victim.sent(Kind::get);
    ASSERT_EQ(asked.size(), 2u);
    brings(asked[1].head<Get>(), 2);
    EXPECT_FALSE(got.is_ready());
    brings(asked[0].head<Get>(), 1);
    EXPECT_TRUE(got.get(now()));
    EXPECT_EQ(target.front(), std::byte{1});
    EXPECT_EQ(target.back(), std::byte{2});
    EXPECT_TRUE(memory().get(at(1), MutableBytes()).get(now())) << "nothing is there at once";
}

TEST_F(AsyncMemoryTest, nothing_lands_after_a_get_was_cancelled) {
    std::vector<std::byte> target(segment_bytes / 4 * 3);
    auto got = memory().get(at(1), target);
    auto asked = victim.sent(Kind::get);
    ASSERT_GE(asked.size(), 2u);
    brings(asked[0].head<Get>(), 1);
    EXPECT_EQ(target[0], std::byte{1});
    EXPECT_EQ(got.get(now()).error().code(), ErrorCode::timed_out);
    got.cancel();
    for (auto& more : victim.sent(Kind::get)) asked.push_back(std::move(more));
    EXPECT_EQ(got.get(now()).error().code(), ErrorCode::cancelled);
    std::ranges::fill(target, std::byte{0x55});
    for (const auto& piece : asked) brings(piece.head<Get>(), 2);
    // The number is used again: what comes late is not taken for the answer to the new get.
    std::vector<std::byte> other(100, std::byte{0x66});
    auto again = memory().get(at(1), other);
    for (const auto& piece : asked) brings(piece.head<Get>(), 3);
    EXPECT_TRUE(std::ranges::all_of(target, [](std::byte byte) { return byte == std::byte{0x55}; }));
    EXPECT_TRUE(std::ranges::all_of(other, [](std::byte byte) { return byte == std::byte{0x66}; }));
    EXPECT_FALSE(again.is_ready());
    const auto asked_again = victim.sent(Kind::get);
    ASSERT_EQ(asked_again.size(), 1u) << "no more of the first one is asked for";
    brings(asked_again[0].head<Get>(), 4);
    EXPECT_TRUE(again.get(now()));
}

TEST_F(AsyncMemoryTest, a_cancelled_get_is_not_waited_for) {
    auto got = memory().read(word(1));
    handles(1);
    EXPECT_FALSE(sync());
    got.cancel();
    EXPECT_TRUE(sync());
}

TEST_F(AsyncMemoryTest, a_get_whose_future_is_gone_goes_on) {
    std::vector<std::byte> target(100);
    { const auto dropped = memory().get(at(1), target); }
    brings(victim.sent(Kind::get)[0].head<Get>(), 7);
    EXPECT_EQ(target[99], std::byte{7});
    handles(1);
    EXPECT_TRUE(sync());
}

TEST_F(AsyncMemoryTest, cancelling_what_follows_a_get_ends_the_get) {
    std::vector<std::byte> target(100);
    auto last = memory().get(at(1), target).then([](Result<void>) {});
    const auto asked = victim.sent(Kind::get)[0].head<Get>();
    last.cancel();
    brings(asked, 7);
    EXPECT_EQ(target[0], std::byte{0});
}

// ---- puts

TEST_F(AsyncMemoryTest, a_put_is_ready_when_it_was_handled) {
    std::vector<std::byte> source(100'000, std::byte{3});
    auto put = memory().put(at(1, 8), source, Notice::set({1, made.id, 0}));
    auto written = memory().write(word(1, 100), 7);
    const auto sent = victim.sent(Kind::put);
    ASSERT_EQ(sent.size(), 3u);
    EXPECT_EQ(sent[0].head<Put>().to.offset, 8u);
    EXPECT_EQ(sent[0].head<Put>().notice.kind, Notice::Kind::none);
    EXPECT_EQ(sent[1].head<Put>().notice.kind, Notice::Kind::set);
    std::uint64_t value = 0;
    EXPECT_TRUE(read_value(sent[2].data<Put>(), value));
    EXPECT_EQ(value, 7u);
    handles(1);
    EXPECT_FALSE(put.is_ready()) << "half of it";
    handles(1);
    EXPECT_TRUE(put.is_ready());
    EXPECT_FALSE(written.is_ready());
    handles(1);
    EXPECT_TRUE(written.get(now()));
    EXPECT_TRUE(put.get(now()));
    EXPECT_TRUE(sync());
}

TEST_F(AsyncMemoryTest, many_small_puts_are_under_way_at_once) {
    std::vector<Future<void>> puts;
    for (std::uint64_t i = 0; i < 50; ++i) puts.push_back(memory().write(word(1, i), i));
    EXPECT_EQ(victim.sent(Kind::put).size(), 50u);
    handles(49);
    for (int i = 0; i < 49; ++i) EXPECT_TRUE(puts[static_cast<std::size_t>(i)].is_ready());
    EXPECT_FALSE(puts[49].is_ready());
}

TEST_F(AsyncMemoryTest, nothing_is_read_after_a_put_was_cancelled) {
    std::vector<std::byte> source(segment_bytes, std::byte{1});
    victim.channel.refuse(1);
    auto put = memory().put(at(1), source);
    auto small = memory().write(word(1), 5);
    put.cancel();
    std::ranges::fill(source, std::byte{2});
    victim.channel.refuse(1, false);
    victim.poll();
    EXPECT_EQ(victim.sent(Kind::put).size(), 1u) << "only the other one goes";
    handles(1);
    EXPECT_TRUE(small.is_ready());
    EXPECT_EQ(put.get(now()).error().code(), ErrorCode::cancelled);
    EXPECT_TRUE(sync());
}

TEST_F(AsyncMemoryTest, a_put_that_the_target_refuses_fails_and_stops) {
    std::vector<std::byte> source(segment_bytes);
    auto put = memory().put(at(1), source);
    const auto sent = victim.sent(Kind::put);
    ASSERT_FALSE(sent.empty());
    victim.hears(1, Kind::failed,
                 Failed{sent[0].head<Put>().operation, static_cast<std::uint32_t>(ErrorCode::not_found), 0},
                 bytes_of(std::string_view("it was freed")), false);
    victim.poll();
    EXPECT_EQ(put.get(now()).error().text(), "node 1: it was freed");
    handles(static_cast<std::uint16_t>(sent.size()));
    EXPECT_TRUE(sync());
}

TEST_F(AsyncMemoryTest, a_continuation_may_begin_the_next_put) {
    int left = 200;
    std::function<Future<void>(Result<void>)> next = [&](Result<void> before) -> Future<void> {
        if (!before || --left == 0) return Future<void>::ready(before);
        return memory().write(word(1), 1).then(next);
    };
    auto first = memory().write(word(1, 1), 1), beside = memory().write(word(1, 2), 2);
    auto all = first.then(next);
    for (int i = 0; i < 1000 && !all.is_ready(); ++i)
        handles(static_cast<std::uint16_t>(victim.under_way(1)));
    EXPECT_TRUE(all.get(now()));
    EXPECT_EQ(left, 0);
    EXPECT_TRUE(beside.is_ready());
}

// ---- copies

TEST_F(AsyncMemoryTest, copies_are_ready_when_the_data_is_there) {
    std::vector<Future<void>> copies;
    copies.push_back(memory().copy(at(1), at(2), 100));
    const auto asked = victim.sent(Kind::copy);
    ASSERT_EQ(asked.size(), 1u);
    copies.push_back(memory().copy(at(1), at(0, 200), 100, Notice::set({0, made.id, 512})));
    const auto got = victim.sent(Kind::get);
    ASSERT_EQ(got.size(), 1u);
    copies.push_back(memory().copy(at(0), at(1), 100));
    EXPECT_EQ(victim.sent(Kind::put).size(), 1u);
    for (const Future<void>& copy : copies) EXPECT_FALSE(copy.is_ready());
    victim.hears(1, Kind::done, Done{asked[0].head<Copy>().operation, 0}, {}, false);
    victim.poll();
    EXPECT_TRUE(copies[0].is_ready());
    brings(got[0].head<Get>(), 9);
    EXPECT_TRUE(copies[1].is_ready());
    EXPECT_EQ(made.bytes[299], std::byte{9});
    EXPECT_EQ(load_flag(*reinterpret_cast<Flag*>(made.bytes.data() + 512)), 1u);
    EXPECT_FALSE(copies[2].is_ready());
    handles(3);
    for (Future<void>& copy : copies) EXPECT_TRUE(copy.get(now()));
}

} // namespace
} // namespace kumi::engine::async_memory_test
