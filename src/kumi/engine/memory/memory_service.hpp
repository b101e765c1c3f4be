#pragma once

// Puts, gets, copies and atomic operations on the memory of other nodes.
//
// The calling thread accesses the memory of this host by loads and stores, without the turn. For memory of other hosts
// there are messages: each carries at most one chunk of data, the notice travels with the last, and the target checks
// every place that a message names.

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/global_ptr.hpp"
#include "kumi/engine/memory/transfers.hpp"
#include "kumi/engine/memory/words.hpp"
#include "kumi/engine/operation/operations.hpp"
#include "kumi/engine/sending/late_puts.hpp"
#include "kumi/engine/service.hpp"

#include <atomic>
#include <span>
#include <string>
#include <vector>

namespace kumi::engine {

class Flags;
class MemoryMap;
class OperationService;
class Segments;

inline Place place_of(global_ptr<std::byte> where) noexcept { return {where.segment(), 0, where.offset()}; }

class MemoryService final : public Service {
public:
    using Where = global_ptr<std::byte>;

    MemoryService(Dispatcher& dispatcher, MemoryMap& map, Segments& segments, Flags& flags);

    Result<void> put(Where to, Bytes source, const Notice& notice);
    Result<void> start_put(Where to, Bytes source, const Notice& notice);
    Result<void> put_strided(Where to, const std::byte* source, const Strided& shape, const Notice& notice);
    Result<void> put_pieces(std::span<const PutPiece> pieces, const Notice& notice);
    Result<void> get(Where from, MutableBytes target);
    Result<void> start_get(Where from, MutableBytes target, Flag* flag);
    Result<void> get_strided(Where from, std::byte* target, const Strided& shape);
    Result<void> get_pieces(std::span<const GetPiece> pieces);
    Result<void> copy(Where from, Where to, std::size_t bytes, const Notice& notice);
    Result<std::uint64_t> atomic(Where word, const Atomic& what);

    /// True if this process accesses that memory, and carries out that notice, by loads and stores.
    bool reaches(Where where, const Notice& notice = {}) const noexcept;
    /// Something is put by messages to `node`. If this process reaches the node, notices go there by messages from now
    /// on: stores would overtake those that are under way.
    void note_put_by_messages(Node node) noexcept {
        has_sent_puts_[node].store(true, std::memory_order_relaxed); // for later calls of the same thread
    }
    /// Memory of this node is no longer there: what other nodes have asked to be copied from it fails.
    void end_copies_from(const Turn& turn, SegmentId segment);

    // ---- parts of the above that only begin, by messages: `operation` says who is told when it is done

    /// Requires that the place was checked and the target is not empty.
    OperationId begin_get(Where from, MutableBytes target, Operation operation);
    /// Requires that both places and the notice were checked. An error: never sent.
    Result<OperationId> begin_copy(Where from, Where to, std::size_t bytes, const Notice& notice,
                                   Operation&& operation);
    /// Checks the word. An error: never sent.
    Result<OperationId> begin_atomic(Where word, const Atomic& what, Operation&& operation);

    /// What goes out in pieces.
    Transfers& transfers() noexcept { return transfers_; }

    /// Stores data that another node has sent into a segment of this node, then applies the notice. An error: there is
    /// no such memory, or no such flag.
    Result<void> store(const Turn& turn, const Place& to, Bytes data, const Notice& notice);
    /// Checks a store as far as this node knows, which has a segment of the same size. `what` names the call in errors.
    Result<void> check_store(const char* what, Where to, std::size_t bytes, const Notice& notice) const;

private:
    Handled on_message(const Turn& turn, Node source, std::uint16_t kind, Bytes body) override;
    bool go_on(const Turn& turn) noexcept override;
    void on_lost(const Turn& turn, Node node) noexcept override;

    /// Memory of this node, as a message of `source` names it. Null: there is none. A landing belongs to one operation,
    /// and only the node that the operation waits for may write there.
    std::byte* find_place(const Turn& turn, Node source, const Place& place, std::uint64_t bytes) noexcept;
    /// Why find_place() has found nothing.
    std::string explain_place(const Place& place, std::uint64_t bytes) const;
    bool on_put(const Turn& turn, Node source, Bytes body);
    bool on_put_strided(const Turn& turn, Node source, Bytes body);
    Handled on_get(const Turn& turn, Node source, Bytes body);
    bool try_answer_get(const Turn& turn, Node source, const Get& what);
    void answer_get_of_blocks(const Turn& turn, Node source, const Get& what, const std::byte* start);
    bool on_got(const Turn& turn, Node source, Bytes body);
    bool on_atomic(const Turn& turn, Node source, Bytes body);
    bool on_copy(const Turn& turn, Node source, Bytes body);

    Result<void> put_by_messages(Where to, Bytes source, const Notice& notice);
    Result<OperationId> send_atomic(Where word, const Atomic& what, Operation&& operation);
    Error unaligned(Where word, const Atomic& what) const;
    Result<void> wait_for(OperationId id);
    /// Whether this process reaches the segments and the heap of `node`, if there is such a node.
    bool reaches_node(Node node) const noexcept;
    /// Why a handler cannot access memory that this process does not reach.
    Error not_in_handler(const char* what, Where where) const;

    Dispatcher& dispatcher_;
    OperationService& operations_;
    Port port_;
    MemoryMap& map_;
    Node nodes_;
    Segments& segments_;
    Flags& flags_;
    Transfers transfers_;
    LatePuts late_puts_{dispatcher_, port_};
    std::vector<std::atomic<bool>> has_sent_puts_; // by node: something was put there by messages
};

} // namespace kumi::engine
