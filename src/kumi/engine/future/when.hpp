#pragma once

// Futures of several futures: when_all() and when_any(). Cancelling such a future cancels all that it is made of.

#include "kumi/engine/future.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace kumi {
namespace engine {

/// Answers that are collected, each in its own place by the thread that has it. The last one completes the promise.
template <class Answers, class Joined>
struct Collection {
    Answers answers;
    Promise<Joined> promise;
    std::atomic<std::size_t> missing;

    /// True for the last that arrives. Release and acquire: partners of each other: the last sees all answers.
    bool arrive() noexcept { return missing.fetch_sub(1, std::memory_order_acq_rel) == 1; }
};

} // namespace engine

/// Ready when all of them are, with the answer or error of each, in their order.
template <class T>
Future<std::vector<Result<T>>> when_all(std::vector<Future<T>> futures) {
    using Joined = std::vector<Result<T>>;
    using All = engine::Collection<std::vector<std::optional<Result<T>>>, Joined>;
    if (futures.empty()) return ready(Joined());
    const std::shared_ptr<All> all(
        new All{std::vector<std::optional<Result<T>>>(futures.size()), Promise<Joined>(), futures.size()});
    Future<Joined> joined = all->promise.future();
    for (std::size_t i = 0; i < futures.size(); ++i) {
        const auto state = engine::FutureAccess::take(futures[i]);
        engine::FutureAccess::state_of(all->promise)->follow_also(state);
        state->when_ready([all, state, i] {
            all->answers[i].emplace(state->take());
            if (!all->arrive()) return;
            Joined answers;
            for (std::optional<Result<T>>& answer : all->answers) answers.push_back(*std::move(answer));
            all->promise.complete(std::move(answers));
        });
    }
    return joined;
}

/// The same for futures of different types.
template <class... Types>
Future<std::tuple<Result<Types>...>> when_all(Future<Types>... futures)
    requires(sizeof...(Types) > 0)
{
    using Joined = std::tuple<Result<Types>...>;
    using All = engine::Collection<std::tuple<std::optional<Result<Types>>...>, Joined>;
    const std::shared_ptr<All> all(new All{{}, Promise<Joined>(), sizeof...(Types)});
    Future<Joined> joined = all->promise.future();
    const auto collect = [&](auto index, auto& future) {
        const auto state = engine::FutureAccess::take(future);
        engine::FutureAccess::state_of(all->promise)->follow_also(state);
        state->when_ready([all, state, index] {
            std::get<index()>(all->answers).emplace(state->take());
            if (!all->arrive()) return;
            std::apply([&](auto&... answers) { all->promise.complete(Joined(*std::move(answers)...)); }, all->answers);
        });
    };
    [&]<std::size_t... Index>(std::index_sequence<Index...>) {
        (collect(std::integral_constant<std::size_t, Index>(), futures), ...);
    }(std::index_sequence_for<Types...>());
    return joined;
}

/// What was complete first, and what is still to come.
template <class T>
struct AnyOf {
    std::size_t index;             // of the first, in the order that was given
    Result<T> answer;              // its answer, or its error
    std::vector<Future<T>> others; // by index, to be used as before; the one at `index` has no answer
};

/// Ready when one of them is, whether with an answer or with an error. The others may be dropped: the program has
/// decided that one answer is enough, so their errors are not told to the user. What when_all() and this have gathered
/// counts as asked for.
template <class T>
Future<AnyOf<T>> when_any(std::vector<Future<T>> futures) {
    struct Any {
        Promise<AnyOf<T>> promise;
        std::vector<Promise<T>> relays; // by index: of the others
        std::vector<Future<T>> others;
        std::atomic<bool> is_decided{false};
    };
    if (futures.empty())
        return Future<AnyOf<T>>::ready(Error(ErrorCode::misuse, "when_any: there are no futures to wait for"));
    const auto any = std::make_shared<Any>();
    Future<AnyOf<T>> first = any->promise.future();
    std::vector<std::shared_ptr<engine::AnswerState<T>>> states;
    for (Future<T>& future : futures) {
        states.push_back(engine::FutureAccess::take(future));
        any->others.push_back(any->relays.emplace_back().future());
        engine::FutureAccess::state_of(any->relays.back())->allow_dropping();
        engine::FutureAccess::state_of(any->relays.back())->follow(states.back());
        engine::FutureAccess::state_of(any->promise)->follow_also(states.back());
    }
    for (std::size_t i = 0; i < states.size(); ++i)
        states[i]->when_ready([any, state = states[i], i] {
            // Relaxed: what the others need is made before any of these runs, and the first alone takes `others`.
            if (any->is_decided.exchange(true, std::memory_order_relaxed)) {
                any->relays[i].complete(state->take());
                return;
            }
            any->others[i] = Future<T>();
            any->promise.complete(AnyOf<T>{i, state->take(), std::move(any->others)});
        });
    return first;
}

/// The same for futures that are named one by one.
template <class T, class... More>
Future<AnyOf<T>> when_any(Future<T> first, Future<More>... more)
    requires(std::is_same_v<T, More> && ...)
{
    std::vector<Future<T>> futures;
    futures.push_back(std::move(first));
    (futures.push_back(std::move(more)), ...);
    return when_any(std::move(futures));
}

} // namespace kumi
