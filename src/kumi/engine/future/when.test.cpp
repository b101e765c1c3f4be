#include "kumi/engine/future/when.hpp"

#include <gtest/gtest.h>
#include <string>
#include <thread>

namespace kumi::engine::when_test {
namespace {

/// Three promises and their futures.
class WhenTest : public testing::Test {
protected:
    std::vector<Future<int>> futures() {
        std::vector<Future<int>> all;
        for (Promise<int>& promise : promises) all.push_back(promise.future());
        return all;
    }
    std::vector<Promise<int>> promises = [] {
        std::vector<Promise<int>> made;
        for (int i = 0; i < 3; ++i) made.emplace_back();
        return made;
    }();
};

TEST_F(WhenTest, all_is_ready_when_the_last_one_is) {
    auto all = when_all(futures());
    promises[2].complete(12);
    promises[0].complete(10);
    EXPECT_FALSE(all.is_ready());
    promises[1].complete(Error(ErrorCode::too_large, "no room"));
    ASSERT_TRUE(all.is_ready());
    const auto answers = all.get();
    ASSERT_EQ(answers->size(), 3u);
    EXPECT_EQ(*answers->at(0), 10);
    EXPECT_EQ(answers->at(1).error().code(), ErrorCode::too_large);
    EXPECT_EQ(*answers->at(2), 12);
}

TEST_F(WhenTest, all_of_none_is_ready) { EXPECT_TRUE(when_all(std::vector<Future<int>>()).get()->empty()); }

TEST_F(WhenTest, all_takes_futures_of_different_types) {
    Promise<std::string> text;
    Promise<void> done;
    auto all = when_all(promises[0].future(), text.future(), done.future());
    text.complete(std::string("two"));
    promises[0].complete(1);
    EXPECT_FALSE(all.is_ready());
    done.complete();
    const auto answers = all.get();
    EXPECT_EQ(*std::get<0>(*answers), 1);
    EXPECT_EQ(*std::get<1>(*answers), "two");
    EXPECT_TRUE(std::get<2>(*answers));
}

TEST_F(WhenTest, cancelling_all_cancels_each) {
    auto all = when_all(futures());
    all.cancel();
    for (Promise<int>& promise : promises) EXPECT_TRUE(promise.is_ready());
    EXPECT_EQ(all.get().error().code(), ErrorCode::cancelled);
    Promise<int> one, other;
    auto both = when_all(one.future(), other.future());
    both.cancel();
    EXPECT_TRUE(one.is_ready());
    EXPECT_TRUE(other.is_ready());
}

TEST_F(WhenTest, a_future_without_an_answer_counts_as_an_error) {
    const auto answers = when_all(Future<int>(), ready(2)).get();
    EXPECT_EQ(std::get<0>(*answers).error().code(), ErrorCode::misuse);
    EXPECT_EQ(*std::get<1>(*answers), 2);
}

TEST_F(WhenTest, any_is_the_first_and_the_others_can_still_be_used) {
    auto any = when_any(futures());
    EXPECT_FALSE(any.is_ready());
    promises[1].complete(11);
    auto first = any.get();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->index, 1u);
    EXPECT_EQ(*first->answer, 11);
    ASSERT_EQ(first->others.size(), 3u);
    EXPECT_EQ(first->others[1].get().error().code(), ErrorCode::misuse) << "it was taken";
    EXPECT_FALSE(first->others[0].is_ready());
    promises[0].complete(10);
    EXPECT_EQ(*first->others[0].get(), 10);
    first->others[2].cancel();
    EXPECT_TRUE(promises[2].is_ready()) << "cancelling reaches the future that was given";
}

TEST_F(WhenTest, any_takes_what_is_ready_and_what_has_failed) {
    auto any = when_any(promises[0].future(), Future<int>::ready(Error("bad luck")), ready(3)).get();
    EXPECT_EQ(any->index, 1u);
    EXPECT_EQ(any->answer.error().text(), "bad luck");
    EXPECT_EQ(*any->others[2].get(), 3);
}

TEST_F(WhenTest, any_of_none_is_an_error) {
    EXPECT_EQ(when_any(std::vector<Future<int>>()).get().error().code(), ErrorCode::misuse);
}

TEST_F(WhenTest, cancelling_any_cancels_each) {
    auto any = when_any(futures());
    any.cancel();
    for (Promise<int>& promise : promises) EXPECT_TRUE(promise.is_ready());
    EXPECT_EQ(any.get().error().code(), ErrorCode::cancelled);
}

TEST(WhenThreads, answers_of_several_threads_are_collected) {
    for (int round = 0; round < 200; ++round) {
        Promise<int> a, b, c, d;
        auto all = when_all(a.future(), b.future());
        auto any = when_any(c.future(), d.future());
        std::thread one([&] { a.complete(1), c.complete(3); });
        std::thread other([&] { b.complete(2), d.complete(4); });
        const auto both = all.get();
        EXPECT_EQ(*std::get<0>(*both) + *std::get<1>(*both), 3);
        auto first = any.get();
        EXPECT_EQ(*first->answer + *first->others[1 - first->index].get(), 7);
        one.join(), other.join();
    }
}

} // namespace
} // namespace kumi::engine::when_test
