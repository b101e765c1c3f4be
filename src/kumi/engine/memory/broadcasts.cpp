#include "kumi/engine/memory/broadcasts.hpp"

#include "kumi/engine/dispatcher.hpp"
#include "kumi/engine/memory/flags.hpp"
#include "kumi/engine/memory/memory_service.hpp"
#include "kumi/engine/memory/pieces_in_turns.hpp"
#include "kumi/engine/memory/segments.hpp"
#include "kumi/engine/memory/word_copy.hpp"

#include <algorithm>
#include <vector>

namespace kumi::engine {
namespace {

constexpr std::uint16_t broadcast_kind = kind_in_service(Kind::broadcast);

/// Pieces of one broadcast that are on their way through the tree.
constexpr unsigned broadcast_pieces_max = 8;
/// No further piece is begun while more than this waits for room.
constexpr std::size_t waiting_bytes_wanted = 4 << 20;

} // namespace

Broadcasts::Broadcasts(Dispatcher& dispatcher, Segments& segments, Flags& flags, MemoryService& memory)
    : dispatcher_(dispatcher), port_(dispatcher.add_service(*this)), segments_(segments), flags_(flags),
      memory_(memory) {}

Result<void> Broadcasts::start(global_ptr<std::byte> to, Bytes source, const Notice& notice) {
    const auto here = to.on(dispatcher_.node());
    if (to.segment() == 0) return error("broadcast: heaps are not alike; it goes to a segment");
    if (auto good = segments_.check("broadcast", here, source.size()); !good) return good;
    if (auto good = flags_.check("broadcast", dispatcher_.node(), notice); !good) return good;
    if (!discards_.load())
        if (auto done = memory_.put(here, source, notice); !done) return done;
    const Turn turn = dispatcher_.take_turn();
    sendings_.push_back({.place = {to.segment(), 0, to.offset()}, .source = source, .notice = notice});
    dispatcher_.operations().hold(turn);
    port_.want_progress(turn, true);
    if (go_on(turn)) dispatcher_.loop().wake_waiters(turn);
    if (!sendings_.empty()) dispatcher_.loop().on_duty(turn);
    return {};
}

bool Broadcasts::go_on(const Turn& turn) noexcept {
    const bool any = send_pieces_in_turns(
        sendings_, [&](Sending& sending) { return send_piece(turn, sending); },
        [&](const Sending& sending) {
            const bool is_over = sending.has_gone && sending.under_way == 0;
            if (is_over) dispatcher_.operations().release(turn);
            return is_over;
        });
    port_.want_progress(turn, !sendings_.empty());
    return any;
}

bool Broadcasts::send_piece(const Turn& turn, Sending& sending) {
    if (sending.has_gone || sending.under_way >= broadcast_pieces_max) return false;
    if (dispatcher_.outbox(turn).waiting_bytes() > waiting_bytes_wanted) return false;
    const std::uint64_t at = sending.next;
    const std::uint64_t bytes = std::min(memory_.transfers().piece_bytes(), sending.source.size() - at);
    const bool is_last = at + bytes == sending.source.size();
    Place place = sending.place;
    place.offset += at;
    ++sending.under_way;
    pass_on(turn, {no_operation, dispatcher_.node(), 0, place, is_last ? sending.notice : Notice{}},
            sending.source.subspan(at, bytes), [this, &sending](const Result<Bytes>& done) {
                --sending.under_way;
                if (!done) dispatcher_.operations().note_error(dispatcher_.take_turn(), done.error());
            });
    sending.next += bytes;
    sending.has_gone = is_last;
    return true;
}

/// Sends a piece to this node's children in the tree. `when_all_have_it` is called when all nodes below have it.
void Broadcasts::pass_on(const Turn& turn, Broadcast what, Bytes data, Operation::Answered when_all_have_it) {
    const Node nodes = dispatcher_.nodes();
    const Node rank = (dispatcher_.node() + nodes - what.root) % nodes;
    std::vector<Node> children;
    for (std::uint64_t bit = 1; bit < nodes; bit <<= 1)
        if (bit > rank && rank + bit < nodes) children.push_back(static_cast<Node>((rank + bit + what.root) % nodes));
    if (children.empty()) return when_all_have_it(Bytes{});
    what.operation = dispatcher_.operations().begin(turn, {.peer = children[0],
                                                           .is_of_many = true,
                                                           .what = "broadcast",
                                                           .left = children.size(),
                                                           .answered = std::move(when_all_have_it)});
    // The largest part of the tree first.
    for (auto child = children.rbegin(); child != children.rend(); ++child)
        if (!port_.queue(turn, *child, broadcast_kind, what, data))
            return dispatcher_.operations().fail(
                turn, what.operation,
                dispatcher_.is_lost(*child)
                    ? error("broadcast: {} has left, or is lost", dispatcher_.name_of(*child))
                    : error("broadcast: too much waits to be sent to {}", dispatcher_.name_of(*child)));
}

Handled Broadcasts::on_message(const Turn& turn, Node source, std::uint16_t kind, Bytes body) {
    return kind == broadcast_kind ? handled_if(on_broadcast(turn, source, body)) : Handled::no;
}

bool Broadcasts::on_broadcast(const Turn& turn, Node source, Bytes body) {
    Broadcast what;
    if (!read_value(body, what) || what.root >= dispatcher_.nodes() || (what.to.segment & landing_bit) != 0)
        return false;
    const Bytes data = body.subspan(sizeof what);
    std::string trouble;
    if (!discards_.load()) {
        std::byte* const where = memory_.find_place(turn, source, what.to, data.size());
        if (where == nullptr) trouble = memory_.explain_place(what.to, data.size());
        else copy_in(where, data);
        if (trouble.empty() && !flags_.apply(dispatcher_.node(), what.notice))
            trouble = "there is no such flag or counter; the data is there";
    }
    pass_on(turn, what, data, [this, source, asked = what.operation, trouble](const Result<Bytes>& done) {
        OperationService& operations = dispatcher_.operations();
        const Turn turn_now = dispatcher_.take_turn();
        if (!trouble.empty()) operations.refuse(turn_now, source, asked, fmt::format("broadcast: {}", trouble));
        else if (!done) operations.refuse(turn_now, source, asked, done.error().text());
        else operations.reply_done(turn_now, source, asked);
    });
    return true;
}

} // namespace kumi::engine
