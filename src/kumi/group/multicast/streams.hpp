#pragma once

// Streams: multicasts that go in blocks, at a node that does not have all blocks yet, or still passes them on, or has
// not answered yet.
//
// Answers climb the tree that the set makes. Every member knows all others, so it can tell its parent and its children
// in this tree from the set alone. What a relay (relays.hpp) is for a whole message it is here for the answers.
//
// Losses. Where a member is lost, or resigns because it will not have the content, its parent takes over its children,
// and these turn to the parent. From then on blocks go down this tree too, for those that miss some because of the
// loss: each parent sends all blocks to those of its children that have not answered. A member that has got no block
// for some time asks its parent for all of them, whatever the reason is.
//
// Answers may come before this node knows that they are for it (EarlyAnswers). Answers that this node gave are
// remembered for a while, because the node that they were told may be lost.

#include "kumi/engine/dispatcher.hpp"
#include "kumi/group/multicast/deliveries.hpp"
#include "kumi/group/multicast/relays.hpp"
#include "kumi/group/multicast/send_queue.hpp"
#include "kumi/group/multicast/stream.hpp"
#include "kumi/group/table/early_answers.hpp"
#include "kumi/group/table/recent_answers.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kumi::group {

class Streams {
public:
    /// Content of one master's multicasts under way, if there are several.
    static constexpr std::size_t under_way_bytes_max = std::size_t{256} << 20;
    static constexpr std::uint32_t block_bytes_min = 1024;

    /// All parts must outlive this.
    Streams(engine::Dispatcher& dispatcher, const engine::Port& port, const Topology& topology, SendQueue& queue,
            Relays& relays, Deliveries& deliveries);
    Streams(const Streams&) = delete;
    Streams& operator=(const Streams&) = delete;

    /// Null: there is none.
    Stream* find(const Name& name) noexcept;
    std::size_t size() const noexcept { return streams_.size() + early_.size(); }

    /// This node is the master, and has all blocks: begins to send them. The relay must be open.
    void begin(const engine::Turn& turn, Relay& relay, StreamShape shape, SharedBytes content);

    enum class BlockTaken {
        unsound,  // the message makes no sense
        sound,    // no more than that
        complete, // all blocks are here: the content is to be delivered
    };
    BlockTaken on_block(const engine::Turn& turn, Node source, const Block& head, Bytes lead, Bytes data);
    /// An answer by name: it does not tell the relay that it is for. `bytes` is the whole of it.
    void on_answer(const engine::Turn& turn, Node source, const ReceivedAnswer& answer, Bytes bytes);
    /// False: the answer is not from a child that is waited for.
    bool take_answer(const engine::Turn& turn, Relay& relay, Node source, const ReceivedAnswer& answer);
    /// The relay of a stream is complete: answers, unless this node is the master.
    void end_relay(const engine::Turn& turn, Relay& relay);
    /// `node` has no blocks to give.
    void note_out(const engine::Turn& turn, const Name& name, Node node);

    /// The multicast will not come, in blocks or whole; Deliveries::give_up() has the rest. `why` is told to the
    /// master.
    void give_up(const engine::Turn& turn, const Name& name, std::uint64_t before, const std::string& why = {});
    /// The master is gone, and nothing has come of it for some time: those that have something have sent it long ago.
    void give_up_rest_of(const engine::Turn& turn, Node master);

    bool go_on(const engine::Turn& turn);
    void on_lost(const engine::Turn& turn, Node node);
    /// The answer of a child has not come for some time.
    void ask_for_answer(const engine::Turn& turn, const Name& name, Node child);
    /// Asks for blocks where none have come for some time. Adds the masters that something is missing of.
    void ask_for_blocks(const engine::Turn& turn, Set& masters);
    /// Some blocks wait for room.
    bool is_refused(const engine::Turn& turn) const;
    /// No blocks are left to send.
    bool is_done(const engine::Turn& turn) const;
    /// Lets go of streams that are over.
    void forget_ended(const engine::Turn& turn);
    /// The engine has ended.
    void clear(const engine::Turn&) noexcept { streams_.clear(); }

private:
    static constexpr std::size_t early_bytes_max = std::size_t{64} << 20;
    static constexpr std::size_t answered_max = 4096;
    static constexpr std::size_t answered_bytes_max = std::size_t{16} << 20;

    bool is_possible(const Block& block) const noexcept;
    Stream* join(const engine::Turn& turn, const Block& head, Lead lead);
    void become_member(const engine::Turn& turn, Stream& stream, Relay& relay);
    void answer_latecomer(const engine::Turn& turn, Node source, const Block& head, bool has_lead);
    void answer_again(const engine::Turn& turn, const Name& name, Node to);
    void take_early_answers(const engine::Turn& turn, Stream& stream);
    void adopt(const engine::Turn& turn, Stream& stream, Relay& relay, Node out, const Set& part);
    void on_lost_in(const engine::Turn& turn, Stream& stream, Node node);
    void resign(const engine::Turn& turn, const Stream& stream, const std::string& why);
    std::optional<Node> parent_in(const Stream& stream) const;
    Relay& relay_of(const Stream& stream) const noexcept { return *relays_.find(*stream.relay); }

    engine::Dispatcher& dispatcher_;
    const Topology& topology_;
    SendQueue& queue_;
    Relays& relays_;
    Deliveries& deliveries_;
    BlockSender sender_;
    std::map<Name, std::unique_ptr<Stream>> streams_;
    EarlyAnswers early_{early_bytes_max};
    RecentAnswers<Name> answered_{answered_max, answered_bytes_max};
};

} // namespace kumi::group
