#pragma once

// Large puts and gets go out in pieces, in the background, as there is room. Pieces of all transfers to one node take
// turns, and leave some of the requests that the node takes to small messages.
//
// So do answers to gets of other nodes. An answer that finds no room is not copied: the get waits, and its data is read
// when there is room. Until then it takes one of its sender's credits, so no more wait than senders have credits.

#include "kumi/base/function_ref.hpp"
#include "kumi/engine/memory/words.hpp"
#include "kumi/engine/service.hpp"
#include "kumi/engine/wire.hpp"

#include <deque>
#include <list>
#include <map>
#include <optional>
#include <vector>

namespace kumi::engine {

struct Transfer {
    enum class Kind { put, get };

    Kind kind = Kind::put;
    Node node = 0; // where to, or where from
    Place place{}; // there
    const std::byte* source = nullptr;
    std::uint64_t bytes = 0;
    std::uint64_t next = 0; // the first byte that has not gone
    bool has_gone = false;  // all of it
    Notice notice{};
    OperationId operation = no_operation; // to be completed when all of it has been handled there
    std::uint64_t last_request = 0;
    OperationId want = no_operation; // of the node where it goes, which is to be told how much it was
    Flag* flag = nullptr;            // to be set when the source may be changed
    Flag flag_value = 1;
    OperationId held = no_operation; // for sync(); set by Transfers
    std::uint32_t thread = 0;        // base::thread_number() of the thread that began it; 0: set by Transfers
    std::uint64_t offer = 0;         // the number of the offer that it carries out; 0: none
    SegmentId source_segment = 0;    // of this node, which another node has asked to be copied; 0: none, or the heap
};

class Transfers {
public:
    /// `port` is that of the remote memory: pieces are its puts and gets.
    Transfers(Dispatcher& dispatcher, Port port) noexcept;

    /// `is_in_background`: no thread waits for it, so the background has to go on with it.
    void start(Transfer transfer, bool is_in_background = true);
    /// Sends a get's answer. False: there is no room now.
    using TryAnswer = base::FunctionRef<bool(Node source, const Get& get)>;
    /// A get of `source` waits until its answer finds room.
    void add_late_get(const Turn& turn, Node source, const Get& get);
    /// Gets of `source` wait: the next one waits behind them.
    bool has_late_gets(const Turn&, Node source) const noexcept { return late_gets_.contains(source); }

    /// Sends pieces and answers for which there is room. True: some were sent.
    bool go_on(const Turn& turn, TryAnswer try_answer);
    bool has_any(const Turn&) const noexcept { return !transfers_.empty(); }
    bool has_any_to(const Turn&, Node node) const noexcept { return transfers_.contains(node); }
    /// Drops all transfers to a node that is lost, and its gets.
    void give_up(const Turn& turn, Node lost) noexcept;

    /// Stops the first transfer to `node` that `is_it(transfer)` says yes to: its source is not read any more. Nothing:
    /// there is none, or all of it has gone.
    std::optional<Transfer> stop(const Turn& turn, Node node, base::FunctionRef<bool(const Transfer&)> is_it);

    /// The operations of transfers that have yet to read a segment of this node for other nodes.
    std::vector<OperationId> operations_from(const Turn& turn, SegmentId segment) const;

    /// Data bytes of one message.
    std::uint64_t piece_bytes() const noexcept { return piece_bytes_; }

private:
    using List = std::list<Transfer>;

    bool has_work() const noexcept { return !transfers_.empty() || !handled_.empty() || !late_gets_.empty(); }
    bool answer_gets(const Turn& turn, TryAnswer try_answer);
    bool send_pieces(const Turn& turn);
    bool go_on_to(const Turn& turn, List& transfers);
    bool send_piece(const Turn& turn, Transfer& transfer);
    bool send_put_piece(const Turn& turn, Transfer& transfer, std::uint64_t bytes);
    bool send_get_piece(const Turn& turn, Transfer& transfer, std::uint64_t bytes);
    bool finish(const Turn& turn, Transfer& transfer);

    Dispatcher& dispatcher_;
    Port port_;
    std::uint64_t piece_bytes_;
    std::map<Node, List> transfers_;   // by the other node
    std::vector<OperationId> handled_; // operations of transfers that are done, to be completed by go_on()
    std::map<Node, std::deque<Get>> late_gets_; // by the node that asks; no list is empty
};

} // namespace kumi::engine
