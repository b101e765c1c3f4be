#include "kumi/engine/memory/memory_service.hpp"

#include "kumi/engine/dispatcher.hpp"
#include "kumi/engine/memory/atomic_word.hpp"
#include "kumi/engine/memory/flags.hpp"
#include "kumi/engine/memory/segments.hpp"
#include "kumi/engine/memory/memory_map.hpp"
#include "kumi/engine/memory/word_copy.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

namespace kumi::engine {
namespace {

constexpr std::uint16_t put_kind = kind_in_service(Kind::put);
constexpr std::uint16_t put_strided_kind = kind_in_service(Kind::put_strided);
constexpr std::uint16_t get_kind = kind_in_service(Kind::get);
constexpr std::uint16_t got_kind = kind_in_service(Kind::got);
constexpr std::uint16_t atomic_kind = kind_in_service(Kind::atomic);
constexpr std::uint16_t copy_kind = kind_in_service(Kind::copy);

/// How far blocks reach: from the lowest byte, before `start` where the stride is negative, to the end of the highest.
struct Reach {
    std::uint64_t before = 0;
    std::uint64_t bytes = 0;
    bool is_sound = false;
};
Reach reach_of(std::uint64_t block_bytes, std::uint64_t count, std::int64_t stride) noexcept {
    constexpr std::uint64_t most = std::uint64_t{1} << 48; // more addresses than there are
    if (count == 0 || block_bytes == 0) return {0, 0, true};
    const std::uint64_t step = stride < 0 ? 0 - static_cast<std::uint64_t>(stride) : static_cast<std::uint64_t>(stride);
    if (block_bytes > most || count > most || (step != 0 && count - 1 > most / step)) return {};
    const std::uint64_t span = (count - 1) * step;
    return {stride < 0 ? span : 0, span + block_bytes, true};
}

std::string explain_notice(const Notice& notice) {
    return fmt::format("there is no flag or counter at {} of segment {}; the data is there", notice.offset,
                       notice.segment);
}

} // namespace

MemoryService::MemoryService(Dispatcher& dispatcher, MemoryMap& map, Segments& segments, Flags& flags)
    : dispatcher_(dispatcher), operations_(dispatcher.operations()), port_(dispatcher.add_service(*this)), map_(map),
      nodes_(dispatcher.nodes()), segments_(segments), flags_(flags), transfers_(dispatcher, port_),
      has_sent_puts_(dispatcher.nodes()) {}

Handled MemoryService::on_message(const Turn& turn, Node source, std::uint16_t kind, Bytes body) {
    switch (kind) {
    case put_kind: return handled_if(on_put(turn, source, body));
    case put_strided_kind: return handled_if(on_put_strided(turn, source, body));
    case get_kind: return on_get(turn, source, body);
    case got_kind: return handled_if(on_got(turn, source, body));
    case atomic_kind: return handled_if(on_atomic(turn, source, body));
    case copy_kind: return handled_if(on_copy(turn, source, body));
    default: return Handled::no;
    }
}

bool MemoryService::go_on(const Turn& turn) noexcept {
    return transfers_.go_on(
        turn, [&](Node source, const Get& get) { return try_answer_get(turn, source, get); });
}

void MemoryService::on_lost(const Turn& turn, Node node) noexcept {
    map_.forget(node);
    late_puts_.on_lost(turn);
    transfers_.give_up(turn, node);
}

inline bool MemoryService::reaches_node(Node node) const noexcept { return node < nodes_ && map_.reaches(node); }

bool MemoryService::reaches(Where where, const Notice& notice) const noexcept {
    const Node node = where.node();
    if (!reaches_node(node)) return false;
    if (is_exposed(where.segment() | notice.segment)) [[unlikely]]
        return node == dispatcher_.node();
    // Relaxed: a thread that has put something there by messages has stored this itself.
    return notice.kind == Notice::Kind::none || !has_sent_puts_[node].load(std::memory_order_relaxed);
}

Result<void> MemoryService::wait_for(OperationId id) {
    const auto done = operations_.wait_for(id);
    return done ? Result<void>() : Result<void>(done.error());
}

Error MemoryService::not_in_handler(const char* what, Where where) const {
    const Node node = where.node();
    if (map_.reaches(node)) // but not this memory
        return error(ErrorCode::misuse,
                     "{}: a handler must not wait for {}, whose exposed memory is reached by messages; the forms of "
                     "async() do not wait",
                     what, dispatcher_.name_of(node));
    if (map_.is_mapped(node)) // it was reached until it was lost
        return error(ErrorCode::node_lost, "{}: {} has left, or is lost", what, dispatcher_.name_of(node));
    return error(ErrorCode::misuse,
                 "{}: a handler must not wait for {}, which is on another host; the forms of async() do not wait", what,
                 dispatcher_.name_of(node));
}

// ---- put

Result<void> MemoryService::put(Where to, Bytes source, const Notice& notice) {
    // The usual case has as few steps as can be: a put takes some 10 ns.
    if (!reaches_node(to.node())) return put_by_messages(to, source, notice);
    std::byte* const where = map_.find(to.node(), to.segment(), to.offset(), source.size());
    if (where == nullptr) [[unlikely]]
        return put_by_messages(to, source, notice); // for memory that another node exposes; otherwise an error
    copy_in(where, source);
    if (notice.kind == Notice::Kind::none) return {};
    if (!reaches(to, notice)) [[unlikely]]
        return put_by_messages(to, {}, notice); // behind earlier notices to that node, which went by messages
    if (!flags_.apply(to.node(), notice)) [[unlikely]]
        return flags_.explain("put", to.node(), notice);
    return {};
}

/// Apart from put(), which then needs few registers for memory of this host.
Result<void> MemoryService::put_by_messages(Where to, Bytes source, const Notice& notice) {
    if (auto good = segments_.check("put", to, source.size()); !good) return good;
    if (auto good = flags_.check("put", to.node(), notice); !good) return good;
    note_put_by_messages(to.node());
    for (std::size_t at = 0;;) {
        const std::size_t bytes = std::min(transfers_.piece_bytes(), source.size() - at);
        const bool is_last = at + bytes == source.size();
        const Put head{no_operation, {to.segment(), 0, to.offset() + at}, is_last ? notice : Notice{}};
        if (is_last && at == 0 && late_puts_.try_leave(to.node(), head, source)) return {};
        if (auto sent = port_.request(to.node(), put_kind, head, source.subspan(at, bytes)); !sent) return sent;
        at += bytes;
        if (!is_last) continue;
        // The target waits for the notice, and this thread may not call again for long.
        if (notice.kind != Notice::Kind::none) dispatcher_.progress().flush();
        return {};
    }
}

Result<void> MemoryService::start_put(Where to, Bytes source, const Notice& notice) {
    if (auto good = segments_.check("put", to, source.size()); !good) return good;
    if (auto good = flags_.check("put", to.node(), notice); !good) return good;
    if (reaches(to, notice) || source.size() <= 1024) return put(to, source, notice);
    note_put_by_messages(to.node());
    transfers_.start(
        {.node = to.node(), .place = place_of(to), .source = source.data(), .bytes = source.size(), .notice = notice});
    return {};
}

Result<void> MemoryService::put_pieces(std::span<const PutPiece> pieces, const Notice& notice) {
    for (const PutPiece& piece : pieces)
        if (piece.to.node() != pieces.front().to.node())
            return error(ErrorCode::misuse, "put of many pieces: they go to node {} and to node {}, and must go to one",
                         pieces.front().to.node(), piece.to.node());
    for (std::size_t i = 0; i < pieces.size(); ++i)
        if (auto done = put(pieces[i].to, pieces[i].source, i + 1 == pieces.size() ? notice : Notice{}); !done)
            return done;
    return {};
}

bool MemoryService::on_put(const Turn& turn, Node source, Bytes body) {
    Put what;
    if (!read_value(body, what)) return false;
    const Bytes data = body.subspan(sizeof what);
    std::byte* const where = find_place(turn, source, what.to, data.size());
    if (where == nullptr) {
        if (dispatcher_.rendezvous().is_withdrawn(turn, source, what.to)) return true;
        operations_.refuse(turn, source, what.operation,
                           error(ErrorCode::not_found, "put: {}", explain_place(what.to, data.size())));
        return true;
    }
    copy_in(where, data);
    if (!flags_.apply(dispatcher_.node(), what.notice))
        operations_.refuse(turn, source, what.operation,
                           error(ErrorCode::not_found, "put: {}", explain_notice(what.notice)));
    return true;
}

Result<void> MemoryService::check_store(const char* what, Where to, std::size_t bytes, const Notice& notice) const {
    const Node self = dispatcher_.node();
    if (to.segment() == 0 || is_exposed(to.segment()))
        return error(ErrorCode::misuse,
                     "{}: heaps and exposed memory are not alike on all nodes; give a place for each node, or a place "
                     "in a segment",
                     what);
    if (auto good = segments_.check(what, to.on(self), bytes); !good) return good;
    return flags_.check(what, self, notice);
}

Result<void> MemoryService::store(const Turn& turn, const Place& to, Bytes data, const Notice& notice) {
    const Node self = dispatcher_.node();
    std::byte* const where =
        (to.segment & landing_bit) != 0 ? nullptr : find_place(turn, self, to, data.size());
    if (where == nullptr) return Error(ErrorCode::not_found, explain_place(to, data.size()));
    copy_in(where, data);
    if (!flags_.apply(self, notice)) return Error(ErrorCode::not_found, explain_notice(notice));
    return {};
}

std::byte* MemoryService::find_place(const Turn& turn, Node source, const Place& place, std::uint64_t bytes) noexcept {
    if ((place.segment & landing_bit) == 0) return map_.find(dispatcher_.node(), place.segment, place.offset, bytes);
    const Operation* const operation = operations_.find(turn, {place.segment & ~landing_bit, place.generation});
    if (operation == nullptr || !operation->is_from(source)) return nullptr;
    if (bytes > operation->bytes || place.offset > operation->bytes - bytes) return nullptr;
    if (operation->block_bytes != 0) return nullptr; // its memory is not in one piece
    return operation->target + place.offset;
}

std::string MemoryService::explain_place(const Place& place, std::uint64_t bytes) const {
    if ((place.segment & landing_bit) != 0) return "nothing is expected there";
    return map_.explain(dispatcher_.node(), place.segment, place.offset, bytes);
}

// ---- get

Result<void> MemoryService::get(Where from, MutableBytes target) {
    if (reaches_node(from.node())) {
        const std::byte* const where = map_.find(from.node(), from.segment(), from.offset(), target.size());
        if (where != nullptr) [[likely]] {
            copy_out(target.data(), {where, target.size()});
            return {};
        }
    }
    if (auto good = segments_.check("get", from, target.size()); !good) return good;
    if (dispatcher_.progress().in_handler()) return not_in_handler("get", from);
    if (target.empty()) return {};
    const OperationId id = begin_get(from, target, {.is_waited_for = true});
    return wait_for(id);
}

Result<void> MemoryService::start_get(Where from, MutableBytes target, Flag* flag) {
    if (flag != nullptr) store_flag(*flag, 0);
    if (from.node() < dispatcher_.nodes() && (reaches(from) || target.empty())) {
        auto got = get(from, target);
        if (got && flag != nullptr) store_flag(*flag, 1);
        return got;
    }
    if (auto good = segments_.check("get", from, target.size()); !good) return good;
    begin_get(from, target, {.flag = flag});
    return {};
}

OperationId MemoryService::begin_get(Where from, MutableBytes target, Operation operation) {
    operation.peer = from.node();
    operation.what = "get";
    operation.target = target.data();
    operation.bytes = operation.left = target.size();
    const bool is_waited_for = operation.is_waited_for;
    const Turn turn = dispatcher_.take_turn();
    const OperationId id = operations_.begin(turn, std::move(operation));
    transfers_.start({.kind = Transfer::Kind::get,
                      .node = from.node(),
                      .place = place_of(from),
                      .bytes = target.size(),
                      .operation = id},
                     !is_waited_for);
    return id;
}

Handled MemoryService::on_get(const Turn& turn, Node source, Bytes body) {
    Get what;
    if (!read_value(body, what)) return Handled::no;
    const Reach reach = reach_of(what.bytes, what.count, what.stride);
    if (!reach.is_sound || what.from.offset < reach.before || what.bytes > transfers_.piece_bytes() ||
        what.count > transfers_.piece_bytes() || what.bytes * what.count > transfers_.piece_bytes())
        return Handled::no;
    if (!transfers_.has_late_gets(turn, source) && try_answer_get(turn, source, what)) return Handled::yes;
    transfers_.add_late_get(turn, source, what);
    return Handled::later;
}

/// Answers a sound get, or refuses it: the memory may have gone while the get waited. False: there is no room now.
bool MemoryService::try_answer_get(const Turn& turn, Node source, const Get& what) {
    const Reach reach = reach_of(what.bytes, what.count, what.stride);
    const Place lowest{what.from.segment, what.from.generation, what.from.offset - reach.before};
    const std::byte* const where =
        (what.from.segment & landing_bit) != 0 ? nullptr : find_place(turn, source, lowest, reach.bytes);
    if (where == nullptr) {
        operations_.refuse(turn, source, what.operation,
                           error(ErrorCode::not_found, "get: {}", explain_place(lowest, reach.bytes)));
        return true;
    }
    const std::byte* const start = where + reach.before;
    if (what.count != 1) return answer_get_of_blocks(turn, source, what, start), true;
    std::array<std::byte, 8> word;
    const bool is_word = what.bytes <= word.size();
    if (is_word) copy_out(word.data(), {start, what.bytes});
    const Got head{what.operation, what.position};
    return port_.try_reply(turn, source, got_kind, head, {is_word ? word.data() : start, what.bytes});
}

void MemoryService::answer_get_of_blocks(const Turn& turn, Node source, const Get& what, const std::byte* start) {
    std::vector<std::byte> blocks(what.bytes * what.count);
    for (std::uint64_t i = 0; i < what.count && what.bytes != 0; ++i)
        std::memcpy(blocks.data() + i * what.bytes, start + static_cast<std::int64_t>(i) * what.stride, what.bytes);
    port_.reply(turn, source, got_kind, Got{what.operation, what.position}, blocks);
}

bool MemoryService::on_got(const Turn& turn, Node source, Bytes body) {
    Got what;
    if (!read_value(body, what)) return false;
    const Bytes data = body.subspan(sizeof what);
    Operation* const operation = operations_.find(turn, what.operation);
    if (operation == nullptr) return true;                                         // it has failed already
    if (operation->target == nullptr || !operation->is_from(source)) return false; // no data is to come for it
    if (data.size() > operation->left || what.position > operation->bytes - data.size()) return false;
    if (operation->block_bytes == 0) {
        kumi::copy_bytes(operation->target + what.position, data);
    } else {
        if (what.position % operation->block_bytes != 0 || data.size() % operation->block_bytes != 0) return false;
        auto index = static_cast<std::int64_t>(what.position / operation->block_bytes);
        for (std::size_t at = 0; at < data.size(); at += operation->block_bytes, ++index)
            std::memcpy(operation->target + index * operation->stride, data.data() + at, operation->block_bytes);
    }
    operation->left -= data.size();
    if (operation->left == 0) operations_.complete(turn, what.operation);
    return true;
}

Result<void> MemoryService::get_pieces(std::span<const GetPiece> pieces) {
    // All are under way at once, and waited for together.
    std::vector<OperationId> begun;
    Result<void> outcome;
    for (const GetPiece& piece : pieces) {
        const bool is_near = reaches(piece.from);
        if (is_near || piece.target.empty() || dispatcher_.progress().in_handler())
            outcome = get(piece.from, piece.target);
        else if (outcome = segments_.check("get", piece.from, piece.target.size()); outcome)
            begun.push_back(begin_get(piece.from, piece.target, {.is_waited_for = true}));
        if (!outcome) break;
    }
    for (const OperationId id : begun)
        if (auto got = wait_for(id); !got && outcome) outcome = std::move(got);
    return outcome;
}

// ---- copy

Result<void> MemoryService::copy(Where from, Where to, std::size_t bytes, const Notice& notice) {
    if (auto good = segments_.check("copy from", from, bytes); !good) return good;
    if (auto good = segments_.check("copy to", to, bytes); !good) return good;
    if (auto good = flags_.check("copy", to.node(), notice); !good) return good;
    if (reaches(from)) {
        const std::byte* const source = map_.find(from.node(), from.segment(), from.offset(), bytes);
        if (source == nullptr) return segments_.check("copy from", from, bytes); // another thread has concealed it
        return start_put(to, {source, bytes}, notice);
    }
    if (reaches(to, notice) && bytes != 0) {
        std::byte* const target = map_.find(to.node(), to.segment(), to.offset(), bytes);
        if (target == nullptr) return segments_.check("copy to", to, bytes); // as above
        begin_get(from, {target, bytes}, {.answered = [this, to, notice](const Result<Bytes>& done) {
                      const Turn turn = dispatcher_.take_turn();
                      if (!done) return operations_.note_error(turn, done.error());
                      if (!flags_.apply(to.node(), notice))
                          operations_.note_error(turn, flags_.explain("copy", to.node(), notice));
                  }});
        return {};
    }
    const auto begun = begin_copy(from, to, bytes, notice, {});
    return begun ? Result<void>() : Result<void>(begun.error());
}

Result<OperationId> MemoryService::begin_copy(Where from, Where to, std::size_t bytes, const Notice& notice,
                                              Operation&& operation) {
    operation.peer = from.node();
    operation.what = "copy";
    const OperationId id = operations_.begin(std::move(operation));
    const Copy head{id, place_of(from), to.node(), 0, place_of(to), bytes, notice};
    if (auto sent = port_.request(from.node(), copy_kind, head); !sent) {
        operations_.end(id);
        return sent.error();
    }
    return id;
}

bool MemoryService::on_copy(const Turn& turn, Node source, Bytes body) {
    Copy what;
    if (!read_value(body, what) || what.target >= dispatcher_.nodes() || (what.from.segment & landing_bit) != 0 ||
        (what.to.segment & landing_bit) != 0)
        return false;
    const std::byte* const from = find_place(turn, source, what.from, what.bytes);
    if (from == nullptr) {
        operations_.refuse(turn, source, what.operation,
                           error(ErrorCode::not_found, "copy: {}", explain_place(what.from, what.bytes)));
        return true;
    }
    const Where to(what.target, what.to.segment, what.to.offset);
    if (reaches(to, what.notice)) {
        if (auto done = put(to, {from, what.bytes}, what.notice); !done)
            operations_.refuse(turn, source, what.operation, done.error());
        else operations_.reply_done(turn, source, what.operation);
        return true;
    }
    const auto tell = [this, source, asked = what.operation](const Result<Bytes>& done) {
        const Turn turn_now = dispatcher_.take_turn();
        if (done) operations_.reply_done(turn_now, source, asked);
        else operations_.refuse(turn_now, source, asked, done.error());
    };
    const OperationId id = operations_.begin(turn, {.peer = what.target, .what = "copy", .answered = tell});
    transfers_.start({.node = what.target,
                      .place = what.to,
                      .source = from,
                      .bytes = what.bytes,
                      .notice = what.notice,
                      .operation = id,
                      .source_segment = what.from.segment});
    return true;
}

void MemoryService::end_copies_from(const Turn& turn, SegmentId segment) {
    for (const OperationId id : transfers_.operations_from(turn, segment))
        operations_.fail(turn, id, error(ErrorCode::not_found, "copy: the memory was freed or concealed meanwhile"));
}

// ---- strided

Result<void> MemoryService::put_strided(Where to, const std::byte* source, const Strided& shape, const Notice& notice) {
    const Reach reach = reach_of(shape.block_bytes, shape.count, shape.target_stride);
    if (!reach.is_sound || to.offset() < reach.before)
        return error(ErrorCode::not_found, "put of {} blocks of {} bytes, {} apart: they reach outside every segment",
                     shape.count, shape.block_bytes, shape.target_stride);
    const Where lowest(to.node(), to.segment(), to.offset() - reach.before);
    if (auto good = segments_.check("put", lowest, reach.bytes); !good) return good;
    if (auto good = flags_.check("put", to.node(), notice); !good) return good;
    if (shape.count == 0 || shape.block_bytes == 0) return put(lowest, {}, notice);
    if (reaches(to, notice)) {
        std::byte* const start = map_.find(lowest.node(), lowest.segment(), lowest.offset(), reach.bytes);
        if (start == nullptr) return segments_.check("put", lowest, reach.bytes); // another thread has concealed it
        std::byte* const where = start + reach.before;
        for (std::size_t i = 0; i < shape.count; ++i)
            copy_in(where + static_cast<std::ptrdiff_t>(i) * shape.target_stride,
                    {source + static_cast<std::ptrdiff_t>(i) * shape.source_stride, shape.block_bytes});
        return flags_.apply(to.node(), notice) ? Result<void>()
                                               : Result<void>(flags_.explain("put", to.node(), notice));
    }
    note_put_by_messages(to.node());
    const std::size_t blocks_max = std::max<std::size_t>(1, transfers_.piece_bytes() / shape.block_bytes);
    std::vector<std::byte> packed;
    for (std::size_t first = 0; first < shape.count;) {
        const std::size_t count = std::min(blocks_max, shape.count - first);
        const std::uint64_t offset = to.offset() + first * static_cast<std::uint64_t>(shape.target_stride);
        const std::byte* const start = source + static_cast<std::ptrdiff_t>(first) * shape.source_stride;
        const bool is_last = first + count == shape.count;
        if (count == 1) {
            if (auto sent =
                    put({to.node(), to.segment(), offset}, {start, shape.block_bytes}, is_last ? notice : Notice{});
                !sent)
                return sent;
        } else {
            packed.resize(count * shape.block_bytes);
            for (std::size_t i = 0; i < count; ++i)
                std::memcpy(packed.data() + i * shape.block_bytes,
                            start + static_cast<std::ptrdiff_t>(i) * shape.source_stride, shape.block_bytes);
            const PutStrided head{
                {to.segment(), 0, offset}, is_last ? notice : Notice{}, shape.block_bytes, shape.target_stride};
            if (auto sent = port_.request(to.node(), put_strided_kind, head, packed); !sent) return sent;
        }
        first += count;
    }
    if (notice.kind != Notice::Kind::none) dispatcher_.progress().flush(); // as in put()
    return {};
}

bool MemoryService::on_put_strided(const Turn& turn, Node source, Bytes body) {
    PutStrided what;
    if (!read_value(body, what)) return false;
    const Bytes data = body.subspan(sizeof what);
    if (what.block_bytes == 0 || data.size() % what.block_bytes != 0) return false;
    const std::uint64_t count = data.size() / what.block_bytes;
    const Reach reach = reach_of(what.block_bytes, count, what.stride);
    if (!reach.is_sound || what.to.offset < reach.before || (what.to.segment & landing_bit) != 0) return false;
    const Place lowest{what.to.segment, 0, what.to.offset - reach.before};
    std::byte* where = find_place(turn, source, lowest, reach.bytes);
    if (where == nullptr) {
        operations_.refuse(turn, source, no_operation,
                           error(ErrorCode::not_found, "put: {}", explain_place(lowest, reach.bytes)));
        return true;
    }
    where += reach.before;
    for (std::uint64_t i = 0; i < count; ++i)
        copy_in(where + static_cast<std::int64_t>(i) * what.stride,
                data.subspan(i * what.block_bytes, what.block_bytes));
    if (!flags_.apply(dispatcher_.node(), what.notice))
        operations_.refuse(turn, source, no_operation,
                           error(ErrorCode::not_found, "put: {}", explain_notice(what.notice)));
    return true;
}

Result<void> MemoryService::get_strided(Where from, std::byte* target, const Strided& shape) {
    const Reach reach = reach_of(shape.block_bytes, shape.count, shape.source_stride);
    if (!reach.is_sound || from.offset() < reach.before)
        return error(ErrorCode::not_found, "get of {} blocks of {} bytes, {} apart: they reach outside every segment",
                     shape.count, shape.block_bytes, shape.source_stride);
    const Where lowest(from.node(), from.segment(), from.offset() - reach.before);
    if (auto good = segments_.check("get", lowest, reach.bytes); !good) return good;
    if (shape.count == 0 || shape.block_bytes == 0) return {};
    const bool is_here = reaches(from);
    if (is_here || shape.block_bytes > transfers_.piece_bytes() / 2) {
        for (std::size_t i = 0; i < shape.count; ++i) {
            const Where block(from.node(), from.segment(),
                              from.offset() + i * static_cast<std::uint64_t>(shape.source_stride));
            if (auto got =
                    get(block, {target + static_cast<std::ptrdiff_t>(i) * shape.target_stride, shape.block_bytes});
                !got)
                return got;
        }
        return {};
    }
    if (dispatcher_.progress().in_handler()) return not_in_handler("get", from);
    const std::uint64_t bytes = shape.block_bytes * shape.count;
    const OperationId id = operations_.begin(Operation{.peer = from.node(),
                                                       .what = "get",
                                                       .target = target,
                                                       .bytes = bytes,
                                                       .left = bytes,
                                                       .block_bytes = shape.block_bytes,
                                                       .stride = shape.target_stride,
                                                       .is_waited_for = true});
    const std::size_t blocks_max = transfers_.piece_bytes() / shape.block_bytes;
    for (std::size_t first = 0; first < shape.count; first += blocks_max) {
        const std::size_t count = std::min(blocks_max, shape.count - first);
        const Place place{from.segment(), 0, from.offset() + first * static_cast<std::uint64_t>(shape.source_stride)};
        const Get head{id, place, shape.block_bytes, count, shape.source_stride, first * shape.block_bytes};
        if (auto sent = port_.request(from.node(), get_kind, head); !sent) {
            operations_.end(id); // what still comes finds nothing
            return sent;
        }
    }
    return wait_for(id);
}

// ---- atomic operations

Error MemoryService::unaligned(Where word, const Atomic& what) const {
    return error(ErrorCode::misuse,
                 "atomic operation at {}: the word at {} of segment {} is not aligned to its {} bytes",
                 dispatcher_.name_of(word.node()), word.offset(), word.segment(), what.bytes);
}

Result<std::uint64_t> MemoryService::atomic(Where word, const Atomic& what) {
    if (auto good = segments_.check("atomic operation", word, what.bytes); !good) return good.error();
    const std::uint64_t rest = what.bytes - 1; // of a power of two
    if ((word.offset() & rest) != 0) return unaligned(word, what);
    std::byte* const where =
        reaches_node(word.node()) ? map_.find(word.node(), word.segment(), word.offset(), what.bytes) : nullptr;
    if (where != nullptr) [[likely]] {
        const bool is_aligned = (reinterpret_cast<std::uintptr_t>(where) & rest) == 0;
        if (!is_aligned) [[unlikely]] // the memory was exposed so
            return unaligned(word, what);
        const std::uint64_t before = apply_atomic(what, where);
        flags_.nudge(word.node()); // it may be a flag that somebody waits for
        return before;
    }
    if (dispatcher_.progress().in_handler()) return not_in_handler("atomic operation", word);
    const auto id = send_atomic(word, what, {.is_waited_for = true});
    if (!id) return id.error();
    return operations_.wait_for(*id);
}

Result<OperationId> MemoryService::begin_atomic(Where word, const Atomic& what, Operation&& operation) {
    if (auto good = segments_.check("atomic operation", word, what.bytes); !good) return good.error();
    if (word.offset() % what.bytes != 0) return unaligned(word, what);
    return send_atomic(word, what, std::move(operation));
}

Result<OperationId> MemoryService::send_atomic(Where word, const Atomic& what, Operation&& operation) {
    operation.peer = word.node();
    operation.what = "atomic operation";
    const OperationId id = operations_.begin(std::move(operation));
    if (auto sent = port_.request(word.node(), atomic_kind, AtomicRequest{id, place_of(word), what}); !sent) {
        operations_.end(id);
        return sent.error();
    }
    return id;
}

bool MemoryService::on_atomic(const Turn& turn, Node source, Bytes body) {
    AtomicRequest request;
    if (!read_value(body, request) || (request.word.segment & landing_bit) != 0) return false;
    std::byte* const where = find_place(turn, source, request.word, request.what.bytes);
    if (where == nullptr || !is_sound(request.what, where)) {
        operations_.refuse(
            turn, source, request.operation,
            where == nullptr
                ? error(ErrorCode::not_found, "atomic operation: {}", explain_place(request.word, request.what.bytes))
                : Error(ErrorCode::misuse, "atomic operation: none that exists on an aligned word of 4 or 8 bytes"));
        return true;
    }
    operations_.reply_done(turn, source, request.operation, apply_atomic(request.what, where));
    return true;
}

} // namespace kumi::engine
