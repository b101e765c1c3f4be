#pragma once

// Functions that other nodes call, with arguments and answers of any type that an archive takes. Registered by
// Handlers::function(), called by Engine::invoke().

#include "kumi/base/bytes.hpp"
#include "kumi/engine/archive.hpp"
#include "kumi/engine/parameters.hpp"
#include "kumi/engine/signature.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace kumi {

class Handlers;

template <class Signature>
class Function;

/// Names a function in a call; made by Handlers::function().
template <class Answer, class... Parameters>
class Function<Answer(Parameters...)> {
public:
    std::uint32_t index() const noexcept { return index_; }
    const std::string& name() const noexcept { return name_; }

private:
    friend class Handlers;
    Function(std::uint32_t index, std::string name) noexcept : index_(index), name_(std::move(name)) {}
    std::uint32_t index_;
    std::string name_;
};

namespace engine {

struct FunctionEntry {
    std::string name;
    std::string signature; // of parameters and answer, as signature.hpp has it
    /// From arguments to answer, both as an archive has them. Throws what the function throws, and BadBytes when these
    /// are not its arguments.
    std::function<std::vector<std::byte>(Bytes)> run;
};

/// A callable of these types as other nodes call it. Each argument is given as it is asked for: by value it is moved.
template <class Answer, class Callable, class... Written>
auto run_archived(Callable callable, Parameters<Written...>) {
    static_assert((std::is_default_constructible_v<std::remove_cvref_t<Written>> && ...),
                  "arguments are made, and then read");
    return [callable = std::move(callable)](Bytes bytes) mutable {
        std::tuple<std::remove_cvref_t<Written>...> arguments;
        std::apply([&](auto&... argument) { read_archive(bytes, argument...); }, arguments);
        return std::apply(
            [&](auto&... argument) {
                if constexpr (std::is_void_v<Answer>) {
                    callable(static_cast<Written&&>(argument)...);
                    return std::vector<std::byte>();
                } else {
                    return write_archive(callable(static_cast<Written&&>(argument)...));
                }
            },
            arguments);
    };
}

} // namespace engine
} // namespace kumi
