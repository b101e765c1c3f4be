#pragma once

// Engine::invoke() and invoke_all(): arguments to bytes, bytes to an answer. What knows no types is in invoke.cpp.

#include "kumi/engine/archive.hpp"
#include "kumi/engine/engine.hpp"
#include "kumi/engine/function.hpp"
#include "kumi/engine/future.hpp"

namespace kumi::engine {

using ArgumentBytes = Result<std::vector<std::byte>>;

/// Asks for a function on `to`, as Dispatcher does; arguments that cannot be sent are an error, which names function
/// and node.
Result<std::uint64_t> ask(Dispatcher& dispatcher, Node to, std::uint32_t function, const std::string& name,
                          const ArgumentBytes& arguments, std::function<void(const Result<Bytes>&)> answered);
Progress& progress_of(Dispatcher& dispatcher) noexcept;

/// The arguments of a call, each as its parameter's type.
template <class... Parameters>
ArgumentBytes write_arguments(const std::type_identity_t<Parameters>&... arguments) {
    try {
        return write_archive<Parameters...>(arguments...);
    } catch (const std::exception& thrown) {
        return Error(thrown.what());
    }
}

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
    } catch (const BadBytes& refused) {
        return error("function {} on node {}: {} bytes came back that are not its answer: {}", name, from, bytes.size(),
                     refused.what());
    }
}

template <class Answer>
Future<Answer> ask_for(Dispatcher& dispatcher, Node to, std::uint32_t function, const std::string& name,
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
    return ask_for<Answer>(core(), to, function.index(), function.name(), write_arguments<Parameters...>(arguments...));
}

template <class Answer, class... Parameters, class... Arguments>
    requires(sizeof...(Parameters) == sizeof...(Arguments))
std::vector<Future<Answer>> Engine::invoke_all(const Function<Answer(Parameters...)>& function,
                                               const Arguments&... arguments) {
    const auto bytes = write_arguments<Parameters...>(arguments...);
    std::vector<Future<Answer>> answers;
    answers.reserve(nodes());
    for (Node to = 0; to < nodes(); ++to)
        answers.push_back(ask_for<Answer>(core(), to, function.index(), function.name(), bytes));
    return answers;
}

} // namespace kumi::engine
