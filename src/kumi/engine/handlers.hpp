#pragma once

// What a node can be asked to do. A handler is a C++ function under a name; all nodes of a job have the same names with
// the same parameters, which is checked when they join, so programs of different builds and architectures understand
// each other, and those that do not are told at once.
//
//     kumi::Handlers handlers;
//     const auto add = handlers.add("sum.add", [&](kumi::Call&, std::int64_t amount) { sum += amount; });
//     auto job = kumi::Job::join(std::move(handlers));
//     job->send(1, add, 5);
//
// A handler reaches its job by call.job(), always. A pointer of the program's own to its Job is there for handlers if
// the program has set it before its first call of the Job that waits or polls, and within 100 ms after join() returned:
// no handler runs before that (Job::join()).

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/call/function.hpp"
#include "kumi/engine/call/handle.hpp"
#include "kumi/engine/call/parameters.hpp"
#include "kumi/pm/node.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kumi {

class Handlers;
class Job;

/// Names a handler in a call; made by Handlers::add(). For the job that is joined with those Handlers: elsewhere it is
/// refused with ErrorCode::misuse.
template <class... Parameters>
class Handler {
public:
    std::uint32_t index() const noexcept { return handle_.index; }
    engine::Handle handle() const noexcept { return handle_; }

private:
    friend class Handlers;
    explicit Handler(engine::Handle handle) noexcept : handle_(handle) {}
    engine::Handle handle_;
};

namespace engine {

class ActiveMessages;
class Dispatcher;
class Engine;

/// `numbers` has the number on the wire of each handler, or function. Answers which one has each number.
inline std::vector<std::uint32_t> inverse_of(const std::vector<std::uint32_t>& numbers) {
    std::vector<std::uint32_t> inverse(numbers.size());
    for (std::uint32_t i = 0; i < numbers.size(); ++i) inverse[numbers[i]] = i;
    return inverse;
}

} // namespace engine

/// A request in its handler's hands. A handler runs on whatever thread makes progress, one at a time on each node; it
/// must not wait. Through its Job it may send, put and so on all the same: what finds no room is sent later, and none
/// of it is lost. While more than 16 MiB wait to be sent, this node holds requests back that it is asked for, and their
/// senders wait.
class Call {
public:
    Call(engine::Dispatcher& dispatcher, pm::Node source, bool is_request) noexcept
        : dispatcher_(dispatcher), source_(source), is_request_(is_request) {}
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    pm::Node source() const noexcept { return source_; }
    /// The job that this node is part of. Good until the program's Job ends, wherever the program has moved it.
    Job& job() const noexcept;
    /// The engine, for code that has no Job.
    engine::Engine& engine() const noexcept;

    /// Answers: calls `handler` on the source. Once for each request at most, not for a reply, and with no more than a
    /// request may have (Engine::message_bytes_max()): otherwise nothing is sent and the source gets an error by its
    /// next sync(). Never refused for lack of room.
    template <class... Parameters, class... Arguments>
    void reply(const Handler<Parameters...>& handler, const Arguments&... arguments) {
        engine::Packed<Parameters...> packed(arguments...);
        reply_packed(handler.handle(), packed.message(), packed.payload());
    }

    bool has_replied() const noexcept { return has_replied_; }

private:
    friend class engine::ActiveMessages;
    void reply_packed(engine::Handle handler, MutableBytes message, Bytes payload);
    /// What the handler did wrong, if anything: the source is told.
    const Error* misuse() const noexcept { return misuse_.get(); }

    engine::Dispatcher& dispatcher_;
    pm::Node source_;
    bool is_request_;
    bool has_replied_ = false;
    std::unique_ptr<const Error> misuse_;
};

/// The handlers of a program, gathered before it joins its job.
class Handlers {
public:
    /// `callable` takes a Call& and then parameters that are trivially copyable; the last may be Bytes, for a payload
    /// of any length (aligned to 8 bytes, gone when the handler returns). Whatever it throws is an error at the node
    /// that sent the request.
    template <class Callable>
    auto add(std::string name, Callable callable) {
        static_assert(engine::WithParameters<Callable>,
                      "write the types of a handler's parameters: [](kumi::Call& call, double x), not auto");
        if constexpr (engine::WithParameters<Callable>)
            return add(std::move(name), std::move(callable), typename engine::parameters_of<Callable>::as_written{});
        else return Handler<>({});
    }

    /// `callable` takes and answers values of any type that an archive takes: those of the standard library, classes
    /// that are nothing but their memory, those with a `serialize` as cereal has it. It may return a Result or a Future
    /// of such a value, too. What it throws comes to the caller's future. A coroutine takes its parameters by value:
    /// references to them are gone after its first co_await.
    /// Functions run on threads of their own (workers): KUMI_WORKERS of them at once, 4 if it is not set. So functions
    /// may run at the same time, in any order, and share data with care. A function may wait for anything; while it
    /// waits in a call of the job, another one takes its place. With KUMI_PROGRESS=off there are no workers: threads
    /// that wait run functions, one at a time.
    /// Programs that call this include <kumi/functions.hpp>.
    template <class Callable>
    auto function(std::string name, Callable callable) {
        constexpr bool is_included = requires { sizeof(engine::FunctionMaker<Callable>); };
        static_assert(is_included, "Handlers::function() needs #include <kumi/functions.hpp>");
        if constexpr (is_included)
            return engine::FunctionMaker<Callable>::add(*this, std::move(name), std::move(callable));
    }

    struct Entry {
        std::string name;
        std::string signature; // of the parameters, as text that tells kinds and sizes
        std::function<bool(Call&, Bytes)> run; // false: these are not its arguments
    };
    const std::vector<Entry>& entries() const noexcept { return entries_; }
    const std::vector<engine::FunctionEntry>& functions() const noexcept { return functions_; }
    /// This object made `handle`, or the handlers were moved here from the object that did.
    bool has_made(engine::Handle handle) const noexcept { return handle.owner == owner_.number(); }

private:
    template <class Callable, class First, class... Written>
    auto add(std::string name, Callable callable, engine::Parameters<First, Written...>) {
        constexpr bool takes_call = std::is_same_v<First, Call&> || std::is_same_v<First, const Call&>;
        static_assert(takes_call, "the first parameter of a handler is kumi::Call&: [](kumi::Call& call, double x)");
        if constexpr (takes_call) return add_checked<std::remove_cvref_t<Written>...>(name, std::move(callable));
        else return Handler<std::remove_cvref_t<First>, std::remove_cvref_t<Written>...>({});
    }
    template <class Callable>
    Handler<> add(std::string, Callable, engine::Parameters<>) {
        static_assert(!sizeof(Callable), "the first parameter of a handler is kumi::Call&: [](kumi::Call& call)");
        return Handler<>({});
    }

    template <class... Parameters, class Callable>
    Handler<Parameters...> add_checked(std::string& name, Callable callable) {
        constexpr bool travel = (engine::TravelsAsBytes<Parameters> && ...);
        constexpr bool is_last = engine::payload_is_last<Parameters...>();
        static_assert(travel, "the parameters of a handler are numbers, plain structs, and a kumi::Bytes at the end, "
                              "which can refer to a string; Handlers::function() takes strings and containers");
        static_assert(is_last, "kumi::Bytes is the last parameter of a handler");
        if constexpr (travel && is_last)
            entries_.push_back({std::move(name), engine::signature_of<Parameters...>(),
                                [callable = std::move(callable)](Call& call, Bytes bytes) mutable {
                                    return engine::Unpack<Parameters...>::apply(
                                        bytes, [&](const Parameters&... arguments) { callable(call, arguments...); });
                                }});
        return Handler<Parameters...>({owner_.number(), static_cast<std::uint32_t>(entries_.size() - 1)});
    }

    template <class Callable>
    friend struct engine::FunctionMaker;

    engine::HandleOwner owner_;
    std::vector<Entry> entries_;
    std::vector<engine::FunctionEntry> functions_;
};

} // namespace kumi
