// What peers say, believed as far as it makes sense; and limits, calls, losses.

#include "kumi/engine/dispatcher.hpp"

#include "kumi/engine/call/invoke.hpp"
#include "loopback/victim.hpp"

#include <gtest/gtest.h>
#include <stdexcept>

namespace kumi::engine::dispatcher_test {
namespace {

using namespace std::chrono_literals;
using loopback::Victim;

constexpr OperationId asked{7, 9}; // a peer's own

/// What is written to standard error meanwhile.
std::string said(const std::function<void()>& what) {
    testing::internal::CaptureStderr();
    what();
    return testing::internal::GetCapturedStderr();
}

bool has(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

// ---- what goes out

TEST(DispatcherSending, a_message_is_as_large_as_may_be_and_not_one_byte_larger) {
    Handlers handlers;
    const auto take = handlers.add("take", [&](Call&, std::uint64_t, Bytes) {});
    Victim victim(std::move(handlers));
    const std::size_t most = victim.dispatcher->message_bytes_max();
    EXPECT_EQ(most, std::size_t{256} << 10);
    const std::vector<std::byte> payload(most - 7);
    EXPECT_TRUE(victim.engine->send(1, take, 0u, Bytes(payload).first(most - 8)));
    EXPECT_FALSE(victim.engine->send(1, take, 0u, Bytes(payload)));
    EXPECT_EQ(victim.channel.take_sent().size(), 1u);
    const std::size_t plain = victim.channel.traits().message_bytes_max - sizeof(Header);
    const std::vector<std::byte> large(plain + 1);
    const Bytes fits = Bytes(large).first(plain), too_large = large;
    EXPECT_TRUE(victim.dispatcher->messages().send_plain(1, {&fits, 1}));
    EXPECT_FALSE(victim.dispatcher->messages().send_plain(1, {&too_large, 1}));
    const Bytes halves[2] = {Bytes(large).first(10), Bytes(large).first(plain - 10)},
                over[2] = {Bytes(large).first(11), Bytes(large).first(plain - 10)};
    EXPECT_TRUE(victim.dispatcher->messages().send_plain(1, halves));
    EXPECT_FALSE(victim.dispatcher->messages().send_plain(1, over));
    EXPECT_EQ(victim.channel.take_sent().size(), 2u);
}

TEST(DispatcherSending, a_reply_is_as_large_as_a_request_may_be_and_a_larger_one_is_told_to_who_asked) {
    std::size_t bytes = 0;
    Handlers handlers;
    const auto answer = handlers.add("answer", [](Call&, std::uint64_t, Bytes) {});
    handlers.add("ask", [&](Call& call) noexcept { call.reply(answer, 0u, Bytes(std::vector<std::byte>(bytes))); });
    Victim victim(std::move(handlers));
    const auto ask = static_cast<Kind>(static_cast<std::uint32_t>(Kind::first_handler) + 1);
    bytes = victim.dispatcher->message_bytes_max() - 8;
    victim.hears(1, ask, true);
    victim.poll();
    const auto replies = victim.sent(Kind::first_handler);
    ASSERT_EQ(replies.size(), 1u);
    EXPECT_EQ(replies[0].rest.size(), victim.dispatcher->message_bytes_max());
    EXPECT_EQ(replies[0].header.is_request, 0u);
    ++bytes;
    victim.hears(1, ask, true);
    victim.poll();
    const auto failed = victim.sent(Kind::failed);
    ASSERT_EQ(failed.size(), 1u);
    EXPECT_EQ(failed[0].head<Failed>().code, static_cast<std::uint32_t>(ErrorCode::too_large));
    const std::string refused(text_of(failed[0].data<Failed>()));
    EXPECT_TRUE(has(refused, "handler ask") && has(refused, "largest")) << refused;
}

// ---- inside of handlers

TEST(DispatcherHandlers, nothing_that_would_wait_is_allowed_in_a_handler) {
    Engine* self = nullptr;
    SegmentId id = 0;
    int looks = 0;
    std::optional<Function<long(long)>> square;
    Handlers handlers;
    handlers.add("misbehave", [&](Call&) {
        const auto is_refused = [](const auto& result) { return !result && has(result.error().text(), "handler"); };
        Dispatcher& dispatcher = self->dispatcher();
        std::array<std::byte, 64> own{};
        const global_ptr<std::byte> there(1, id, 0);
        const GetPiece piece{there, own};
        Flag flag = 0;
        EXPECT_TRUE(is_refused(dispatcher.memory().get(there, own)));
        EXPECT_TRUE(is_refused(dispatcher.memory().get_strided(there, own.data(), {8, 2, 16, 16})));
        EXPECT_TRUE(is_refused(dispatcher.memory().get_pieces({&piece, 1})));
        EXPECT_TRUE(is_refused(dispatcher.memory().atomic(there, {Atomic::add, 8, 1, 0})));
        EXPECT_TRUE(is_refused(dispatcher.operations().sync(never)));
        EXPECT_TRUE(is_refused(dispatcher.flags().wait(flag, 1, never)));
        EXPECT_TRUE(is_refused(dispatcher.barriers().wait(dispatcher.barriers().arrive(), never)));
        EXPECT_TRUE(is_refused(dispatcher.barriers().barrier(never)));
        EXPECT_TRUE(is_refused(dispatcher.segments().make(1, 1)));
        EXPECT_TRUE(is_refused(dispatcher.segments().free(id)));
        EXPECT_TRUE(is_refused(self->invoke(1, *square, 3L).get()));
        EXPECT_FALSE(self->wait_until([&] { return ++looks > 1; })) << "it looks once";
        EXPECT_EQ(dispatcher.progress().poll(), 0u) << "another handler would run inside of this one";
    });
    handlers.add("next", [&](Call&) { EXPECT_NE(looks, 0); });
    square = handlers.function("square", [](long value) { return value * value; });
    Victim victim(std::move(handlers));
    self = &*victim.engine;
    id = victim.dispatcher->segments().add(4096)->id;
    victim.hears(1, Kind::first_handler, true);
    victim.hears(1, static_cast<Kind>(static_cast<std::uint32_t>(Kind::first_handler) + 1), true);
    victim.poll();
    EXPECT_EQ(looks, 1);
}

// ---- the end

TEST(DispatcherEnd, who_leaves_tells_what_it_has_handled_and_that_there_will_be_no_answer) {
    Handlers handlers;
    const auto square = handlers.function("square", [](long value) { return value * value; });
    Victim victim(std::move(handlers));
    auto answer = victim.engine->invoke(2, square, 3L);
    for (int i = 0; i < 3; ++i) victim.hears(1, Kind::credit, true);
    victim.poll();
    victim.channel.take_sent();
    victim.engine.reset();
    const auto credit = victim.sent(Kind::credit);
    ASSERT_EQ(credit.size(), 1u);
    EXPECT_EQ(credit[0].to, 1u);
    EXPECT_EQ(credit[0].header.handled, 3u);
    ASSERT_TRUE(answer.is_ready());
    EXPECT_EQ(answer.get().error().text(), "there is no answer: the job has ended");
}

TEST(DispatcherEnd, who_leaves_waits_until_what_waits_to_be_sent_has_gone) {
    Handlers handlers;
    handlers.function("square", [](long value) { return value * value; });
    Victim victim(std::move(handlers));
    const auto made = victim.dispatcher->segments().add(1 << 20);
    ASSERT_TRUE(made);
    const std::vector<std::byte> content(5000);
    victim.channel.refuse(1);
    victim.channel.refuse(2);
    victim.hears(1, Kind::ask, Ask{asked, 0, 0}, write_archive(3L));
    victim.poll();
    ASSERT_TRUE(victim.dispatcher->memory().start_put({2, made->id, 0}, content, {}));
    std::thread room([&] {
        std::this_thread::sleep_for(5ms);
        victim.channel.refuse(1, false);
        victim.channel.refuse(2, false);
        victim.channel.ring();
    });
    victim.engine.reset();
    room.join();
    std::vector<Node> told;
    for (const auto& letter : victim.channel.take_sent()) told.push_back(letter.peer);
    EXPECT_NE(std::ranges::find(told, 1u), told.end()) << "the answer";
    EXPECT_NE(std::ranges::find(told, 2u), told.end()) << "the put";
}

// ---- errors of others

TEST(DispatcherErrors, the_first_is_told_by_the_next_sync_and_the_others_are_logged) {
    Victim victim;
    const std::string told = said([&] {
        for (const std::string_view text : {"first", "second"})
            victim.hears(1, Kind::failed, Failed{no_operation}, bytes_of(text), false);
        victim.poll();
    });
    EXPECT_TRUE(has(told, "node 1: second")) << told;
    const auto synced = victim.dispatcher->operations().sync(now());
    ASSERT_FALSE(synced);
    EXPECT_EQ(synced.error().text(), "node 1: first");
    EXPECT_TRUE(victim.dispatcher->operations().sync(now()));
}

TEST(DispatcherErrors, one_that_neither_sync_nor_a_wait_has_returned_is_logged_at_the_end) {
    for (const bool is_waited_for : {false, true}) {
        const std::string told = said([&] {
            Victim victim;
            victim.hears(1, Kind::failed, Failed{no_operation}, bytes_of(std::string_view("broken")), false);
            victim.poll();
            const Flag flag = 0;
            if (is_waited_for) {
                const auto waited = victim.engine->memory().wait(flag, 1, now() + 10s);
                EXPECT_TRUE(!waited && has(waited.error().text(), "broken"));
            }
        });
        EXPECT_EQ(has(told, "broken"), !is_waited_for) << told;
    }
}

TEST(DispatcherErrors, sync_names_who_has_not_handled_all) {
    Handlers handlers;
    const auto take = handlers.add("take", [](Call&) {});
    Victim victim(std::move(handlers));
    ASSERT_TRUE(victim.engine->send(2, take));
    const auto synced = victim.dispatcher->operations().sync(now());
    ASSERT_FALSE(synced);
    EXPECT_TRUE(has(synced.error().text(), "node 2") && !has(synced.error().text(), "node 1")) << synced.error().text();
    EXPECT_EQ(victim.sent(Kind::please).size(), 1u) << "it asks for the count, once";
}

TEST(DispatcherErrors, start_sync_sets_its_flag_when_all_is_done_and_not_before) {
    Handlers handlers;
    const auto take = handlers.add("take", [](Call&) {});
    Victim victim(std::move(handlers));
    Flag none = 5, first = 5, second = 5;
    ASSERT_TRUE(victim.dispatcher->operations().start_sync(none));
    EXPECT_EQ(load_flag(none), 1u) << "nothing is under way";
    ASSERT_TRUE(victim.engine->send(1, take));
    ASSERT_TRUE(victim.dispatcher->operations().start_sync(first));
    ASSERT_TRUE(victim.dispatcher->operations().start_sync(second));
    victim.poll();
    EXPECT_EQ(load_flag(first) + load_flag(second), 0u);
    victim.handled[1] = 1;
    victim.hears(1, Kind::credit);
    victim.poll();
    EXPECT_EQ(load_flag(first), 1u);
    EXPECT_EQ(load_flag(second), 1u);
}

// ---- calls of functions

TEST(DispatcherCalls, a_call_is_answered_once_by_whom_it_was_sent_to) {
    Handlers handlers;
    const auto square = handlers.function("square", [](long value) { return value * value; });
    Victim victim(std::move(handlers));
    auto answer = victim.engine->invoke(1, square, 3L);
    const auto calls = victim.sent(Kind::ask);
    ASSERT_EQ(calls.size(), 1u);
    const OperationId id = calls[0].head<Ask>().operation;
    const auto hears_answer = [&](Node source, OperationId of, long value) {
        const auto bytes = write_archive(value);
        victim.hears(source, Kind::answer, Done{of, 0}, bytes, false);
        victim.poll();
    };
    hears_answer(2, id, 1);
    hears_answer(1, {id.index, id.generation + 1}, 2);
    hears_answer(1, no_operation, 3);
    victim.hears(2, Kind::failed, Failed{id}, {}, false);
    victim.hears(2, Kind::done, Done{id, 0}, {}, false);
    victim.poll();
    EXPECT_FALSE(answer.is_ready());
    hears_answer(1, id, 9);
    hears_answer(1, id, 10);
    EXPECT_EQ(*answer.get(now()), 9);
}

TEST(DispatcherCalls, an_answer_that_is_none_is_an_error_that_says_so) {
    Handlers handlers;
    const auto words = handlers.function("words", [](int) { return std::vector<std::string>(); });
    Victim victim(std::move(handlers));
    auto answer = victim.engine->invoke(1, words, 3);
    const OperationId id = victim.sent(Kind::ask)[0].head<Ask>().operation;
    const auto bytes = write_archive(std::uint64_t{5}, 'x');
    victim.hears(1, Kind::answer, Done{id, 0}, bytes, false);
    victim.poll();
    const auto got = answer.get(now());
    ASSERT_FALSE(got);
    EXPECT_TRUE(has(got.error().text(), "function words on node 1")) << got.error().text();
}

TEST(DispatcherCalls, a_function_that_does_not_exist_is_refused_and_counted) {
    int calls = 0;
    Handlers handlers;
    handlers.function("note", [&](int) { ++calls; });
    Victim victim(std::move(handlers));
    for (const std::uint32_t function : {1u, 1000u, ~0u}) {
        victim.hears(1, Kind::ask, Ask{asked, function, 0}, write_archive(5));
        victim.poll();
        EXPECT_NE(victim.refusal(1), "") << function;
    }
    victim.hears(1, Kind::ask, Ask{asked, 0, 0}, write_archive(5));
    victim.poll();
    const auto answers = victim.sent(Kind::answer);
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].head<Done>().operation, asked);
    EXPECT_EQ(answers[0].header.handled, 4u);
    EXPECT_EQ(calls, 1);
}

TEST(DispatcherCalls, what_a_function_throws_is_told_to_who_asked_and_so_are_arguments_that_are_none) {
    Handlers handlers;
    handlers.function("fail", [](int number) {
        if (number == 1) throw std::runtime_error("on purpose");
        if (number == 3) throw Error(ErrorCode::too_large, "my own");
        throw 5;
    });
    Victim victim(std::move(handlers));
    const auto refusal_of = [&](const std::vector<std::byte>& arguments) {
        victim.hears(1, Kind::ask, Ask{asked, 0, 0}, arguments);
        victim.poll();
        return victim.refusal(1, asked);
    };
    EXPECT_EQ(refusal_of(write_archive(1)), "function fail threw: on purpose");
    EXPECT_EQ(refusal_of(write_archive(2)), "function fail threw something that is no std::exception");
    EXPECT_EQ(refusal_of(write_archive(3)), "function fail threw: my own");
    EXPECT_TRUE(has(refusal_of({}), "the bytes end too early"));
    EXPECT_TRUE(has(refusal_of(write_archive(1, 'x')), "there are more bytes than values"));
}

TEST(DispatcherCalls, large_arguments_and_answers_go_in_parts) {
    Handlers handlers;
    handlers.function("echo", [](std::string text) { return text + "!"; });
    Victim victim(std::move(handlers));
    const std::size_t most = std::min(chunk_bytes, victim.dispatcher->message_bytes_max() / 2);
    const auto answer_to = [&](const std::string& text) { // in one piece
        victim.hears(1, Kind::ask, Ask{asked, 0, 0}, write_archive(text));
        victim.poll();
    };
    answer_to(std::string(most - sizeof(std::uint64_t) - 1, 'x')); // a string has its size before it
    EXPECT_EQ(victim.sent(Kind::answer).size(), 1u);
    answer_to(std::string(most - sizeof(std::uint64_t), 'x'));
    victim.poll();
    const auto sent = victim.channel.take_sent();
    std::vector<std::byte> whole;
    bool is_complete = false;
    for (const auto& one : sent) {
        Header header{};
        ASSERT_TRUE(read_value(one.bytes, header));
        Bytes body = Bytes(one.bytes).subspan(sizeof header);
        if (header.kind == static_cast<std::uint16_t>(Kind::answer_part)) {
            EXPECT_FALSE(is_complete);
            EXPECT_NE(header.is_request, 0u) << "parts take credits";
            CallPart part{};
            ASSERT_TRUE(read_value(body, part));
            EXPECT_EQ(part.operation, asked);
            EXPECT_EQ(part.bytes, most + 1);
            EXPECT_EQ(part.offset, whole.size());
            body = body.subspan(sizeof part);
            whole.insert(whole.end(), body.begin(), body.end());
        } else if (header.kind == static_cast<std::uint16_t>(Kind::answer)) {
            EXPECT_NE(header.is_request, 0u) << "nor may it pass its parts";
            Done done{};
            ASSERT_TRUE(read_value(body, done));
            EXPECT_EQ(done.value, 1u);
            is_complete = true;
        }
    }
    EXPECT_TRUE(is_complete);
    EXPECT_EQ(whole, write_archive(std::string(most - sizeof(std::uint64_t), 'x') + "!"));

    // Arguments: parts, then the call. Without the parts, or with a part that does not fit, there is no call.
    const auto arguments = write_archive(std::string("abc"));
    victim.hears(1, Kind::ask, Ask{asked, 0, 1});
    victim.poll();
    EXPECT_NE(victim.refusal(1), "");
    victim.hears(1, Kind::ask_part, CallPart{asked, arguments.size(), 0}, Bytes(arguments).first(5));
    victim.hears(1, Kind::ask_part, CallPart{asked, arguments.size(), 6}, Bytes(arguments).subspan(6));
    victim.poll();
    EXPECT_NE(victim.refusal(1), "");
    victim.hears(1, Kind::ask_part, CallPart{asked, arguments.size(), 0}, Bytes(arguments).first(5));
    victim.hears(1, Kind::ask_part, CallPart{asked, arguments.size(), 5}, Bytes(arguments).subspan(5));
    victim.hears(1, Kind::ask, Ask{asked, 0, 1});
    victim.poll();
    const auto answers = victim.sent(Kind::answer);
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_TRUE(std::ranges::equal(answers[0].data<Done>(), write_archive(std::string("abc!"))));
}

TEST(DispatcherCalls, a_call_counts_as_handled_when_it_is_in_line_and_later_when_much_is_in_line) {
    Victim* self = nullptr;
    std::uint64_t told_first = 0;
    const auto told = [&] {
        (void)self->channel.take_sent(); // what was told before
        self->hears(1, Kind::please);
        EXPECT_FALSE(self->dispatcher->progress().wait_until([] { return false; }, now())); // handles what has come
        const auto all = self->channel.take_sent(); // each tells, whatever else it is for
        Header header{};
        EXPECT_TRUE(!all.empty() && read_value(all[0].bytes, header));
        // The first one: those behind it are of functions that began meanwhile.
        return std::uint64_t{header.handled};
    };
    bool has_looked = false;
    Handlers handlers;
    handlers.function("look", [&](const std::string&) {
        if (!std::exchange(has_looked, true)) told_first = told();
        EXPECT_FALSE(self->dispatcher->progress().in_handler());
    });
    Victim victim(std::move(handlers));
    self = &victim;
    const auto arguments = write_archive(std::string(victim.dispatcher->message_bytes_max() / 2, 'x'));
    const auto calls = (std::size_t{20} << 20) / arguments.size();
    for (std::size_t i = 0; i < calls; ++i) victim.hears(1, Kind::ask, Ask{asked, 0, 0}, arguments);
    victim.poll();
    EXPECT_GE(told_first, (std::size_t{15} << 20) / arguments.size());
    EXPECT_LE(told_first, (std::size_t{17} << 20) / arguments.size());
    victim.hears(1, Kind::ask, Ask{asked, 0, 0}, arguments);
    EXPECT_EQ(told(), calls + 1) << "all have begun";
}

TEST(DispatcherCalls, calls_that_are_counted_late_are_told_as_their_sender_counts_them) {
    Handlers handlers;
    handlers.function("take", [](const std::string&) {});
    Victim victim(std::move(handlers));
    const auto arguments = write_archive(std::string(victim.dispatcher->message_bytes_max() / 2, 'x'));
    const std::size_t calls = (std::size_t{20} << 20) / arguments.size();
    for (std::size_t i = 0; i < calls; ++i) victim.hears(1, Kind::ask, Ask{asked, 0, 0}, arguments);
    victim.poll();
    const std::size_t each = sizeof(Header) + sizeof(Ask) + arguments.size() + ByteWindows::overhead;
    const auto told = victim.sent(Kind::taken);
    ASSERT_FALSE(told.empty());
    const std::uint64_t taken = told.back().head<Taken>().bytes[2];
    EXPECT_EQ(taken % each, 0u);
    EXPECT_GT(taken + (std::size_t{2} << 20), calls * each) << "all but a quarter of a window";
    EXPECT_LE(taken, calls * each);
}

TEST(DispatcherCalls, functions_that_wait_run_inside_of_each_other_so_deep_and_no_deeper) {
    constexpr int limit = 32, calls = 40;
    int depth = 0, deepest = 0, ran = 0;
    bool is_over = false;
    Dispatcher* dispatcher = nullptr;
    Handlers handlers;
    handlers.function("wait", [&](int) {
        ++ran;
        deepest = std::max(deepest, ++depth);
        if (depth >= limit && !is_over) {
            dispatcher->progress().wait_until([&] { return depth > limit; }, now() + 5ms);
            is_over = true; // whoever waits goes on
        }
        dispatcher->progress().wait_until([&] { return is_over; }, now() + loopback::far_away);
        --depth;
    });
    Victim victim(std::move(handlers));
    dispatcher = victim.dispatcher;
    for (int i = 0; i < calls; ++i)
        victim.hears(1, Kind::ask, Ask{{static_cast<std::uint32_t>(i), 0}, 0, 0}, write_archive(i));
    victim.poll();
    EXPECT_EQ(deepest, limit);
    EXPECT_EQ(ran, calls) << "all of them, each once";
    EXPECT_EQ(depth, 0);
    EXPECT_EQ(victim.sent(Kind::answer).size(), static_cast<std::size_t>(calls));
}

TEST(DispatcherCalls, one_that_is_forgotten_is_not_answered) {
    Handlers handlers;
    const auto square = handlers.function("square", [](long value) { return value * value; });
    Victim victim(std::move(handlers));
    int answered = 0;
    const auto number =
        victim.dispatcher->calls().ask(1, square.index(), write_archive(3L), [&](const Result<Bytes>&) { ++answered; });
    ASSERT_TRUE(number);
    const OperationId id = victim.sent(Kind::ask)[0].head<Ask>().operation;
    EXPECT_TRUE(victim.dispatcher->progress().forget(*number));
    EXPECT_FALSE(victim.dispatcher->progress().forget(*number)) << "it is forgotten already";
    victim.handled[1] = 1;
    victim.hears(1, Kind::answer, Done{id, 0}, write_archive(9L), false);
    victim.poll();
    EXPECT_EQ(answered, 0);
    EXPECT_TRUE(victim.dispatcher->operations().sync(now())) << "nor is it waited for";
}

// ---- losses

/// Polls so often that losses are noticed, and then known for good.
void look_for_losses(Victim& victim) {
    for (int i = 0; i < 2 * 256; ++i) victim.dispatcher->progress().poll();
}

TEST(DispatcherLosses, what_a_lost_node_sent_before_comes_first) {
    int handled = 0;
    Handlers handlers;
    handlers.add("take", [&](Call&) { ++handled; });
    Victim victim(std::move(handlers));
    victim.channel.lose(1);
    victim.hears(1, Kind::first_handler, true);
    EXPECT_FALSE(victim.dispatcher->peers().is_gone(1));
    victim.dispatcher->progress().poll();
    for (int i = 0; i < 256; ++i) victim.dispatcher->progress().poll();
    EXPECT_EQ(handled, 1);
    EXPECT_FALSE(victim.dispatcher->peers().is_gone(1)) << "it may have sent more";
    for (int i = 0; i < 256; ++i) victim.dispatcher->progress().poll();
    EXPECT_TRUE(victim.dispatcher->peers().is_gone(1));
    EXPECT_FALSE(victim.dispatcher->peers().is_gone(2));
}

TEST(DispatcherLosses, all_that_needs_a_lost_node_fails_by_its_name_and_what_needs_others_does_not) {
    Handlers handlers;
    const auto take = handlers.add("take", [](Call&) {});
    const auto square = handlers.function("square", [](long value) { return value * value; });
    Victim victim(std::move(handlers));
    auto lost = victim.engine->invoke(1, square, 3L), other = victim.engine->invoke(2, square, 3L);
    ASSERT_TRUE(victim.engine->send(1, take));
    std::uint64_t word = 0;
    Flag given = 0;
    ASSERT_TRUE(victim.dispatcher->rendezvous().offer(1, 1, bytes_of(word), &given, 1));
    victim.channel.lose(1);
    look_for_losses(victim);
    ASSERT_TRUE(lost.is_ready());
    EXPECT_EQ(lost.get().error().text(), "call: node 1 has left, or is lost");
    EXPECT_FALSE(other.is_ready());
    const auto told = victim.dispatcher->operations().sync(now());
    ASSERT_FALSE(told);
    EXPECT_EQ(told.error().text(), "offer: node 1 has left, or is lost");
    EXPECT_EQ(victim.under_way(1), 0u);
    EXPECT_FALSE(victim.engine->send(1, take));
}

TEST(DispatcherLosses, requests_that_were_under_way_are_told_of_unless_something_else_is) {
    Handlers handlers;
    const auto take = handlers.add("take", [](Call&) {});
    Victim victim(std::move(handlers));
    ASSERT_TRUE(victim.engine->send(1, take));
    victim.channel.lose(1);
    look_for_losses(victim);
    const auto told = victim.dispatcher->operations().sync(now());
    ASSERT_FALSE(told);
    EXPECT_TRUE(has(told.error().text(), "node 1 has left, or is lost; what was sent to it last may not have arrived"));
    EXPECT_TRUE(victim.dispatcher->operations().sync(now())) << "once";
}

TEST(DispatcherLosses, a_node_that_owed_nothing_is_not_missed) {
    Victim victim;
    victim.channel.lose(1);
    look_for_losses(victim);
    EXPECT_TRUE(victim.dispatcher->operations().sync(now()));
}

TEST(DispatcherLosses, those_that_owe_something_are_spoken_to_now_and_then_and_others_are_not) {
    Handlers handlers;
    const auto take = handlers.add("take", [](Call&) {});
    Victim victim(std::move(handlers));
    ASSERT_TRUE(victim.engine->send(1, take));
    victim.channel.take_sent();
    look_for_losses(victim);
    EXPECT_EQ(victim.dispatcher->peers().looks(), 0u) << "it is not time yet";
    victim.time = loopback::far_away.count();
    look_for_losses(victim);
    EXPECT_EQ(victim.dispatcher->peers().looks(), 1u);
    const auto nudges = victim.sent(Kind::nudge);
    ASSERT_EQ(nudges.size(), 1u);
    EXPECT_EQ(nudges[0].to, 1u);
    victim.time = 2 * loopback::far_away.count();
    look_for_losses(victim);
    EXPECT_EQ(victim.sent(Kind::nudge).size(), 1u) << "and again";
    victim.handled[1] = 1;
    victim.hears(1, Kind::credit);
    victim.poll();
    victim.time = 3 * loopback::far_away.count();
    look_for_losses(victim);
    EXPECT_TRUE(victim.sent(Kind::nudge).empty());
}

} // namespace
} // namespace kumi::engine::dispatcher_test
