// The core's part about what goes out in pieces, in the background: large puts, gets, broadcasts, and what is offered
// by key. Pieces of all transfers take turns, and leave some of each node's requests to those who send small ones.

#include "kumi/engine/core.hpp"
#include "kumi/engine/outgoing.hpp"
#include "kumi/engine/word_copy.hpp"

#include <algorithm>

namespace kumi::engine {
namespace {

/// Requests to one node that transfers may have under way.
constexpr std::uint64_t pieces_max = requests_max * 3 / 4;
/// Pieces of one get: what the target may have to send at once.
constexpr std::uint64_t get_pieces_max = 16;
/// Transfers to one node that take turns; more wait in line.
constexpr std::size_t transfers_active_max = 16;
/// Pieces of one broadcast that are on their way through the tree.
constexpr unsigned broadcast_pieces_max = 8;
/// What waits for room keeps further pieces from being begun.
constexpr std::size_t waiting_bytes_wanted = 4 << 20;

} // namespace

void Core::start_transfer(Transfer transfer, bool is_in_background) {
    const Turn turn(loop_);
    transfers_[transfer.node].push_back(std::move(transfer));
    if (go_on_transfers()) loop_.wake_waiters(turn); // others' flags may be among what was done
    if (!transfers_.empty() && is_in_background) loop_.on_duty(turn);
}

bool Core::go_on_transfers() {
    bool any = false;
    for (auto node = transfers_.begin(); node != transfers_.end();) {
        any |= go_on_transfers_to(node->second);
        if (node->second.empty()) node = transfers_.erase(node);
        else ++node;
    }
    return any;
}

/// Some pieces of each, as long as there is room; of those that came first, if they are many.
bool Core::go_on_transfers_to(std::list<Transfer>& transfers) {
    bool any = false;
    std::size_t active = 0;
    for (auto transfer = transfers.begin(); transfer != transfers.end() && active < transfers_active_max;) {
        for (int pieces = 0; pieces < 4 && send_piece(*transfer); ++pieces) any = true;
        if (is_over(*transfer)) {
            transfer = transfers.erase(transfer);
            any = true;
        } else {
            ++transfer;
            ++active;
        }
    }
    return any;
}

bool Core::send_piece(Transfer& transfer) {
    if (transfer.has_gone) return false;
    const std::uint64_t bytes = std::min<std::uint64_t>(chunk_bytes_, transfer.bytes - transfer.next);
    const Node to = transfer.node;
    if (transfer.kind != Transfer::Kind::broadcast && outbox_.requested(to) - outbox_.handled(to) >= pieces_max)
        return false;
    bool was_sent = false;
    switch (transfer.kind) {
    case Transfer::Kind::put: was_sent = send_put_piece(transfer, bytes); break;
    case Transfer::Kind::get: was_sent = send_get_piece(transfer, bytes); break;
    case Transfer::Kind::broadcast: was_sent = send_broadcast_piece(transfer, bytes); break;
    }
    if (!was_sent) return false;
    transfer.next += bytes;
    transfer.has_gone = transfer.next == transfer.bytes;
    if (transfer.kind != Transfer::Kind::broadcast) transfer.last_request = outbox_.requested(to);
    return true;
}

bool Core::send_put_piece(Transfer& transfer, std::uint64_t bytes) {
    const bool is_last = transfer.next + bytes == transfer.bytes;
    Place place = transfer.place;
    place.offset += transfer.next;
    auto head = outgoing(Kind::put, true, Put{transfer.operation, place, is_last ? transfer.notice : Notice{}});
    return outbox_.try_request(transfer.node, head.bytes(), {transfer.source + transfer.next, bytes});
}

bool Core::send_get_piece(Transfer& transfer, std::uint64_t bytes) {
    const Operation* const operation = operations_.find(transfer.operation);
    if (operation == nullptr) return transfer.next = transfer.bytes - bytes, true; // it has failed: no more questions
    const std::uint64_t come = operation->bytes - operation->left;
    if (transfer.next - come >= get_pieces_max * chunk_bytes_) return false;
    Place place = transfer.place;
    place.offset += transfer.next;
    auto head = outgoing(Kind::get, true, Get{transfer.operation, place, bytes, 1, 0, transfer.next});
    return outbox_.try_request(transfer.node, head.bytes());
}

/// Nothing more to do for it; tells whom it concerns.
bool Core::is_over(Transfer& transfer) {
    if (!transfer.has_gone) return false;
    // somebody waits for it
    if (transfer.kind == Transfer::Kind::put && transfer.notice.kind != Notice::Kind::none) channel_.flush();
    if (transfer.flag != nullptr) set_flag_here(*std::exchange(transfer.flag, nullptr), transfer.flag_value);
    if (transfer.want.index != no_operation.index)
        reply_done(transfer.node, std::exchange(transfer.want, no_operation), transfer.bytes);
    switch (transfer.kind) {
    case Transfer::Kind::get: return true; // its operation knows the rest
    case Transfer::Kind::broadcast: return transfer.under_way == 0;
    case Transfer::Kind::put: break;
    }
    if (transfer.operation == no_operation) return true;
    if (operations_.find(transfer.operation) == nullptr) return true; // failed
    if (outbox_.handled(transfer.node) < transfer.last_request) {
        outbox_.ask_for_credit(transfer.node);
        return false;
    }
    complete(transfer.operation);
    return true;
}

// ---- rendezvous

Result<void> Core::offer(std::uint64_t key, Node to, Bytes source, Flag* flag, Flag value) {
    if (auto known = check_node("offering to", to); !known) return known;
    const Turn turn(loop_);
    if (flag != nullptr && load_flag(*flag) == value) set_flag_here(*flag, value == 0 ? 1 : 0);
    const Meeting meeting{key, to};
    const Offer offered{source, flag, value};
    const auto wanted = wants_.find(meeting);
    if (wanted == wants_.end()) {
        offers_[meeting].push_back(offered);
        return {};
    }
    const Want want = wanted->second.front();
    wanted->second.pop_front();
    --wants_waiting_;
    if (wanted->second.empty()) wants_.erase(wanted);
    give(to, want, offered);
    return {};
}

Result<void> Core::accept(std::uint64_t key, Node from, MutableBytes target, Flag* flag, Flag value) {
    if (auto known = check_node("accepting from", from); !known) return known;
    OperationId id;
    {
        const Turn turn(loop_);
        if (flag != nullptr && load_flag(*flag) == value) set_flag_here(*flag, value == 0 ? 1 : 0);
        id = operations_.begin({.peer = from,
                                .what = "accept",
                                .target = target.data(),
                                .bytes = target.size(),
                                .flag = flag,
                                .flag_value = value,
                                .is_for_sync = false});
    }
    const Place landing{id.index | landing_bit, id.generation, 0};
    auto sent = request(Kind::want, from, Want{key, landing, target.size(), id});
    if (!sent) {
        const Turn turn(loop_);
        operations_.end(id);
    }
    return sent;
}

bool Core::on_want(Node source, Bytes rest) {
    Want want;
    if (!read_value(rest, want) || (want.to.segment & landing_bit) == 0) return false;
    const Meeting meeting{want.key, source};
    const auto offered = offers_.find(meeting);
    if (offered == offers_.end()) {
        if (wants_waiting_ >= wants_max) {
            refuse(source, want.operation, "accept: too much is waited for here already");
            return true;
        }
        ++wants_waiting_;
        wants_[meeting].push_back(want);
        return true;
    }
    const Offer offer = offered->second.front();
    offered->second.pop_front();
    if (offered->second.empty()) offers_.erase(offered);
    give(source, want, offer);
    return true;
}

/// Both sides are there.
void Core::give(Node to, const Want& want, const Offer& offer) {
    if (offer.source.size() > want.bytes) {
        refuse(to, want.operation,
               fmt::format("accept: {} bytes are offered under key {}, and there is room for {}", offer.source.size(),
                           want.key, want.bytes));
        note_error(error("offer of {} bytes under key {}: {} has room for {}", offer.source.size(), want.key,
                         name_of(to), want.bytes));
        return;
    }
    Transfer transfer{.node = to,
                      .place = want.to,
                      .source = offer.source.data(),
                      .bytes = offer.source.size(),
                      .want = want.operation,
                      .flag = offer.flag,
                      .flag_value = offer.value};
    transfer.has_gone = transfer.bytes == 0;
    start_transfer(std::move(transfer));
}

// ---- broadcast

Result<void> Core::broadcast(Where to, Bytes source, const Notice& notice) {
    const Where here = to.on(node());
    if (to.segment() == 0) return error("broadcast: heaps are not alike; it goes to a segment");
    if (auto good = check("broadcast", here, source.size()); !good) return good;
    if (auto good = check_notice("broadcast", node(), notice); !good) return good;
    if (!discards_.load())
        if (auto done = put(here, source, notice); !done) return done;
    start_transfer({.kind = Transfer::Kind::broadcast,
                    .node = node(),
                    .place = {to.segment(), 0, to.offset()},
                    .source = source.data(),
                    .bytes = source.size(),
                    .notice = notice});
    return {};
}

bool Core::send_broadcast_piece(Transfer& transfer, std::uint64_t bytes) {
    if (transfer.under_way >= broadcast_pieces_max || outbox_.waiting_bytes() > waiting_bytes_wanted) return false;
    const bool is_last = transfer.next + bytes == transfer.bytes;
    Place place = transfer.place;
    place.offset += transfer.next;
    ++transfer.under_way;
    pass_on({no_operation, node(), 0, place, is_last ? transfer.notice : Notice{}},
            {transfer.source + transfer.next, bytes}, [this, &transfer](const Result<Bytes>& done) {
                --transfer.under_way;
                if (!done) note_error(done.error());
            });
    return true;
}

/// Sends it to this node's children in a binomial tree, and tells when all below have it.
void Core::pass_on(Broadcast what, Bytes data, Operation::Answered when_all_have_it) {
    const Node rank = (node() + nodes() - what.root) % nodes();
    std::vector<Node> children;
    for (std::uint64_t bit = 1; bit < nodes(); bit <<= 1)
        if (bit > rank && rank + bit < nodes())
            children.push_back(static_cast<Node>((rank + bit + what.root) % nodes()));
    if (children.empty()) return when_all_have_it(Bytes{});
    what.operation = operations_.begin({.peer = children[0],
                                        .is_of_many = true,
                                        .what = "broadcast",
                                        .left = children.size(),
                                        .answered = std::move(when_all_have_it)});
    auto head = outgoing(Kind::broadcast, true, what);
    // The largest part of the tree first.
    for (auto child = children.rbegin(); child != children.rend(); ++child)
        if (!outbox_.request(*child, head.bytes(), data))
            return fail(what.operation, channel_.lost(*child)
                                            ? error("broadcast: {} has left, or is lost", name_of(*child))
                                            : error("broadcast: too much waits to be sent to {}", name_of(*child)));
}

bool Core::on_broadcast(Node source, Bytes rest) {
    Broadcast what;
    if (!read_value(rest, what) || what.root >= nodes() || (what.to.segment & landing_bit) != 0) return false;
    const Bytes data = rest.subspan(sizeof what);
    std::string trouble;
    if (!discards_.load()) {
        std::byte* const where = find_place(source, what.to, data.size());
        if (where == nullptr) trouble = explain_place(what.to, data.size());
        else copy_in(where, data);
        if (trouble.empty() && !apply_notice(node(), what.notice))
            trouble = "there is no such flag or counter; the data is there";
    }
    pass_on(what, data, [this, source, asked = what.operation, trouble](const Result<Bytes>& done) {
        if (!trouble.empty()) refuse(source, asked, fmt::format("broadcast: {}", trouble));
        else if (!done) refuse(source, asked, done.error().text());
        else reply_done(source, asked, 0);
    });
    return true;
}

} // namespace kumi::engine
