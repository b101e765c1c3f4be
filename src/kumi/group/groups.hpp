#pragma once

// Multicast to sets of nodes that the program chooses at run time (after Nagamine, Fukuma and Mori). The node that
// sends is the master. If it is not in the set, it sends the message to one member; if it is, it passes the message on
// as other members do. The set travels in the message, and each member computes from the set which members it passes
// the message on to. Content that is too large for one message goes in several. Nodes outside the set take no part.
// Answers return along the same tree and tell the master which members did not get the message.
//
//     auto done = job->multicast({3, 5, 9}, new_state, step, values);  // a handler, as in send()
//     ...
//     const auto missing = done.get();                                 // empty: all have handled it
//
// Order. A member handles the multicasts of one master in the order in which the master sent them, also if they went to
// different sets. The functions of gather() and reduce() are put in line in that order; several of them run at once,
// and what comes after them does not wait until they have answered. So a function may itself multicast, gather and
// reduce, and wait for that.
//
// Threads. A call that starts a multicast runs no handler in its thread, also where this node is a member: threads that
// wait or poll do so, and the background thread while there are none. A mutex that handlers take may be held in such a
// call; see engine.hpp. With KUMI_PROGRESS=off, a call that waits because too many are under way runs handlers.
//
// Losses. When a member dies the others still get the multicast: the node that passed it on to the dead member takes
// over. A node that had sent something to the dead member itself is told of the loss by its next sync(), too. When a
// master dies, some members may get more of what it had under way than others; each multicast arrives whole and in
// order or not at all, and no member waits for the rest.

#include "kumi/base/clock.hpp"
#include "kumi/base/owned_function.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/future.hpp"
#include "kumi/engine/handlers.hpp"
#include "kumi/engine/call/parameters.hpp"
#include "kumi/engine/global_ptr.hpp"
#include "kumi/engine/memory/words.hpp"
#include "kumi/group/plan/choice.hpp"
#include "kumi/group/set.hpp"
#include "kumi/group/settings.hpp"
#include "kumi/group/topology.hpp"

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace kumi::engine {
class Dispatcher;
} // namespace kumi::engine

namespace kumi::group {

class Multicasts;
class RemoteSources;
class Group;
class Mailbox;

/// A list of places in memory, all of one type.
template <class Places>
using ElementOf = typename std::ranges::range_value_t<const Places>::element_type;
template <class Places>
concept PlaceList = std::ranges::sized_range<const Places> &&
    std::same_as<std::ranges::range_value_t<const Places>, global_ptr<ElementOf<Places>>>;

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
    Set missing;                   // members that did not get it, or whose answer did not arrive
    std::vector<std::byte> values; // answers of members
    std::vector<std::pair<Node, std::vector<std::byte>>> fetched; // large ones, by member
};

/// The answers of members, by node, without members that did not answer.
template <class Answer>
using Gathered = std::vector<std::pair<Node, Answer>>;

/// The answers of members, combined into one.
template <class Answer>
struct Reduced {
    Answer value{};
    Set missing; // members whose answers are not in it
};

/// May be used by any thread. A handler may begin multicasts, but must not wait for them.
class Groups {
public:
    /// Adds its services to the engine, which must not have started. If `settings` has no costs, they are measured with
    /// extra messages before the first multicasts; until then, and if the measurement makes no sense, `usual` counts.
    /// If `settings` has a way, all multicasts go that way, except those that are too large for it.
    explicit Groups(engine::Dispatcher& dispatcher, Topology topology = {}, const Settings& settings = {},
                    const Costs& usual = {});
    Groups(Groups&&) noexcept;
    /// The engine must have ended.
    ~Groups();

    /// Calls `handler` on each member of `to`; Call::source() there is this node. The future is ready when every member
    /// has handled it or is known to be lost; its value is the set of members that did not handle it. The future has an
    /// error, with node and cause, if a handler threw. This call waits only while too many multicasts are under way.
    /// It fails after 5 s if a handler of this node then waits for a mutex of this thread, and in a function also if
    /// under_way_max are under way and none ends in that time, because all of them may wait for functions.
    template <class... Parameters, class... Arguments>
        requires(sizeof...(Parameters) == sizeof...(Arguments))
    Future<Set> multicast(const Set& to, const Handler<Parameters...>& handler, const Arguments&... arguments) {
        engine::Packed<Parameters...> packed(arguments...);
        return call(to, handler.handle(), Bytes(packed.message()).subspan(engine::header_room), packed.payload());
    }
    /// Without a handler: members take the content with next().
    Future<Set> multicast(const Set& to, std::uint64_t tag, Bytes content);
    /// Waits for the next multicast to this node that has no handler.
    Result<Arrival> next(Instant deadline = never);

    /// Stores `values` at the same place of a segment on each member of `to`, and applies `notice` there. The node in
    /// `place` does not matter. The future is that of multicast(): an error if a member has no such place. sync() waits
    /// for the stores, too, but does not return their errors. The source may change when this call returns.
    template <class T>
    Future<Set> multicast(const Set& to, global_ptr<T> place, std::span<const std::type_identity_t<T>> values,
                          const Notice& notice = {}) {
        return store(to, place.template as<std::byte>(), std::as_bytes(values), notice);
    }
    /// The same for `count` values in the memory of any node, at `from`. If this node reaches that memory by loads, it
    /// reads the values in this call. Otherwise this call asks the node that has them: it reads them when the call has
    /// reached it, and is the master of the multicast, which therefore is not in order with multicasts of this node. If
    /// that node is lost meanwhile, the future has an error, and some members may have the values.
    template <class T>
    Future<Set> multicast(const Set& to, global_ptr<T> place, global_ptr<T> from, std::size_t count,
                          const Notice& notice = {}) {
        return store(to, place.template as<std::byte>(),
                     Source{from.template as<std::byte>(), engine::bytes_for<T>(count)}, notice);
    }
    /// The same to a place of its own on each member, in any memory that other nodes reach: segments, heaps, and what
    /// nodes expose. `places` is a vector, an array or a span of global_ptr; the members are their nodes, each of which
    /// is named once.
    template <PlaceList Places>
    Future<Set> multicast(const Places& places, std::span<const ElementOf<Places>> values, const Notice& notice = {}) {
        return store(by_bytes(places), std::as_bytes(values), notice);
    }
    template <PlaceList Places>
    Future<Set> multicast(const Places& places, global_ptr<ElementOf<Places>> from, std::size_t count,
                          const Notice& notice = {}) {
        return store(by_bytes(places),
                     Source{from.template as<std::byte>(), engine::bytes_for<ElementOf<Places>>(count)}, notice);
    }
    /// From now on this node stores nothing and sets no flag for multicasts into memory; it still passes them on.
    void discard_stores(bool discards) noexcept;

    /// Runs a function on each member, as invoke() does on one node. The answers arrive together: at most
    /// answers_bytes_max of them. A member that is lost before all of its answer is here has not answered.
    template <class Answer, class... Parameters, class... Arguments>
        requires(sizeof...(Parameters) == sizeof...(Arguments))
    Future<Gathered<Answer>> gather(const Set& to, const Function<Answer(Parameters...)>& function,
                                    const Arguments&... arguments);
    /// The same, and members combine the answers on their way back with `operation`, which must be commutative and must
    /// not wait. An error if no member answered. An answer, and what the operation makes of several, may take half of
    /// Engine::message_bytes_max(), usually 128 KiB: otherwise ErrorCode::too_large. Group::allreduce() takes more.
    template <class Answer, class... Parameters, class... Arguments>
        requires(sizeof...(Parameters) == sizeof...(Arguments))
    Future<Reduced<Answer>> reduce(const Set& to, const Function<Answer(Answer, Answer)>& operation,
                                   const Function<Answer(Parameters...)>& function, const Arguments&... arguments);

    /// The collectives of a set that this node is a member of; see group.hpp. Sends nothing.
    Result<Group> group(const Set& set);
    /// The collectives of the members of a multicast, separate from all other collectives among the same nodes.
    Result<Group> group_of(const Arrival& arrival);

    /// The maximum size of arguments and content together.
    static constexpr std::size_t content_bytes_max = std::size_t{1} << 30;
    /// The maximum size of all answers that gather() brings.
    static constexpr std::size_t answers_bytes_max = std::size_t{1} << 30;
    /// The maximum number of multicasts that one master has under way. Threads of the program wait when there are half
    /// as many: the others are for functions and handlers, because what is under way may be waiting for functions.
    static constexpr std::size_t under_way_max = 512;
    /// The number of multicasts that this node keeps something of: its own that are under way, those that it passes on,
    /// and those that wait here.
    std::size_t kept() const;
    /// The way that a multicast of so many bytes would go to so many members, some of them on other hosts.
    Choice choice(std::size_t bytes, Node members) const;
    /// The costs by which ways are chosen.
    Costs costs() const;
    const Topology& topology() const noexcept;

private:
    using Ended = base::OwnedFunction<void(Result<Outcome>)>;
    Future<Set> call(const Set& to, engine::Handle handler, Bytes arguments, Bytes payload);
    /// Values in the memory of some node.
    struct Source {
        global_ptr<std::byte> from;
        std::size_t bytes;
    };
    using Values = std::variant<Bytes, Source>;
    static std::size_t bytes_of_values(const Values& values) noexcept;
    using ByteList = std::vector<global_ptr<std::byte>>;
    template <class Places>
    static ByteList by_bytes(const Places& places) {
        ByteList list;
        for (const auto& place : places) list.push_back(place.template as<std::byte>());
        return list;
    }
    Future<Set> store(const Set& to, global_ptr<std::byte> place, const Values& values, const Notice& notice);
    Future<Set> store(ByteList places, const Values& values, const Notice& notice);
    /// `arguments` say where the values go.
    Future<Set> store(const Set& to, std::uint32_t places, Bytes arguments, const Values& values);
    /// Runs a function on all members; with an operation, the answers are combined.
    void ask(const Set& to, engine::Handle function, std::optional<engine::Handle> operation,
             const engine::ArgumentBytes& arguments, Ended ended);
    engine::Progress& progress() noexcept;

    /// Collectives with the same id belong together; all members give the same id.
    Result<Group> group(const Set& set, std::uint64_t id);

    std::unique_ptr<Multicasts> multicasts_;
    std::shared_ptr<Mailbox> mailbox_; // shared with each Group, which may outlive this
    std::unique_ptr<RemoteSources> sources_;
};

} // namespace kumi::group
