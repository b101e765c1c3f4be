// The core's part about memory: puts, gets, copies, atomic operations, flags.
//
// Memory of this host is stored to and loaded from where it lies, by the calling thread, without the turn. For the rest
// there are messages: each carries at most chunk_bytes, the notice rides on the last, and the target checks every
// place.

#include "kumi/base/memory_policy.hpp"
#include "kumi/base/machine.hpp"
#include "kumi/engine/core.hpp"
#include "kumi/engine/outgoing.hpp"
#include "kumi/engine/word_copy.hpp"

#include <algorithm>
#include <array>
#include <atomic>

namespace kumi::engine {
namespace {

template <class Word>
std::uint64_t apply_to(std::byte* where, const Atomic& what) noexcept {
    const std::atomic_ref<Word> word(*reinterpret_cast<Word*>(where));
    const auto operand = static_cast<Word>(what.operand);
    switch (what.kind) {
    case Atomic::add: return word.fetch_add(operand);
    case Atomic::swap: return word.exchange(operand);
    case Atomic::compare_exchange: {
        auto expected = static_cast<Word>(what.expected);
        word.compare_exchange_strong(expected, operand);
        return expected;
    }
    }
    return 0;
}

bool is_sound(const Atomic& what, const std::byte* where) noexcept {
    return (what.bytes == 4 || what.bytes == 8) && what.kind <= Atomic::compare_exchange &&
           reinterpret_cast<std::uintptr_t>(where) % what.bytes == 0;
}

std::uint64_t apply_atomic(const Atomic& what, std::byte* where) noexcept {
    return what.bytes == 4 ? apply_to<std::uint32_t>(where, what) : apply_to<std::uint64_t>(where, what);
}

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

} // namespace

Result<void> Core::check(const char* what, Where where, std::uint64_t bytes) const {
    if (where.node() < nodes() && memory_->contains(where.node(), where.segment(), where.offset(), bytes)) [[likely]]
        return {};
    if (where.node() >= nodes())
        return error("{}: there is no node {}, this job has 0 to {}", what, where.node(), nodes() - 1);
    return error("{} at {}: {}", what, name_of(where.node()),
                 memory_->explain(where.node(), where.segment(), where.offset(), bytes));
}

static Place place_of(global_ptr<std::byte> where) noexcept { return {where.segment(), 0, where.offset()}; }

std::byte* Core::local(Where where, std::size_t bytes) noexcept {
    if (where.node() >= nodes() || !memory_->reaches(where.node())) return nullptr;
    return memory_->find(where.node(), where.segment(), where.offset(), bytes);
}

// ---- notices

/// False: there is no such flag.
bool Core::apply_notice(Node node, const Notice& notice) noexcept {
    if (notice.kind == Notice::Kind::none) return true;
    const std::size_t bytes = notice.kind == Notice::Kind::set ? sizeof(Flag) : sizeof(Counter);
    std::byte* const where = memory_->find(node, notice.segment, notice.offset, bytes);
    if (where == nullptr || reinterpret_cast<std::uintptr_t>(where) % alignof(Flag) != 0) return false;
    if (notice.kind == Notice::Kind::set) {
        // Release: partner of the acquire in load_flag(): who sees the flag sees the data.
        std::atomic_ref<Flag>(*reinterpret_cast<Flag*>(where)).store(notice.value, std::memory_order_release);
    } else {
        Counter& counter = *reinterpret_cast<Counter*>(where);
        // Release and acquire: the last to come shows the data of all.
        if (std::atomic_ref(counter.missing).fetch_sub(1, std::memory_order_acq_rel) != 1) return true;
        std::atomic_ref(counter.flag).store(1, std::memory_order_release);
    }
    nudge(node);
    return true;
}

/// A flag of `node` has been set by a store: it may sleep.
void Core::nudge(Node node) noexcept {
    base::MachineMemory::full_fence(); // partner: the fence in prepare_sleep()
    nudge_sleeper(node);
}

/// After a fence.
void Core::nudge_sleeper(Node node) noexcept {
    SharedPage& page = memory_->page(node);
    if (page.watching.load(std::memory_order_relaxed) == 0) return; // ordered by the fence
    if (page.watching.exchange(0) == 0) return; // somebody else does it
    const Turn turn(loop_);
    if (node == this->node()) return loop_.wake_waiters(turn);
    Outgoing<0> message(Kind::nudge, false);
    outbox_.reply(node, message.bytes());
}

void Core::set_flag_here(Flag& flag, Flag value) noexcept {
    std::atomic_ref<Flag>(flag).store(value, std::memory_order_release); // partner: load_flag()
}

void Core::expect(Counter& counter, std::int64_t arrivals) {
    set_flag_here(counter.flag, 0);
    if (std::atomic_ref(counter.missing).fetch_add(arrivals, std::memory_order_acq_rel) != -arrivals) return;
    std::atomic_ref(counter.flag).store(1, std::memory_order_release);
    nudge(node());
}

Result<void> Core::wait_flag(const Flag& flag, Flag value, Instant deadline) {
    if (load_flag(flag) == value) return {};
    if (in_handler()) return error("waiting for a flag: a handler must not wait");
    bool is_set = false; // its next value may come before this thread looks again
    std::optional<Error> failure; // taken by one of those who wait, and the others go on
    const auto is_over = [&] {
        if (is_set || (is_set = load_flag(flag) == value)) return true;
        if (first_error_ && !failure) failure = take_error();
        return failure.has_value();
    };
    loop_.serve_until(is_over, deadline);
    if (is_set) return {};
    if (failure) return error("waiting for a flag: {}", failure->text());
    return error("waiting for a flag: it is {} and not {} after the time given", load_flag(flag), value);
}

// ---- segments and heap

Result<Core::MadeSegment> Core::add_segment(std::uint64_t bytes) {
    const Turn turn(loop_);
    const auto id = memory_->make(bytes);
    if (!id) return id.error();
    return MadeSegment{*id, {memory_->find(node(), *id, 0, bytes), bytes}};
}

Result<Core::MadeSegment> Core::make_segment(std::size_t count, std::size_t bytes_each) {
    if (in_handler()) return error("making a segment: a handler must not wait");
    std::size_t bytes = 0;
    const bool fits = !__builtin_mul_overflow(count, bytes_each, &bytes);
    auto made = fits ? add_segment(bytes)
                     : Result<MadeSegment>(
                           error("making a segment of {} times {} bytes: no machine has that many", count, bytes_each));
    // All must have it before anybody uses it; and all must have the same.
    const std::uint64_t told = made ? bytes + 1 : 0;
    const auto agreed = barriers_.agree(told);
    if (agreed && agreed->lowest == agreed->highest && made) return made;
    if (made) {
        const Turn turn(loop_);
        memory_->drop(made->id);
    }
    if (!made) return made.error();
    if (!agreed) return agreed.error();
    if (agreed->lowest == 0)
        return error("making a segment of {}: another node has no memory for it", base::readable_bytes(bytes));
    return error("making a segment: this node asks for {} bytes, others for {} to {}; all must ask for the same", bytes,
                 agreed->lowest - 1, agreed->highest - 1);
}

Result<void> Core::free_segment(SegmentId segment) {
    if (in_handler()) return error("freeing a segment: a handler must not wait");
    const bool is_known = segment != 0 && memory_->find(node(), segment, 0, 1) != nullptr;
    // What this node has under way arrives first; then all have come, and nobody needs it any more.
    auto done = sync(never);
    const auto agreed = barriers_.agree(is_known ? segment : 0);
    if (!is_known) return error("freeing segment {}: there is no such segment (any more)", segment);
    if (!agreed) return agreed.error();
    if (agreed->lowest != agreed->highest) return error("freeing segment {}: not all nodes free the same one", segment);
    const Turn turn(loop_);
    memory_->drop(segment);
    return done;
}

Result<std::uint64_t> Core::allocate(std::size_t count, std::size_t bytes_each) {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, bytes_each, &bytes))
        return error("allocating {} times {} bytes: no machine has that many", count, bytes_each);
    const Turn turn(loop_);
    return memory_->allocate(bytes);
}

Result<void> Core::release(Where memory) {
    if (memory.segment() != 0 || memory.node() != node())
        return error("releasing heap memory: this was allocated by node {}, and only there it is released",
                     memory.node());
    const Turn turn(loop_);
    return memory_->release(memory.offset());
}

// ---- put

Result<void> Core::put(Where to, Bytes source, const Notice& notice) {
    if (to.node() < nodes() && memory_->reaches(to.node())) {
        std::byte* const where = memory_->find(to.node(), to.segment(), to.offset(), source.size());
        if (where == nullptr) [[unlikely]]
            return check("put", to, source.size());
        copy_in(where, source);
        if (!apply_notice(to.node(), notice)) return refuse_notice("put", to.node(), notice);
        return {};
    }
    if (auto good = check("put", to, source.size()); !good) return good;
    if (auto good = check_notice("put", to.node(), notice); !good) return good;
    for (std::size_t at = 0;;) {
        const std::size_t bytes = std::min(chunk_bytes_, source.size() - at);
        const bool is_last = at + bytes == source.size();
        const Put head{no_operation, {to.segment(), 0, to.offset() + at}, is_last ? notice : Notice{}};
        if (auto sent = request(Kind::put, to.node(), head, source.subspan(at, bytes)); !sent) return sent;
        at += bytes;
        if (!is_last) continue;
        if (notice.kind != Notice::Kind::none) flush(); // somebody waits for it, and this thread may not call for long
        return {};
    }
}

static std::string explain_notice(const Notice& notice) {
    return fmt::format("put: there is no flag or counter at {} of segment {}; the data is there", notice.offset,
                       notice.segment);
}

Result<void> Core::check_notice(const char* what, Node node, const Notice& notice) const {
    if (notice.kind == Notice::Kind::none) return {};
    const std::size_t bytes = notice.kind == Notice::Kind::set ? sizeof(Flag) : sizeof(Counter);
    if (notice.offset % alignof(Flag) == 0 && memory_->contains(node, notice.segment, notice.offset, bytes)) return {};
    return error("{} at {}: there is no flag or counter at {} of segment {}", what, name_of(node), notice.offset,
                 notice.segment);
}

Result<void> Core::refuse_notice(const char* what, Node node, const Notice& notice) const {
    return error("{} at {}: there is no flag or counter at {} of segment {}; the data is there", what, name_of(node),
                 notice.offset, notice.segment);
}

Result<void> Core::start_put(Where to, Bytes source, const Notice& notice) {
    if (auto good = check("put", to, source.size()); !good) return good;
    if (auto good = check_notice("put", to.node(), notice); !good) return good;
    if (memory_->reaches(to.node()) || source.size() <= 1024) return put(to, source, notice);
    start_transfer(
        {.node = to.node(), .place = place_of(to), .source = source.data(), .bytes = source.size(), .notice = notice});
    return {};
}

bool Core::on_put(Node source, Bytes rest) {
    Put what;
    if (!read_value(rest, what)) return false;
    const Bytes data = rest.subspan(sizeof what);
    std::byte* const where = find_place(source, what.to, data.size());
    if (where == nullptr) {
        refuse(source, what.operation, fmt::format("put: {}", explain_place(what.to, data.size())));
        return true;
    }
    copy_in(where, data);
    if (!apply_notice(node(), what.notice)) refuse(source, what.operation, explain_notice(what.notice));
    return true;
}

/// Memory of this node, as `source` names it. What is to land here is expected of one node, and no other may put it
/// there.
std::byte* Core::find_place(Node source, const Place& place, std::uint64_t bytes) noexcept {
    if ((place.segment & landing_bit) == 0) return memory_->find(node(), place.segment, place.offset, bytes);
    const Operation* const operation = operations_.find({place.segment & ~landing_bit, place.generation});
    if (operation == nullptr || !operation->is_from(source)) return nullptr;
    if (bytes > operation->bytes || place.offset > operation->bytes - bytes) return nullptr;
    if (operation->block_bytes != 0) return nullptr; // its memory is not in one piece
    return operation->target + place.offset;
}

std::string Core::explain_place(const Place& place, std::uint64_t bytes) const {
    if ((place.segment & landing_bit) != 0) return "nothing is expected there";
    return memory_->explain(node(), place.segment, place.offset, bytes);
}

// ---- get

Result<void> Core::get(Where from, MutableBytes target) {
    if (from.node() < nodes() && memory_->reaches(from.node())) {
        const std::byte* const where = memory_->find(from.node(), from.segment(), from.offset(), target.size());
        if (where == nullptr) [[unlikely]]
            return check("get", from, target.size());
        copy_out(target.data(), {where, target.size()});
        return {};
    }
    if (auto good = check("get", from, target.size()); !good) return good;
    if (in_handler()) return error("get: a handler must not wait; start_get() does not");
    if (target.empty()) return {};
    const OperationId id = begin_get(from, target, {.is_waited_for = true});
    const auto got = wait_for(id);
    return got ? Result<void>() : Result<void>(got.error());
}

Result<void> Core::start_get(Where from, MutableBytes target, Flag* flag) {
    if (flag != nullptr) set_flag_here(*flag, 0);
    if (from.node() < nodes() && (memory_->reaches(from.node()) || target.empty())) {
        auto got = get(from, target);
        if (got && flag != nullptr) set_flag_here(*flag, 1);
        return got;
    }
    if (auto good = check("get", from, target.size()); !good) return good;
    begin_get(from, target, {.flag = flag});
    return {};
}

OperationId Core::begin_get(Where from, MutableBytes target, Operation operation) {
    operation.peer = from.node();
    operation.what = "get";
    operation.target = target.data();
    operation.bytes = operation.left = target.size();
    const bool is_waited_for = operation.is_waited_for;
    const Turn turn(loop_);
    const OperationId id = operations_.begin(std::move(operation));
    start_transfer({.kind = Transfer::Kind::get,
                    .node = from.node(),
                    .place = place_of(from),
                    .bytes = target.size(),
                    .operation = id},
                   !is_waited_for);
    return id;
}

bool Core::on_get(Node source, Bytes rest) {
    Get what;
    if (!read_value(rest, what)) return false;
    const Reach reach = reach_of(what.bytes, what.count, what.stride);
    if (!reach.is_sound || what.from.offset < reach.before || what.bytes > chunk_bytes_ || what.count > chunk_bytes_ ||
        what.bytes * what.count > chunk_bytes_)
        return false;
    const Place lowest{what.from.segment, what.from.generation, what.from.offset - reach.before};
    std::byte* const where = (what.from.segment & landing_bit) != 0 ? nullptr : find_place(source, lowest, reach.bytes);
    if (where == nullptr) {
        refuse(source, what.operation, fmt::format("get: {}", explain_place(lowest, reach.bytes)));
        return true;
    }
    auto head = outgoing(Kind::got, false, Got{what.operation, what.position});
    const std::byte* const start = where + reach.before;
    if (what.count == 1) {
        std::array<std::byte, 8> word;
        const bool is_word = what.bytes <= word.size();
        if (is_word) copy_out(word.data(), {start, what.bytes});
        outbox_.reply(source, head.bytes(), {is_word ? word.data() : start, what.bytes});
        return true;
    }
    std::vector<std::byte> blocks(what.bytes * what.count);
    for (std::uint64_t i = 0; i < what.count && what.bytes != 0; ++i)
        std::memcpy(blocks.data() + i * what.bytes, start + static_cast<std::int64_t>(i) * what.stride, what.bytes);
    outbox_.reply(source, head.bytes(), blocks);
    return true;
}

bool Core::on_got(Node source, Bytes rest) {
    Got what;
    if (!read_value(rest, what)) return false;
    const Bytes data = rest.subspan(sizeof what);
    Operation* const operation = operations_.find(what.operation);
    if (operation == nullptr) return true; // it has failed already
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
    if (operation->left == 0) complete(what.operation);
    return true;
}

Result<void> Core::get_pieces(std::span<const GetPiece> pieces) {
    // All are under way at once, and waited for together.
    std::vector<OperationId> begun;
    Result<void> outcome;
    for (const GetPiece& piece : pieces) {
        const bool is_near = piece.from.node() < nodes() && memory_->reaches(piece.from.node());
        if (is_near || piece.target.empty() || in_handler()) outcome = get(piece.from, piece.target);
        else if (outcome = check("get", piece.from, piece.target.size()); outcome)
            begun.push_back(begin_get(piece.from, piece.target, {.is_waited_for = true}));
        if (!outcome) break;
    }
    for (const OperationId id : begun)
        if (const auto got = wait_for(id); !got && outcome) outcome = got.error();
    return outcome;
}

// ---- copy

Result<void> Core::copy(Where from, Where to, std::size_t bytes, const Notice& notice) {
    if (auto good = check("copy from", from, bytes); !good) return good;
    if (auto good = check("copy to", to, bytes); !good) return good;
    if (auto good = check_notice("copy", to.node(), notice); !good) return good;
    if (memory_->reaches(from.node())) {
        const std::byte* const source = memory_->find(from.node(), from.segment(), from.offset(), bytes);
        return start_put(to, {source, bytes}, notice);
    }
    if (memory_->reaches(to.node()) && bytes != 0) {
        std::byte* const target = memory_->find(to.node(), to.segment(), to.offset(), bytes);
        begin_get(from, {target, bytes}, {.answered = [this, to, notice](const Result<Bytes>& done) {
            if (!done) return note_error(done.error());
            if (!apply_notice(to.node(), notice)) note_error(refuse_notice("copy", to.node(), notice).error());
        }});
        return {};
    }
    OperationId id;
    {
        const Turn turn(loop_);
        id = operations_.begin({.peer = from.node(), .what = "copy"});
    }
    auto sent = request(Kind::copy, from.node(), Copy{id, place_of(from), to.node(), 0, place_of(to), bytes, notice});
    if (!sent) {
        const Turn turn(loop_);
        operations_.end(id);
    }
    return sent;
}

bool Core::on_copy(Node source, Bytes rest) {
    Copy what;
    if (!read_value(rest, what) || what.target >= nodes() || (what.from.segment & landing_bit) != 0 ||
        (what.to.segment & landing_bit) != 0)
        return false;
    const std::byte* const from = find_place(source, what.from, what.bytes);
    if (from == nullptr) {
        refuse(source, what.operation, fmt::format("copy: {}", explain_place(what.from, what.bytes)));
        return true;
    }
    if (memory_->reaches(what.target)) {
        const Where to(what.target, what.to.segment, what.to.offset);
        if (auto done = put(to, {from, what.bytes}, what.notice); !done)
            refuse(source, what.operation, done.error().text());
        else reply_done(source, what.operation, 0);
        return true;
    }
    const auto tell = [this, source, asked = what.operation](const Result<Bytes>& done) {
        if (done) reply_done(source, asked, 0);
        else refuse(source, asked, done.error().text());
    };
    const OperationId id = operations_.begin({.peer = what.target, .what = "copy", .answered = tell});
    start_transfer({.node = what.target,
                    .place = what.to,
                    .source = from,
                    .bytes = what.bytes,
                    .notice = what.notice,
                    .operation = id});
    return true;
}

// ---- strided

Result<void> Core::put_strided(Where to, const std::byte* source, const Strided& shape, const Notice& notice) {
    const Reach reach = reach_of(shape.block_bytes, shape.count, shape.target_stride);
    if (!reach.is_sound || to.offset() < reach.before)
        return error("put of {} blocks of {} bytes, {} apart: they reach outside every segment", shape.count,
                     shape.block_bytes, shape.target_stride);
    const Where lowest(to.node(), to.segment(), to.offset() - reach.before);
    if (auto good = check("put", lowest, reach.bytes); !good) return good;
    if (auto good = check_notice("put", to.node(), notice); !good) return good;
    if (shape.count == 0 || shape.block_bytes == 0) return put(lowest, {}, notice);
    if (memory_->reaches(to.node())) {
        std::byte* const where =
            memory_->find(lowest.node(), lowest.segment(), lowest.offset(), reach.bytes) + reach.before;
        for (std::size_t i = 0; i < shape.count; ++i)
            copy_in(where + static_cast<std::ptrdiff_t>(i) * shape.target_stride,
                    {source + static_cast<std::ptrdiff_t>(i) * shape.source_stride, shape.block_bytes});
        return apply_notice(to.node(), notice) ? Result<void>() : refuse_notice("put", to.node(), notice);
    }
    const std::size_t blocks_max = std::max<std::size_t>(1, chunk_bytes_ / shape.block_bytes);
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
            if (auto sent = request(Kind::put_strided, to.node(), head, packed); !sent) return sent;
        }
        first += count;
    }
    if (notice.kind != Notice::Kind::none) flush(); // as in put()
    return {};
}

bool Core::on_put_strided(Node source, Bytes rest) {
    PutStrided what;
    if (!read_value(rest, what)) return false;
    const Bytes data = rest.subspan(sizeof what);
    if (what.block_bytes == 0 || data.size() % what.block_bytes != 0) return false;
    const std::uint64_t count = data.size() / what.block_bytes;
    const Reach reach = reach_of(what.block_bytes, count, what.stride);
    if (!reach.is_sound || what.to.offset < reach.before || (what.to.segment & landing_bit) != 0) return false;
    const Place lowest{what.to.segment, 0, what.to.offset - reach.before};
    std::byte* where = find_place(source, lowest, reach.bytes);
    if (where == nullptr) {
        refuse(source, no_operation, fmt::format("put: {}", explain_place(lowest, reach.bytes)));
        return true;
    }
    where += reach.before;
    for (std::uint64_t i = 0; i < count; ++i)
        copy_in(where + static_cast<std::int64_t>(i) * what.stride,
                data.subspan(i * what.block_bytes, what.block_bytes));
    if (!apply_notice(node(), what.notice)) refuse(source, no_operation, explain_notice(what.notice));
    return true;
}

Result<void> Core::get_strided(Where from, std::byte* target, const Strided& shape) {
    const Reach reach = reach_of(shape.block_bytes, shape.count, shape.source_stride);
    if (!reach.is_sound || from.offset() < reach.before)
        return error("get of {} blocks of {} bytes, {} apart: they reach outside every segment", shape.count,
                     shape.block_bytes, shape.source_stride);
    const Where lowest(from.node(), from.segment(), from.offset() - reach.before);
    if (auto good = check("get", lowest, reach.bytes); !good) return good;
    if (shape.count == 0 || shape.block_bytes == 0) return {};
    const bool is_here = memory_->reaches(from.node());
    if (is_here || shape.block_bytes > chunk_bytes_ / 2) {
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
    if (in_handler()) return error("get: a handler must not wait");
    const std::uint64_t bytes = shape.block_bytes * shape.count;
    OperationId id;
    {
        const Turn turn(loop_);
        id = operations_.begin({.peer = from.node(),
                                .what = "get",
                                .target = target,
                                .bytes = bytes,
                                .left = bytes,
                                .block_bytes = shape.block_bytes,
                                .stride = shape.target_stride,
                                .is_waited_for = true});
    }
    const std::size_t blocks_max = chunk_bytes_ / shape.block_bytes;
    for (std::size_t first = 0; first < shape.count; first += blocks_max) {
        const std::size_t count = std::min(blocks_max, shape.count - first);
        const Place place{from.segment(), 0, from.offset() + first * static_cast<std::uint64_t>(shape.source_stride)};
        if (auto sent =
                request(Kind::get, from.node(),
                        Get{id, place, shape.block_bytes, count, shape.source_stride, first * shape.block_bytes});
            !sent) {
            const Turn turn(loop_);
            operations_.end(id); // what still comes finds nothing
            return sent;
        }
    }
    const auto got = wait_for(id);
    return got ? Result<void>() : Result<void>(got.error());
}

// ---- atomic operations

Result<std::uint64_t> Core::atomic(Where word, const Atomic& what) {
    if (auto good = check("atomic operation", word, what.bytes); !good) return good.error();
    if (word.offset() % what.bytes != 0)
        return error("atomic operation at {}: the word at {} of segment {} is not aligned to its {} bytes",
                     name_of(word.node()), word.offset(), word.segment(), what.bytes);
    if (memory_->reaches(word.node())) {
        std::byte* const where = memory_->find(word.node(), word.segment(), word.offset(), what.bytes);
        const std::uint64_t before = apply_atomic(what, where);
        nudge(word.node()); // it may be a flag that somebody waits for
        return before;
    }
    if (in_handler()) return error("atomic operation: a handler must not wait for what it answers");
    OperationId id;
    {
        const Turn turn(loop_);
        id = operations_.begin({.peer = word.node(), .what = "atomic operation", .is_waited_for = true});
    }
    if (auto sent = request(Kind::atomic, word.node(), AtomicRequest{id, place_of(word), what}); !sent) {
        const Turn turn(loop_);
        operations_.end(id);
        return sent.error();
    }
    return wait_for(id);
}

bool Core::on_atomic(Node source, Bytes rest) {
    AtomicRequest request;
    if (!read_value(rest, request) || (request.word.segment & landing_bit) != 0) return false;
    std::byte* const where = find_place(source, request.word, request.what.bytes);
    if (where == nullptr || !is_sound(request.what, where)) {
        refuse(source, request.operation,
               where == nullptr ? fmt::format("atomic operation: {}", explain_place(request.word, request.what.bytes))
                                : std::string("atomic operation: not a word of 4 or 8 bytes, aligned"));
        return true;
    }
    reply_done(source, request.operation, apply_atomic(request.what, where));
    return true;
}

} // namespace kumi::engine
