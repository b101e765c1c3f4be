#include "kumi/engine/memory/transfers.hpp"

#include "kumi/base/sync/thread_number.hpp"
#include "kumi/engine/dispatcher.hpp"
#include "kumi/engine/memory/flags.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace kumi::engine {
namespace {

/// Requests to one node that transfers may have under way.
constexpr std::uint64_t transfer_pieces_max = requests_max * 3 / 4;
/// Pieces of one get: what the target may have to send at once.
constexpr std::uint64_t get_pieces_max = 16;
/// Transfers to one node that take turns; more wait in line.
constexpr std::size_t transfers_active_max = 16;
/// Pieces that a transfer sends in its turn.
constexpr int pieces_per_turn = 4;

} // namespace

Transfers::Transfers(Dispatcher& dispatcher, Port port) noexcept
    : dispatcher_(dispatcher), port_(port), piece_bytes_(std::min(chunk_bytes, dispatcher.message_bytes_max())) {}

void Transfers::start(Transfer transfer, bool is_in_background) {
    const Turn turn = dispatcher_.take_turn();
    transfer.held = dispatcher_.operations().hold(turn, "transfer");
    if (transfer.thread == 0) transfer.thread = base::thread_number();
    transfers_[transfer.node].push_back(std::move(transfer));
    if (send_pieces(turn)) dispatcher_.loop().wake_waiters(turn); // flags that other threads wait for may have been set
    port_.want_progress(turn, has_work());
    const bool needs_background = (is_in_background && !transfers_.empty()) || !handled_.empty();
    if (needs_background) dispatcher_.loop().on_duty(turn);
}

bool Transfers::go_on(const Turn& turn, TryAnswer try_answer) {
    bool any = answer_gets(turn, try_answer);
    any |= send_pieces(turn);
    // Only now, because what is told may start transfers. Not in start(): a continuation of a future must not run in a
    // thread that only starts something else, and may hold a mutex that the continuation takes.
    for (const OperationId id : std::exchange(handled_, {}))
        if (dispatcher_.operations().find(turn, id) != nullptr) dispatcher_.operations().complete(turn, id);
    port_.want_progress(turn, has_work());
    return any;
}

void Transfers::add_late_get(const Turn& turn, Node source, const Get& get) {
    late_gets_[source].push_back(get);
    port_.want_progress(turn, true);
    dispatcher_.loop().call_soon(turn);
}

/// True if answers were sent.
bool Transfers::answer_gets(const Turn& turn, TryAnswer try_answer) {
    bool any = false;
    for (auto late = late_gets_.begin(); late != late_gets_.end();) {
        auto& [source, gets] = *late;
        while (!gets.empty() && try_answer(source, gets.front())) {
            gets.pop_front();
            port_.note_handled(turn, source, sizeof(Get));
            any = true;
        }
        late = gets.empty() ? late_gets_.erase(late) : std::next(late);
    }
    return any;
}

/// True if pieces were sent, or transfers have come to their end.
bool Transfers::send_pieces(const Turn& turn) {
    bool any = false;
    for (auto node = transfers_.begin(); node != transfers_.end();) {
        any |= go_on_to(turn, node->second);
        if (node->second.empty()) node = transfers_.erase(node);
        else ++node;
    }
    return any;
}

/// Sends a few pieces of each of the oldest transfers in turn, so that none waits for another.
bool Transfers::go_on_to(const Turn& turn, List& transfers) {
    bool any = false;
    std::size_t active = 0;
    for (auto transfer = transfers.begin(); transfer != transfers.end() && active < transfers_active_max;) {
        for (int pieces = 0; pieces < pieces_per_turn && send_piece(turn, *transfer); ++pieces) any = true;
        if (finish(turn, *transfer)) {
            dispatcher_.operations().release(turn, transfer->held);
            transfer = transfers.erase(transfer);
            any = true;
        } else {
            active += transfer->has_gone ? 0 : 1; // what has gone only waits to be handled there
            ++transfer;
        }
    }
    return any;
}

void Transfers::give_up(const Turn& turn, Node lost) noexcept {
    late_gets_.erase(lost);
    if (const auto node = transfers_.find(lost); node != transfers_.end()) {
        for (const Transfer& transfer : node->second) {
            if (transfer.operation == no_operation) dispatcher_.operations().note_lost(turn, lost, transfer.thread);
            dispatcher_.operations().release(turn, transfer.held);
        }
        transfers_.erase(node);
    }
    port_.want_progress(turn, has_work());
}

std::optional<Transfer> Transfers::stop(const Turn& turn, Node node, base::FunctionRef<bool(const Transfer&)> is_it) {
    const auto to = transfers_.find(node);
    if (to == transfers_.end()) return std::nullopt;
    const auto found = std::ranges::find_if(to->second, is_it);
    if (found == to->second.end()) return std::nullopt;
    const Transfer stopped = *found;
    to->second.erase(found); // a list that is empty now goes with the next go_on(), which may be under way
    dispatcher_.operations().release(turn, stopped.held);
    dispatcher_.loop().wake_waiters(turn); // a thread in sync() may have waited for it
    return stopped;
}

std::vector<OperationId> Transfers::operations_from(const Turn&, SegmentId segment) const {
    std::vector<OperationId> found;
    for (const auto& [node, transfers] : transfers_)
        for (const Transfer& transfer : transfers)
            if (transfer.source_segment == segment && !transfer.has_gone) found.push_back(transfer.operation);
    return found;
}

bool Transfers::send_piece(const Turn& turn, Transfer& transfer) {
    if (transfer.has_gone) return false;
    const std::uint64_t bytes = std::min(piece_bytes_, transfer.bytes - transfer.next);
    const Outbox& outbox = dispatcher_.outbox(turn);
    if (outbox.credits().under_way(transfer.node) >= transfer_pieces_max) return false;
    const bool was_sent = transfer.kind == Transfer::Kind::put ? send_put_piece(turn, transfer, bytes)
                                                               : send_get_piece(turn, transfer, bytes);
    if (!was_sent) return false;
    transfer.next += bytes;
    transfer.has_gone = transfer.next == transfer.bytes;
    transfer.last_request = outbox.credits().requested(transfer.node);
    return true;
}

bool Transfers::send_put_piece(const Turn& turn, Transfer& transfer, std::uint64_t bytes) {
    // The program has cancelled it, or the target has refused it: the source must not be read any more.
    if (transfer.operation != no_operation && dispatcher_.operations().find(turn, transfer.operation) == nullptr)
        return transfer.next = transfer.bytes - bytes, true;
    const bool is_last = transfer.next + bytes == transfer.bytes;
    Place place = transfer.place;
    place.offset += transfer.next;
    const Put head{transfer.operation, place, is_last ? transfer.notice : Notice{}};
    const std::uint32_t thread = transfer.operation == no_operation ? transfer.thread : no_thread;
    return port_.try_request_for(turn, thread, transfer.node, kind_in_service(Kind::put), head,
                                 {transfer.source + transfer.next, bytes});
}

bool Transfers::send_get_piece(const Turn& turn, Transfer& transfer, std::uint64_t bytes) {
    const Operation* const operation = dispatcher_.operations().find(turn, transfer.operation);
    if (operation == nullptr) return transfer.next = transfer.bytes - bytes, true; // it has failed: ask for no more
    const std::uint64_t come = operation->bytes - operation->left;
    if (transfer.next - come >= get_pieces_max * piece_bytes_) return false;
    Place place = transfer.place;
    place.offset += transfer.next;
    const Get head{transfer.operation, place, bytes, 1, 0, transfer.next};
    return port_.try_request_for(turn, no_thread, transfer.node, kind_in_service(Kind::get), head);
}

/// Tells whoever waits for this transfer how far it is. True: there is nothing more to do for it.
bool Transfers::finish(const Turn& turn, Transfer& transfer) {
    if (!transfer.has_gone) return false;
    const bool is_put = transfer.kind == Transfer::Kind::put;
    // the target waits for the notice
    if (is_put && transfer.notice.kind != Notice::Kind::none) dispatcher_.progress().flush();
    if (transfer.flag != nullptr) store_flag(*std::exchange(transfer.flag, nullptr), transfer.flag_value);
    OperationService& operations = dispatcher_.operations();
    if (transfer.want.index != no_operation.index)
        operations.reply_done(turn, transfer.node, std::exchange(transfer.want, no_operation), transfer.bytes);
    if (!is_put) return true; // the operation knows how much has come
    if (transfer.operation == no_operation) return true;
    if (operations.find(turn, transfer.operation) == nullptr) return true; // failed
    if (dispatcher_.outbox(turn).credits().handled(transfer.node) < transfer.last_request) {
        dispatcher_.outbox(turn).ask_for_credit(transfer.node);
        return false;
    }
    handled_.push_back(transfer.operation);
    return true;
}

} // namespace kumi::engine
