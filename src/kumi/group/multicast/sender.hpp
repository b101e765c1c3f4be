#pragma once

// The sender: what this node has under way as a master.
//
// A multicast is a Draft first: its way is chosen, and its content brought to where it stays, before its turn has come.
// It begins when little enough is under way, with a sequence of its own and with the sequences that its members must
// have had before. It ends when its relay is complete. Then members that did not get it, as far as this node reaches
// them, are told that it is over: they wait no longer for it, nor does what comes after it.

#include "kumi/engine/dispatcher.hpp"
#include "kumi/group/answers/fetches.hpp"
#include "kumi/group/groups.hpp"
#include "kumi/group/multicast/content.hpp"
#include "kumi/group/multicast/cost_probe.hpp"
#include "kumi/group/multicast/exposed.hpp"
#include "kumi/group/multicast/relays.hpp"
#include "kumi/group/multicast/send_queue.hpp"
#include "kumi/group/multicast/streams.hpp"
#include "kumi/group/plan/choice.hpp"
#include "kumi/group/topology.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace kumi::group {

/// A multicast that this node is going to begin.
struct Draft {
    Set to;
    Purpose purpose;
    std::size_t bytes = 0;
    bool is_member = false; // this node
    Choice choice{};
    Content content;
    std::optional<Exposed> exposed; // the content, if members read it where it lies
    SharedBytes streamed;           // the content, if it goes in blocks
};

class Sender {
public:
    /// The parts that multicasts go through; all of them must outlive the sender.
    struct Siblings {
        const Topology& topology;
        SendQueue& queue;
        Relays& relays;
        Streams& streams;
        CostProbe& probe;
        Fetches& fetches;
    };
    /// `way`: all multicasts go that way, if they are not too large for it.
    Sender(engine::Dispatcher& dispatcher, const Siblings& siblings, std::optional<Way> way) noexcept;
    Sender(const Sender&) = delete;
    Sender& operator=(const Sender&) = delete;

    /// How one of so many bytes would go to so many members.
    Choice choice(const engine::Turn& turn, std::size_t bytes, Node members) const;
    /// Does what can be done before the turn of the multicast. An error: it cannot be sent.
    Result<Draft> draft(const Set& to, const Purpose& purpose, const Pieces& pieces);
    /// An error: no multicast of so many bytes goes to this set.
    Result<void> check(const Set& to, std::size_t bytes) const;
    /// What its members must have had before. Nothing: too much is under way, or `most` multicasts are.
    std::optional<std::vector<Before>> room_for(const engine::Turn& turn, const Draft& draft,
                                                std::size_t most = Groups::under_way_max) const {
        return room_for(turn, draft.to, draft.bytes, most);
    }
    /// The same before there is a draft.
    std::optional<std::vector<Before>> room_for(const engine::Turn& turn, const Set& to, std::size_t bytes,
                                                std::size_t most) const;
    /// Sends what can be sent at once. The relay is held open by one, which the caller closes, or leaves to the
    /// delivery if this node is a member. What is left of the draft is its content, if this node is a member.
    Relay& begin(const engine::Turn& turn, Draft& draft, const std::vector<Before>& before, Ended ended);
    /// The relay of one of this node's multicasts is complete, and removed: tells the program. The callback may begin
    /// others.
    void end(const engine::Turn& turn, Relay& relay);

    /// This node has begun a multicast with that sequence; it may be over.
    bool has_begun(std::uint64_t sequence) const noexcept { return sequence < next_sequence_; }
    std::size_t under_way() const noexcept { return under_way_.size(); }
    /// How many of this node's multicasts have ended.
    std::uint64_t ended() const noexcept { return next_sequence_ - 1 - under_way_.size(); }

private:
    struct UnderWay {
        std::uint64_t sequence;
        Set to;
        std::size_t bytes;
        engine::OperationId held = engine::no_operation; // for sync(), of a multicast into memory
        std::optional<Set> ahead; // members that may not have had it, where a later one has ended before it

        /// Members that it may still have to come to.
        const Set& may_lack() const noexcept { return ahead ? *ahead : to; }
    };

    bool is_on_host(const Set& to) const noexcept;
    bool is_too_much(std::size_t bytes) const noexcept {
        return under_way_bytes_ + bytes > Streams::under_way_bytes_max;
    }
    std::vector<Before> before_for(const Set& to) const;
    bool is_far_ahead() const noexcept;
    void note_had(std::uint64_t sequence, const Set& members);
    void begin_whole(const engine::Turn& turn, Draft& draft, const std::vector<Before>& before, Relay& relay);
    void begin_blocks(const engine::Turn& turn, const Draft& draft, const std::vector<Before>& before, Relay& relay);
    void tell_missing(const engine::Turn& turn, const Relay& relay);

    engine::Dispatcher& dispatcher_;
    Siblings siblings_;
    std::optional<Way> way_;
    std::uint64_t next_sequence_ = 1;
    std::deque<UnderWay> under_way_; // oldest first
    std::size_t under_way_bytes_ = 0;
};

} // namespace kumi::group
