// Long chains of futures: they take no stack, however they end.

#include "kumi/engine/future.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <vector>

namespace kumi::engine::chains_test {
namespace {

#if defined(KUMI_ADDRESS_SANITIZER) || defined(KUMI_THREAD_SANITIZER)
constexpr int long_chain = 30'000; // a sanitizer takes more stack, and more time
#else
constexpr int long_chain = 200'000;
#endif

/// Each step adds one to what the step before answered, or to nothing if that has failed.
Future<int> chain_of(Future<int> first, int& calls) {
    for (int i = 0; i < long_chain; ++i)
        first = first.then([&calls](Result<int> answer) -> Result<int> {
            ++calls;
            if (!answer) return answer;
            return *answer + 1;
        });
    return first;
}

TEST(FutureChains, a_long_chain_completes) {
    Promise<int> promise;
    int calls = 0;
    Future<int> last = chain_of(promise.future(), calls);
    EXPECT_EQ(calls, 0);
    EXPECT_TRUE(promise.complete(5));
    EXPECT_EQ(calls, long_chain);
    EXPECT_EQ(*last.get(), 5 + long_chain);
}

TEST(FutureChains, a_long_chain_of_what_is_ready_completes) {
    int calls = 0;
    EXPECT_EQ(*chain_of(ready(5), calls).get(), 5 + long_chain);
    EXPECT_EQ(calls, long_chain);
}

TEST(FutureChains, a_long_chain_whose_promise_is_destroyed_ends_with_its_error) {
    int calls = 0;
    Future<int> last;
    {
        Promise<int> promise;
        last = chain_of(promise.future(), calls);
    }
    EXPECT_EQ(calls, long_chain);
    EXPECT_EQ(last.get().error().code(), ErrorCode::cancelled);
}

TEST(FutureChains, a_long_chain_that_nobody_looks_at_is_destroyed) {
    int calls = 0;
    const auto token = std::make_shared<int>(0);
    {
        Promise<int> promise;
        (void)chain_of(promise.future().then([token](Result<int> answer) { return answer; }), calls);
        EXPECT_EQ(token.use_count(), 2);
    }
    EXPECT_EQ(token.use_count(), 1);
    EXPECT_EQ(calls, long_chain);
}

TEST(FutureChains, a_long_chain_is_cancelled_up_to_its_start) {
    Promise<int> promise;
    int calls = 0;
    Future<int> last = chain_of(promise.future(), calls);
    last.cancel();
    EXPECT_TRUE(promise.is_ready());
    EXPECT_EQ(calls, 0);
}

/// A loop as programs write it: each round begins the next one in its continuation.
Future<int> loop(Future<int> first, int left) {
    return first.then([left](Result<int> answer) -> Future<int> {
        if (!answer || left == 0) return Future<int>::ready(answer);
        return loop(ready(*answer + 1), left - 1);
    });
}

TEST(FutureChains, a_long_loop_of_futures_that_return_futures_completes) {
    EXPECT_EQ(*loop(ready(0), long_chain).get(), long_chain);
    Promise<int> promise;
    Future<int> last = loop(promise.future(), long_chain);
    EXPECT_FALSE(last.is_ready());
    promise.complete(1);
    EXPECT_EQ(*last.get(), 1 + long_chain);
}

TEST(FutureChains, promises_that_hold_each_other_are_destroyed_one_by_one) {
    Promise<int> last;
    Future<int> end = last.future();
    auto next = std::make_shared<Promise<int>>(std::move(last));
    for (int i = 0; i < long_chain; ++i) {
        auto promise = std::make_shared<Promise<int>>();
        (void)promise->future().then([next](Result<int>) {}); // the continuation owns the next promise
        next = std::move(promise);
    }
    next.reset();
    EXPECT_EQ(end.get().error().code(), ErrorCode::cancelled);
}

} // namespace
} // namespace kumi::engine::chains_test
