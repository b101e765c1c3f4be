#pragma once

// One multicast in blocks at one node: the blocks that are here, and the flows by which this node sends them on.
//
// Blocks go round in circles of members, as a Schedule says; each circle that this node is in is a flow. After a loss,
// and to a member that asks for them, all blocks go to one node, one after the other: a direct flow. Answers climb the
// tree that the set makes, whatever way the blocks went.

#include "kumi/base/data/bitmap.hpp"
#include "kumi/base/function_ref.hpp"
#include "kumi/engine/dispatcher.hpp"
#include "kumi/group/multicast/content.hpp"
#include "kumi/group/plan/schedule.hpp"
#include "kumi/group/topology.hpp"
#include "kumi/group/wire/lead.hpp"
#include "kumi/group/wire/multicast.hpp"

#include <list>
#include <optional>
#include <vector>

namespace kumi::group {

/// What is the same at all members.
struct StreamShape {
    Name name{};
    Purpose purpose{};
    Set set;
    std::vector<Before> before;
    Node root = 0; // the first member that has all blocks
    Way way = Way::circulant;
    Pace pace; // of the tree of answers
    std::uint32_t block_bytes = 0;
};

class Stream {
public:
    struct Flow {
        std::vector<Node> members;
        std::optional<Schedule> schedule = {}; // none: all blocks to the one member
        std::uint32_t next = 0;                // step of the schedule, or block
        std::uint32_t sent = 0;                // blocks of that step
        Set opened = {};                       // members that were sent the lead
        bool is_refused = false;               // the next blocks are here, and there was no room to send them
    };

    /// Without any block, or with all of them.
    Stream(StreamShape shape, SharedBytes content, bool has_all);

    const Name& name() const noexcept { return shape.name; }
    /// All blocks are here.
    bool is_whole() const noexcept { return arrived_ == blocks_; }
    std::uint32_t blocks() const noexcept { return blocks_; }
    bool has(std::uint32_t begin, std::uint32_t end) const noexcept { return has_.next_clear(begin) >= end; }
    /// The bytes of blocks; the last block may be a short one.
    Bytes bytes_in(std::uint32_t begin, std::uint32_t end) const noexcept;
    enum class Taken { unsound, known, fresh };
    /// Blocks from `index` on have come.
    Taken take(std::uint32_t index, Bytes data);
    /// True if no block has come since the last call.
    bool is_stuck() noexcept;

    /// The head of a message about this stream, with the blocks from `index` on, or no_block.
    Block head(std::size_t lead_bytes, std::uint32_t index, bool wants_answer) const noexcept;
    std::vector<std::byte> lead() const { return lead_of(shape.set, shape.before, {}); }

    /// Sends blocks in the circles that `self`, a member, is in.
    void add_circles(Node self, const Topology& topology);
    /// Sends all blocks to `to`; once.
    void push_to(Node to);
    /// `to` has all blocks, or wants none.
    void stop_pushing_to(Node to);
    std::uint32_t steps_of(const Flow& flow) const noexcept { return flow.schedule ? flow.schedule->steps() : blocks_; }

    /// Goes down the tree of answers: calls `visit` for each node above `self`, from the root on, and returns the
    /// members that `self` answers for.
    Set part_of(Node self, const Topology& topology, base::FunctionRef<void(Node)> visit) const;

    StreamShape shape;
    SharedBytes content;
    std::list<Flow> flows;
    std::optional<RelayId> relay = {}; // until this node has answered
    Set pushed = {};                   // nodes that get all blocks from this one
    Set asked = {};                    // nodes that want this node's answer, beside its parent
    Set out = {};                      // nodes that have no blocks to give

private:
    std::uint32_t blocks_;
    std::uint32_t arrived_ = 0;
    std::uint32_t arrived_at_look_ = 0;
    base::Bitmap has_;
};

/// Sends the blocks of streams, and asks for blocks and answers.
class BlockSender {
public:
    BlockSender(engine::Dispatcher& dispatcher, const engine::Port& port) noexcept
        : dispatcher_(dispatcher), port_(port) {}

    /// Sends the blocks that are here, as far as there is room; true if something was sent. Flows that have sent all
    /// end.
    bool go_on(const engine::Turn& turn, Stream& stream);
    /// Asks `node` for its answer, or for its blocks. A node that has not heard of the stream hears of it by that, and
    /// asks further up for the blocks. If there is no room nothing is sent: the node is asked again later.
    void ask(const engine::Turn& turn, const Stream& stream, Node node, bool for_answer);

private:
    static constexpr std::uint64_t under_way_max = engine::requests_max * 3 / 4; // messages to one node

    bool go_on(const engine::Turn& turn, Stream& stream, Stream::Flow& flow);
    bool send_blocks(const engine::Turn& turn, const Stream& stream, Stream::Flow& flow, Node to, std::uint32_t begin,
                     std::uint32_t end);

    engine::Dispatcher& dispatcher_;
    engine::Port port_;
};

} // namespace kumi::group
