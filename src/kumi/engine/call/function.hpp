#pragma once

// Functions that other nodes call, with arguments and answers of any type that an archive takes. Registered by
// Handlers::function(), called by Engine::invoke(); both are in invoke.hpp.

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/call/handle.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace kumi::engine {
/// Adds a function to Handlers. Complete where <kumi/functions.hpp> is included.
template <class Callable>
struct FunctionMaker;
} // namespace kumi::engine

namespace kumi {

class Handlers;

template <class Signature>
class Function;

/// Names a function in a call; made by Handlers::function(), for the job that is joined with those Handlers.
template <class Answer, class... Parameters>
class Function<Answer(Parameters...)> {
public:
    std::uint32_t index() const noexcept { return handle_.index; }
    engine::Handle handle() const noexcept { return handle_; }
    const std::string& name() const noexcept { return name_; }

private:
    template <class Callable>
    friend struct engine::FunctionMaker;
    Function(engine::Handle handle, std::string name) noexcept : handle_(handle), name_(std::move(name)) {}
    engine::Handle handle_;
    std::string name_;
};

namespace engine {

/// Gets the answer of a function, as an archive has it, or why there is none. Called once, by any thread.
using FunctionAnswered = std::function<void(Result<std::vector<std::byte>>)>;

struct FunctionEntry {
    std::string name;
    std::string signature; // of parameters and answer, as signature.hpp has it
    /// Runs the function with arguments as an archive has them. Throws what the function throws, and BadBytes when
    /// these are not its arguments; otherwise calls `answered`: at once, or when the future that the function returned
    /// is ready.
    std::function<void(Bytes arguments, const FunctionAnswered& answered)> run;
};

/// The arguments of a call, as an archive has them; or why they cannot be sent.
using ArgumentBytes = Result<std::vector<std::byte>>;

} // namespace engine
} // namespace kumi
