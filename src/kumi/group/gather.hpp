#pragma once

// Groups::gather() and reduce(): functions that run on all members of a set, and their answers. Separate from
// groups.hpp for the same reason as engine/call/invoke.hpp.

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/call/invoke.hpp"
#include "kumi/group/groups.hpp"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace kumi::group {

/// Takes the first value off the answers of members; nothing when there are no more.
std::optional<std::pair<Node, Bytes>> take_value(Bytes& values);
/// The answers of members, by node.
std::vector<std::pair<Node, Bytes>> values_by_node(const Outcome& outcome);
/// The error of a reduce() over `to` that has no answer.
Error nobody_answered(const Set& to);

template <class Answer, class... Parameters, class... Arguments>
    requires(sizeof...(Parameters) == sizeof...(Arguments))
Future<Gathered<Answer>> Groups::gather(const Set& to, const Function<Answer(Parameters...)>& function,
                                        const Arguments&... arguments) {
    const auto promise = std::make_shared<engine::Promise<Gathered<Answer>>>(&progress());
    auto future = promise->future();
    ask(to, function.handle(), {}, engine::write_arguments<Parameters...>(arguments...),
        [promise, name = function.name()](const Result<Outcome>& outcome) {
            if (!outcome) return promise->complete(outcome.error()), void();
            Gathered<Answer> gathered;
            for (const auto& [node, value] : values_by_node(*outcome)) {
                auto answer = engine::read_answer<Answer>(value, name, node);
                if (!answer) return promise->complete(answer.error()), void();
                gathered.emplace_back(node, *std::move(answer));
            }
            promise->complete(std::move(gathered));
        });
    return future;
}

template <class Answer, class... Parameters, class... Arguments>
    requires(sizeof...(Parameters) == sizeof...(Arguments))
Future<Reduced<Answer>> Groups::reduce(const Set& to, const Function<Answer(Answer, Answer)>& operation,
                                       const Function<Answer(Parameters...)>& function, const Arguments&... arguments) {
    const auto promise = std::make_shared<engine::Promise<Reduced<Answer>>>(&progress());
    auto future = promise->future();
    ask(to, function.handle(), operation.handle(), engine::write_arguments<Parameters...>(arguments...),
        [promise, name = function.name(), to](Result<Outcome> outcome) {
            if (!outcome) return promise->complete(outcome.error()), void();
            if (outcome->missing == to)
                return promise->complete(nobody_answered(to)), void();
            auto value = engine::read_answer<Answer>(outcome->values, name, to.first());
            if (value) promise->complete(Reduced<Answer>{*std::move(value), std::move(outcome->missing)});
            else promise->complete(value.error());
        });
    return future;
}

} // namespace kumi::group
