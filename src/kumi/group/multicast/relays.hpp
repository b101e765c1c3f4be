#pragma once

// Relays: this node passes multicasts on, and answers for the members below it.
//
// A relay is one passing-on of one multicast. It knows the node that the multicast came from (its parent), the nodes
// that it was sent on to (its children), and which of these have answered. It is complete when all children have
// answered and this node has had the content itself; then one answer goes to the parent, for this node and all below
// it. The same multicast may have several relays: it comes again when nodes between the master and this one are lost.
//
// Losses. When a child is lost that a whole message was sent to, the relay sends the message to the members that this
// child was to care for, in new parts. Children of multicasts in blocks are the business of Streams.
//
// A complete relay is not ended here: next_complete() hands it to Multicasts, which knows whether a parent, a stream or
// this node's own program is to be told.

#include "kumi/base/owned_function.hpp"
#include "kumi/engine/dispatcher.hpp"
#include "kumi/group/groups.hpp"
#include "kumi/group/multicast/content.hpp"
#include "kumi/group/multicast/exposed.hpp"
#include "kumi/group/multicast/send_queue.hpp"
#include "kumi/base/data/numbered.hpp"
#include "kumi/group/topology.hpp"
#include "kumi/group/wire/lead.hpp"
#include "kumi/group/wire/multicast.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kumi::group {

/// Called once with how a multicast of this node's has ended, unless the engine ends before.
using Ended = base::OwnedFunction<void(Result<Outcome>)>;

/// A node whose answer a relay waits for.
struct RelayChild {
    Node to;
    Set part; // the members that it answers for, itself included
    bool has_answered = false;
};

struct Relay {
    RelayId id{};
    Name name{};
    Purpose purpose{};
    bool is_masters = false;        // this node is the master
    bool is_in_blocks = false;      // there is a Stream for it
    Node parent = 0;                // the node that it answers; of a stream, the parent may change and is computed
    RelayId parents = no_relay;     // the parent's number for it
    Content content;                // for children that do not have it yet
    std::optional<Place> place;     // of the content, if it lies in the master's heap
    std::optional<Exposed> exposed; // at the master: the content in its heap
    std::vector<Before> before;
    Set members; // all of them, where the content waits to be taken
    Pace pace;   // of the tree
    std::vector<RelayChild> children;
    unsigned open = 0; // children that have not answered, and 1 if this node has not had the content
    Set missing;       // members that did not get it, as far as is known
    std::string trouble;
    ErrorCode code = ErrorCode::refused; // of the trouble
    std::vector<std::pair<Node, std::vector<std::byte>>> values; // that members answered, by the first of these members
    Ended ended;                                                 // at the master

    /// Field by field: to assign a new one would take as long as all the rest that is done for it.
    void reset() {
        is_masters = false;
        is_in_blocks = false;
        content = {};
        place.reset();
        exposed.reset();
        before.clear();
        members = {};
        children.clear();
        open = 0;
        missing = {};
        trouble.clear();
        code = ErrorCode::refused;
        values.clear();
        ended = nullptr;
    }
};

/// An answer as it came. `trouble` and `values` lie in the message.
struct ReceivedAnswer {
    Answer head{};
    Set missing;
    std::string_view trouble;
    Bytes values;
};
/// Nothing: the bytes are no answer of a job with so many nodes.
std::optional<ReceivedAnswer> read_answer(Bytes bytes, Node nodes);

/// What this node itself has to say about a multicast.
struct OwnAnswer {
    std::optional<std::vector<std::byte>> value;
    std::string trouble;
    ErrorCode code = ErrorCode::refused; // of the trouble
    bool is_missing = false;             // this node did not get it
};

/// A member near this node, another one for each sequence. Not a lost one, if there are others.
Node choose_first(const engine::Dispatcher& dispatcher, const Topology& topology, const Set& set,
                  std::uint64_t sequence);

class Relays {
public:
    /// Of the multicasts of one master; an honest master has no more.
    static constexpr std::size_t of_one_master_max = 4 * Groups::under_way_max;
    static constexpr std::size_t trouble_bytes_max = 500;

    /// The topology and the queue must outlive this.
    Relays(engine::Dispatcher& dispatcher, const engine::Port& port, const Topology& topology, SendQueue& queue);
    Relays(const Relays&) = delete;
    Relays& operator=(const Relays&) = delete;

    /// Whether this node may relay another multicast of that master, and has the handler or the functions for it.
    bool is_possible(const engine::Turn& turn, Node master, const Purpose& purpose) const;
    Relay& add(const engine::Turn& turn, const Name& name, const Purpose& purpose);
    /// Null: it has ended.
    Relay* find(RelayId id) const noexcept { return relays_.find(id); }
    std::size_t size() const noexcept { return relays_.size(); }
    template <class Visit>
    void for_each(const engine::Turn&, Visit&& visit) const {
        relays_.for_each(std::forward<Visit>(visit));
    }

    /// Sends the content to a child, at once or when there is room, and waits for its answer. The relay must be open.
    void add_child(const engine::Turn& turn, Relay& relay, Child child);
    /// Waits for the answer of a child that has the content from a stream.
    void expect_child(const engine::Turn& turn, Relay& relay, Child child);
    /// The child with that node whose answer is waited for; null: there is none.
    static RelayChild* find_child(Relay& relay, Node node) noexcept;
    /// False: the answer is not from a child that is waited for.
    bool take_answer(const engine::Turn& turn, Relay& relay, Node source, const ReceivedAnswer& answer);
    /// This node has had the content, or will not have it. Relays that have ended are left out.
    void end_own(const engine::Turn& turn, std::span<const RelayId> ids, const OwnAnswer& own);
    /// The relay has one thing less to wait for.
    void close_one(const engine::Turn&, Relay& relay) {
        if (--relay.open == 0) complete_.push_back(relay.id);
    }

    /// The next relay that has become complete; the caller removes it. Null: there is none.
    Relay* next_complete(const engine::Turn& turn) noexcept;
    /// The relay is not found any more; its memory is there until it is given back.
    std::unique_ptr<Relay> remove(const engine::Turn& turn, Relay& relay);
    void give_back(const engine::Turn&, std::unique_ptr<Relay> relay) { relays_.give_back(std::move(relay)); }
    /// The values of this node and of those below it, as one; nothing if there are none, or if there is trouble.
    std::optional<std::vector<std::byte>> combine(const engine::Turn& turn, Relay& relay) const;
    /// The answer as a message, until the next message is made. `id` is the receiver's number for the relay.
    std::vector<std::byte>& answer_of(const engine::Turn& turn, Relay& relay, RelayId id);
    void answer_parent(const engine::Turn& turn, Relay& relay);
    /// Answers `cast`, which was for this node alone and has no relay here. Requires that `own` has no value.
    void answer_for_self(const engine::Turn& turn, Node to, const Cast& cast, const OwnAnswer& own);

    /// Sends what the queue has, as far as there is room; true if something was sent.
    bool go_on(const engine::Turn& turn);
    void on_lost(const engine::Turn& turn, Node node);
    /// True if this node waits for no answer that another node wants to know.
    bool is_done(const engine::Turn& turn) const;
    /// The engine has ended. The callbacks end with what this returns: code that hears of that may want to begin
    /// other multicasts.
    base::Numbered<Relay, RelayId> take_all(const engine::Turn& turn);

private:
    void replace_child(const engine::Turn& turn, Relay& relay, std::size_t index);
    bool try_cast(const Relay& relay, const RelayChild& child);
    void make_answer(const Name& name, RelayId id, const Set& missing, std::string_view trouble, ErrorCode code,
                     const std::vector<std::byte>* values);

    engine::Dispatcher& dispatcher_;
    engine::Port port_;
    const Topology& topology_;
    SendQueue& queue_;
    base::Numbered<Relay, RelayId> relays_;
    std::vector<std::uint32_t> of_master_; // by node, how many; without this node's own
    std::vector<RelayId> complete_;
    std::size_t next_complete_ = 0;  // the first of these that was not handed out
    std::vector<std::byte> message_; // that is being made
};

} // namespace kumi::group
