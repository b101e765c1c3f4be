#pragma once

// Answers to multicasts of this node that stay at their members (held_answers.hpp): this node fetches them when all
// members have answered, part by part, straight from the members.
//
// Losses. A member that is lost before all of its answer is here is missing in the outcome, and so is a member that has
// no such answer any more, or sends what was not asked for.
//
// Bounds. What is fetched at the same time takes bytes_max together; other multicasts wait for their turn. The answers
// to one multicast take bytes_max, or the multicast fails. Memory is taken as parts come, not as a member announces
// them. From each member at most one part is under way.

#include "kumi/engine/dispatcher.hpp"
#include "kumi/group/answers/held_answers.hpp"
#include "kumi/group/groups.hpp"
#include "kumi/group/multicast/relays.hpp"
#include "kumi/group/multicast/send_queue.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace kumi::group {

/// An answer that its member keeps.
struct HeldValue {
    Node node;
    std::uint64_t bytes;
};
/// Takes references to answers of `members` out of the values, and leaves the answers that are there. References to
/// answers of other nodes, and second ones of a node, are dropped.
std::vector<HeldValue> take_held(std::vector<std::byte>& values, const Set& members);

class Fetches {
public:
    static constexpr std::size_t members_at_once_max = 16;

    /// The queue and this node's own answers must outlive this.
    Fetches(engine::Dispatcher& dispatcher, SendQueue& queue, HeldAnswers& own, std::size_t bytes_max)
        : dispatcher_(dispatcher), queue_(queue), own_(own), bytes_max_(bytes_max) {}
    Fetches(const Fetches&) = delete;
    Fetches& operator=(const Fetches&) = delete;

    /// Fetches answers to a multicast of this node, and then calls `ended` with the outcome, which has all but these
    /// answers. An error if all answers together take too much.
    void begin(const engine::Turn& turn, std::uint64_t sequence, const Set& to, const std::vector<HeldValue>& held,
               Outcome outcome, Ended ended);
    /// The answers of these members are not wanted: the multicast has failed.
    void release(const engine::Turn& turn, std::uint64_t sequence, const Set& members);
    /// A part of an answer has come. False: it makes no sense.
    bool on_fetched(const engine::Turn& turn, Node source, Bytes bytes);
    void on_lost(const engine::Turn& turn, Node node);
    /// Adds the members that this node waits for.
    void add_awaited(const engine::Turn& turn, Set& nodes) const;
    std::size_t size() const noexcept { return under_way_.size(); }

    struct Value {
        Node node;
        std::uint64_t bytes;         // 0: the member's answer is missing
        std::vector<std::byte> data; // as far as it has come
        bool is_open = false;        // it was asked for
    };
    struct Fetching {
        Set to;
        std::vector<Value> values;
        Outcome outcome;
        Ended ended;
        std::uint64_t bytes = 0; // of all
        std::size_t asked = 0;   // values from the first one on
        std::size_t open = 0;    // of these, the number that have not come
        bool has_begun = false;
    };
    using Table = std::map<std::uint64_t, Fetching>; // by sequence
    /// The engine has ended: the callbacks end with what this returns.
    Table take_all(const engine::Turn&) noexcept { return std::exchange(under_way_, {}); }

private:
    void begin_more(const engine::Turn& turn);
    void go_on(const engine::Turn& turn, Table::iterator fetching);
    void ask(const engine::Turn& turn, std::uint64_t sequence, Fetching& fetching, Value& value);
    static void drop(Fetching& fetching, Value& value);
    void end(const engine::Turn& turn, Table::iterator fetching, Result<void> result);
    void say_unwanted(const engine::Turn& turn, std::uint64_t sequence, Node node);

    engine::Dispatcher& dispatcher_;
    SendQueue& queue_;
    HeldAnswers& own_;
    std::uint64_t bytes_max_;
    Table under_way_;
    std::uint64_t bytes_ = 0; // of those that have begun
};

} // namespace kumi::group
