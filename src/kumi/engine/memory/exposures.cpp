#include "kumi/engine/memory/exposures.hpp"

namespace kumi::engine {
namespace {

std::byte place_of_none; // where pieces without bytes are

} // namespace

Result<SegmentId> Exposures::add(MutableBytes memory) {
    if (count_ == most)
        return error(ErrorCode::no_memory, "exposing memory: {} pieces are exposed already, which is the most; "
                                           "conceal some", most);
    // In the order of places, so that no number comes again soon: a pointer to a removed piece finds nothing.
    do last_ = (last_ + 1) % exposed_bit;
    while (pieces_[last_ % most].number.load(std::memory_order_relaxed) != 0); // changed by this thread alone
    const SegmentId number = exposed_bit | last_;
    Piece& piece = pieces_[number % most];
    piece.start.store(memory.empty() ? &place_of_none : memory.data(),
                      std::memory_order_relaxed); // ordered by the number
    piece.bytes.store(memory.size(), std::memory_order_relaxed);
    piece.number.store(number, std::memory_order_release); // partner: the acquire in find()
    ++count_;
    return number;
}

bool Exposures::remove(SegmentId number) noexcept {
    if (!is_exposed(number) || find(number, 0, 0) == nullptr) return false;
    pieces_[number % most].number.store(0, std::memory_order_relaxed); // nothing is published by it
    --count_;
    return true;
}

} // namespace kumi::engine
