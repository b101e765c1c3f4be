#include "kumi/device/composite/stripes/joiner.hpp"

namespace kumi::device::composite {
namespace {

struct Freeing final : pm::BufferOwner {
    void release(std::uint64_t token) noexcept override {
        delete[] reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(token));
    }
};
constinit Freeing freeing; // has no state

} // namespace

pm::BufferOwner& Joiner::Whole::owner() noexcept { return freeing; }

Joiner::Outcome Joiner::add(Sequence sequence, Bytes piece, Whole& whole) {
    PieceHead head;
    if (!read_value(piece, head)) return Outcome::unsound;
    const Bytes body = piece.subspan(sizeof head);
    const bool fits = !body.empty() && head.total <= message_bytes_max_ && head.offset < head.total &&
                      body.size() <= head.total - head.offset;
    if (!fits) return Outcome::unsound;
    auto place = messages_.find(sequence);
    if (place == messages_.end()) {
        if (bytes_ + head.total > bytes_max_) return Outcome::unsound;
        bytes_ += head.total;
        place = messages_.try_emplace(sequence).first;
        const std::size_t bytes = sizeof(Envelope) + head.total;
        place->second.whole = {std::make_unique_for_overwrite<std::byte[]>(bytes), bytes};
        place->second.missing_bytes = head.total;
    }
    Partial& partial = place->second;
    if (partial.whole.bytes != sizeof(Envelope) + head.total) return Outcome::unsound;
    const auto end = head.offset + static_cast<std::uint32_t>(body.size());
    const auto next = partial.ends.lower_bound(head.offset);
    if (next != partial.ends.end() && next->first == head.offset)
        return next->second == end ? Outcome::duplicate : Outcome::unsound;
    const bool overlaps = (next != partial.ends.end() && next->first < end) ||
                          (next != partial.ends.begin() && std::prev(next)->second > head.offset);
    if (overlaps) return Outcome::unsound;
    partial.ends.emplace_hint(next, head.offset, end);
    copy_bytes(partial.whole.memory.get() + sizeof(Envelope) + head.offset, body);
    partial.missing_bytes -= body.size();
    if (partial.missing_bytes != 0) return Outcome::waits;
    whole = std::move(partial.whole);
    bytes_ -= head.total;
    messages_.erase(place);
    return Outcome::complete;
}

} // namespace kumi::device::composite
