#pragma once

// Multicast to sets that are chosen as one goes (after Nagamine, Fukuma and Mori). The master sends a message to one
// member and is done; the set travels in it. Members see from it whom to pass it on to; who is no member has nothing to
// do with it. Answers come back the same way and tell the master who did not get it.
//
//     auto done = job->multicast({3, 5, 9}, new_state, step, values);  // a handler, as in send()
//     ...
//     const auto missing = done.get();                                 // empty: all have handled it
//
// Order. What one master sends to one member is handled there in the order of sending, whatever sets it went to.
// Losses. A member that dies does not keep the others from getting it: who passed it on to that one takes over. Of what
// a master that dies had under way some members get more than others; each gets it whole and in order, and nobody waits
// for the rest.

#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/future.hpp"
#include "kumi/engine/handlers.hpp"
#include "kumi/engine/parameters.hpp"
#include "kumi/group/plan/choice.hpp"
#include "kumi/group/set.hpp"
#include "kumi/group/settings.hpp"
#include "kumi/group/topology.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace kumi::engine {
class Dispatcher;
using Core = Dispatcher;
} // namespace kumi::engine

namespace kumi::group {

class Multicasts;
class Group;
class Mailbox;

/// A multicast without a handler, at a member that took it.
struct Arrival {
    Node master;
    std::uint64_t tag;
    std::vector<std::byte> content;
    Set members;            // all that it is for
    std::uint64_t sequence; // of the master's multicasts
};

/// How a multicast ended.
struct Outcome {
    Set missing;                   // did not get it, or could not tell
    std::vector<std::byte> values; // that members answered
};

/// What members answered, by node; those that did not are not among them.
template <class Answer>
using Gathered = std::vector<std::pair<Node, Answer>>;

/// What members answered, put together.
template <class Answer>
struct Reduced {
    Answer value{};
    Set missing; // not in it
};

/// For any thread. From inside a handler multicasts may be begun, but not waited for.
class Groups {
public:
    /// Adds its services to the engine, before that starts. Costs that are not given are measured, by some messages
    /// more with the first multicasts; until then, and where that makes no sense, they are the usual ones. A way that
    /// is given is gone by all multicasts but those too large for it.
    explicit Groups(engine::Core& core, Topology topology = {}, const Settings& settings = {}, const Costs& usual = {});
    Groups(Groups&&) noexcept;
    /// After the engine.
    ~Groups();

    /// Calls `handler` on each member of `to`; Call::source() there is this node. When all have, or are known to be
    /// lost, the future has those that did not; an error where the handler threw, which names node and cause. Waits
    /// only while too many are under way.
    template <class... Parameters, class... Arguments>
        requires(sizeof...(Parameters) == sizeof...(Arguments))
    Future<Set> multicast(const Set& to, const Handler<Parameters...>& handler, const Arguments&... arguments) {
        engine::Packed<Parameters...> packed(arguments...);
        return call(to, handler.index(), Bytes(packed.message()).subspan(engine::header_room), packed.payload());
    }
    /// The same for members that take it by next().
    Future<Set> multicast(const Set& to, std::uint64_t tag, Bytes content);
    /// Waits for the next that is for this node and for no handler.
    Result<Arrival> next(Instant deadline = never);

    /// Runs a function on each member, as invoke() does on one; the answers come back together.
    template <class Answer, class... Parameters, class... Arguments>
        requires(sizeof...(Parameters) == sizeof...(Arguments))
    Future<Gathered<Answer>> gather(const Set& to, const Function<Answer(Parameters...)>& function,
                                    const Arguments&... arguments);
    /// The same, and members put answers together on their way back: by `operation`, which must not care for the order,
    /// nor wait. An error where nobody answered.
    template <class Answer, class... Parameters, class... Arguments>
        requires(sizeof...(Parameters) == sizeof...(Arguments))
    Future<Reduced<Answer>> reduce(const Set& to, const Function<Answer(Answer, Answer)>& operation,
                                   const Function<Answer(Parameters...)>& function, const Arguments&... arguments);

    /// The members of a set, of which this node is one, to do things together; see group.hpp. Asks nobody.
    Result<Group> group(const Set& set);
    /// The members of a multicast: apart from all else that is done among the same nodes.
    Result<Group> group_of(const Arrival& arrival);

    /// The most that arguments and content may take.
    static constexpr std::size_t content_bytes_max = std::size_t{1} << 30;
    /// Multicasts of one master that may be under way.
    static constexpr std::size_t under_way_max = 256;
    /// Multicasts that this node has something of: its own that are under way, and others that it passes on or that
    /// wait here.
    std::size_t kept() const;
    /// How one of so many bytes would go to so many members, some of them on other hosts.
    Choice choice(std::size_t bytes, Node members) const;
    /// What it is chosen by.
    Costs costs() const;
    const Topology& topology() const noexcept;

private:
    using Ended = std::function<void(Result<Outcome>)>;
    Future<Set> call(const Set& to, std::uint32_t handler, Bytes arguments, Bytes payload);
    /// Runs a function on all; with an operation, answers are put together.
    void ask(const Set& to, std::uint32_t function, std::optional<std::uint32_t> operation,
             const engine::ArgumentBytes& arguments, Ended ended);
    engine::Progress& progress() noexcept;

    /// With a number of its own: apart from what is done on the same set under another one. All members give the same.
    Result<Group> group(const Set& set, std::uint64_t id);

    std::unique_ptr<Multicasts> casts_;
    std::unique_ptr<Mailbox> mailbox_;
};

} // namespace kumi::group
