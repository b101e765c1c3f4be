#pragma once

// Handlers::function(), Engine::invoke() and invoke_all(): arguments to bytes, bytes to an answer. What knows no types
// is in invoke.cpp. Apart from engine.hpp, because cereal takes the compiler a fifth of a second.

#include "kumi/engine/call/archive.hpp"
#include "kumi/engine/engine.hpp"
#include "kumi/engine/call/function.hpp"
#include "kumi/engine/future.hpp"
#include "kumi/engine/handlers.hpp"
#include "kumi/engine/call/parameters.hpp"
#include "kumi/engine/call/signature.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace kumi::engine {

/// What a function has returned, to bytes.
template <class Answer>
void give_answer(const Answer& answer, const FunctionAnswered& answered) {
    answered(write_archive(answer));
}
template <class Answer>
void give_answer(const Result<Answer>& answer, const FunctionAnswered& answered) {
    if (!answer) return answered(answer.error());
    if constexpr (std::is_void_v<Answer>) answered(std::vector<std::byte>());
    else answered(write_archive(*answer));
}
template <class Answer>
void give_answer(Future<Answer> future, const FunctionAnswered& answered) {
    (void)future.then([answered](const Result<Answer>& answer) {
        try {
            give_answer(answer, answered);
        } catch (...) { // an answer is owed, whatever a type of the program's throws
            const Error why = error_of_thrown(ErrorCode::refused);
            answered(Error(why.code(), "its answer cannot be sent: " + why.text()));
        }
    });
}

/// A callable of these types as other nodes call it. Each argument is given as it is asked for: by value it is moved.
template <class Answer, class Callable, class... Written>
auto run_archived(Callable callable, Parameters<Written...>) {
    return [callable = std::move(callable)](Bytes bytes, const FunctionAnswered& answered) mutable {
        std::tuple<std::remove_cvref_t<Written>...> arguments;
        std::apply([&](auto&... argument) { read_archive(bytes, argument...); }, arguments);
        std::apply(
            [&](auto&... argument) {
                if constexpr (std::is_void_v<Answer>) {
                    callable(static_cast<Written&&>(argument)...);
                    answered(std::vector<std::byte>());
                } else {
                    give_answer(callable(static_cast<Written&&>(argument)...), answered);
                }
            },
            arguments);
    };
}

/// Asks for a function on `to`, as Dispatcher does; arguments that cannot be sent are an error, which names function
/// and node.
Result<std::uint64_t> ask(Dispatcher& dispatcher, Node to, Handle function, const std::string& name,
                          const ArgumentBytes& arguments, std::function<void(const Result<Bytes>&)> answered);
Progress& progress_of(Dispatcher& dispatcher) noexcept;

/// The arguments of a call, each as its parameter's type.
template <class... Parameters>
ArgumentBytes write_arguments(const std::type_identity_t<Parameters>&... arguments) {
    try {
        return write_archive<Parameters...>(arguments...);
    } catch (...) { // the call gives an error, whatever a type of the program's throws
        return error_of_thrown(ErrorCode::misuse);
    }
}

/// `from` has sent these bytes as the answer of a function, and they are not one: the exception that is being handled
/// says why.
Error not_an_answer(Bytes bytes, const std::string& name, Node from);

template <class Answer>
Result<Answer> read_answer(Bytes bytes, const std::string& name, Node from) {
    try {
        if constexpr (std::is_void_v<Answer>) {
            read_archive(bytes);
            return {};
        } else {
            Answer answer{};
            read_archive(bytes, answer);
            return answer;
        }
    } catch (...) { // also what making or moving an answer throws
        return not_an_answer(bytes, name, from);
    }
}

template <class Answer>
Future<Answer> ask_for(Dispatcher& dispatcher, Node to, Handle function, const std::string& name,
                       const ArgumentBytes& arguments) {
    const auto promise = std::make_shared<Promise<Answer>>(&progress_of(dispatcher));
    auto future = promise->future();
    const auto asked = ask(dispatcher, to, function, name, arguments, [promise, name, to](const Result<Bytes>& bytes) {
        promise->complete(bytes ? read_answer<Answer>(*bytes, name, to) : bytes.error());
    });
    if (asked) promise->set_asked(*asked);
    else promise->complete(asked.error());
    return future;
}

template <class Answer, class... Parameters, class... Arguments>
    requires(sizeof...(Parameters) == sizeof...(Arguments))
Future<Answer> Engine::invoke(Node to, const Function<Answer(Parameters...)>& function, const Arguments&... arguments) {
    return ask_for<Answer>(dispatcher(), to, function.handle(), function.name(),
                           write_arguments<Parameters...>(arguments...));
}

template <class Answer, class... Parameters, class... Arguments>
    requires(sizeof...(Parameters) == sizeof...(Arguments))
std::vector<Future<Answer>> Engine::invoke_all(const Function<Answer(Parameters...)>& function,
                                               const Arguments&... arguments) {
    const auto bytes = write_arguments<Parameters...>(arguments...);
    std::vector<Future<Answer>> answers;
    answers.reserve(nodes());
    for (Node to = 0; to < nodes(); ++to)
        answers.push_back(ask_for<Answer>(dispatcher(), to, function.handle(), function.name(), bytes));
    return answers;
}

} // namespace kumi::engine

namespace kumi::engine {

template <class Callable>
struct FunctionMaker {
    static auto add(Handlers& handlers, std::string name, Callable callable) {
        static_assert(WithParameters<Callable>,
                      "write the types of a function's parameters: [](double x, std::string name), not auto");
        if constexpr (WithParameters<Callable>)
            return add(handlers, std::move(name), std::move(callable), typename parameters_of<Callable>::type{});
        else return Function<void()>({}, {});
    }

private:
    template <class... Types>
    static auto add(Handlers& handlers, std::string name, Callable callable, Parameters<Types...>) {
        using Signature = parameters_of<Callable>;
        using Returned = std::remove_cvref_t<typename Signature::answer>;
        using Answer = typename future_value<Returned>::type;
        constexpr bool is_known = (is_archived<Types> && ... && (std::is_void_v<Answer> || is_archived<Answer>));
        constexpr bool is_made = (std::is_default_constructible_v<Types> && ...);
        static_assert(is_known, "a function takes and answers numbers, strings, containers, plain structs and classes "
                                "with template <class Archive> void serialize(Archive& archive) { archive(a, b); }");
        static_assert(is_made, "the classes that a function takes have a default constructor");
        if constexpr (is_known && is_made)
            handlers.functions_.push_back(
                {name, function_text<Answer, Types...>(),
                 run_archived<Returned>(std::move(callable), typename Signature::as_written{})});
        const auto index = static_cast<std::uint32_t>(handlers.functions_.size() - 1);
        return Function<Answer(Types...)>(Handle{handlers.owner_.number(), index}, std::move(name));
    }
};

} // namespace kumi::engine
