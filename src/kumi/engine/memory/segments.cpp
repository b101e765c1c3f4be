#include "kumi/engine/memory/segments.hpp"

#include "kumi/base/system/machine.hpp"
#include "kumi/engine/dispatcher.hpp"
#include "kumi/engine/memory/memory_map.hpp"

#include <limits>

namespace kumi::engine {

Result<void> Segments::check(const char* what, Where where, std::uint64_t bytes) const {
    if (where.node() < dispatcher_.nodes() && map_.contains(where.node(), where.segment(), where.offset(), bytes))
        [[likely]]
        return {};
    if (!where)
        return error(ErrorCode::not_found, "{}: the global_ptr is null: it was default-constructed, and points nowhere",
                     what);
    if (where.node() >= dispatcher_.nodes())
        return error(ErrorCode::not_found, "{}: there is no node {}, this job has 0 to {}", what, where.node(),
                     dispatcher_.nodes() - 1);
    return error(ErrorCode::not_found, "{} at {}: {}", what, dispatcher_.name_of(where.node()),
                 map_.explain(where.node(), where.segment(), where.offset(), bytes));
}

std::byte* Segments::local(Where where, std::size_t bytes) noexcept {
    return where.node() < dispatcher_.nodes() && map_.reaches(where.node()) ? mapped(where, bytes) : nullptr;
}

std::byte* Segments::mapped(Where where, std::size_t bytes) noexcept {
    if (where.node() >= dispatcher_.nodes() || !map_.is_mapped(where.node())) return nullptr;
    return map_.find(where.node(), where.segment(), where.offset(), bytes);
}

Result<MadeSegment> Segments::add(std::uint64_t bytes) {
    const Turn turn = dispatcher_.take_turn();
    const auto id = map_.make(bytes);
    if (!id) return id.error();
    return MadeSegment{*id, {map_.find(dispatcher_.node(), *id, 0, bytes), bytes}};
}

Result<MadeSegment> Segments::make(std::size_t count, std::size_t bytes_each) {
    if (dispatcher_.progress().in_handler())
        return error(ErrorCode::misuse, "making a segment: a handler must not wait");
    std::size_t bytes = 0;
    const bool fits = !__builtin_mul_overflow(count, bytes_each, &bytes);
    // What no machine has uses up a number too: other nodes may ask for less, and numbers are alike on all nodes.
    auto made = add(fits ? bytes : std::numeric_limits<std::uint64_t>::max());
    if (!fits)
        made = error(ErrorCode::too_large, "making a segment of {} times {} bytes: no machine has that many", count,
                     bytes_each);
    // All must have it before anybody uses it; and all must have the same.
    const std::uint64_t told = made ? bytes + 1 : 0;
    const auto agreed = dispatcher_.barriers().agree(told);
    if (agreed && agreed->lowest == agreed->highest && made) return made;
    if (made) {
        const Turn turn = dispatcher_.take_turn();
        map_.drop(made->id);
    }
    if (!made) return made.error();
    if (!agreed) return agreed.error();
    if (agreed->lowest == 0)
        return error(ErrorCode::no_memory, "making a segment of {}: another node has no memory for it",
                     base::readable_bytes(bytes));
    return error(ErrorCode::misuse,
                 "making a segment: this node asks for {} bytes, others for {} to {}; all must ask for the same", bytes,
                 agreed->lowest - 1, agreed->highest - 1);
}

Result<void> Segments::free(SegmentId segment) {
    if (dispatcher_.progress().in_handler())
        return error(ErrorCode::misuse, "freeing a segment: a handler must not wait");
    const bool is_known = segment != 0 && map_.find(dispatcher_.node(), segment, 0, 0) != nullptr;
    // What this node has under way arrives first; then all have come, and nobody needs it any more.
    auto done = dispatcher_.operations().sync(never);
    const auto agreed = dispatcher_.barriers().agree(is_known ? segment : 0);
    if (!is_known)
        return error(ErrorCode::not_found, "freeing segment {}: there is no such segment (any more)", segment);
    if (!agreed) return agreed.error();
    if (agreed->lowest != agreed->highest)
        return error(ErrorCode::misuse, "freeing segment {}: not all nodes free the same one", segment);
    const Turn turn = dispatcher_.take_turn();
    dispatcher_.memory().end_copies_from(turn, segment);
    map_.drop(segment);
    return done;
}

Result<std::uint64_t> Segments::allocate(std::size_t count, std::size_t bytes_each) {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, bytes_each, &bytes))
        return error(ErrorCode::too_large, "allocating {} times {} bytes: no machine has that many", count, bytes_each);
    const Turn turn = dispatcher_.take_turn();
    return map_.allocate(bytes);
}

Result<void> Segments::release(Where memory) {
    if (memory.segment() != 0 || memory.node() != dispatcher_.node())
        return error(ErrorCode::misuse,
                     "releasing heap memory: this was allocated by node {}, and only there it is released",
                     memory.node());
    const Turn turn = dispatcher_.take_turn();
    return map_.release(memory.offset());
}

Result<SegmentId> Segments::expose(MutableBytes memory) {
    const Turn turn = dispatcher_.take_turn();
    return map_.exposures().add(memory);
}

Result<void> Segments::conceal(Where memory) {
    if (!memory || memory.node() != dispatcher_.node())
        return error(ErrorCode::misuse, "concealing memory: only the node that has exposed it can do that");
    const Turn turn = dispatcher_.take_turn();
    if (!map_.exposures().remove(memory.segment()))
        return error(ErrorCode::not_found, "concealing memory: it is not exposed (any more)");
    dispatcher_.memory().end_copies_from(turn, memory.segment());
    return {};
}

} // namespace kumi::engine
