#include "kumi/engine/memory.hpp"

#include "kumi/engine/dispatcher.hpp"

namespace kumi::engine {
namespace by_bytes {

Node node_of(Dispatcher& dispatcher) noexcept { return dispatcher.node(); }

Result<MadeSegment> make_segment(Dispatcher& dispatcher, std::size_t count, std::size_t bytes_each) {
    return dispatcher.segments().make(count, bytes_each);
}
Result<void> free_segment(Dispatcher& dispatcher, SegmentId segment) { return dispatcher.segments().free(segment); }
Result<std::uint64_t> allocate(Dispatcher& dispatcher, std::size_t count, std::size_t bytes_each) {
    return dispatcher.segments().allocate(count, bytes_each);
}
Result<void> release(Dispatcher& dispatcher, Where memory) { return dispatcher.segments().release(memory); }
Result<SegmentId> expose(Dispatcher& dispatcher, MutableBytes memory) { return dispatcher.segments().expose(memory); }
Result<void> conceal(Dispatcher& dispatcher, Where memory) { return dispatcher.segments().conceal(memory); }
std::byte* local(Dispatcher& dispatcher, Where where, std::size_t bytes) noexcept {
    return dispatcher.segments().local(where, bytes);
}

Result<void> put(Dispatcher& dispatcher, Where to, Bytes source, const Notice& notice) {
    return dispatcher.memory().put(to, source, notice);
}
Result<void> start_put(Dispatcher& dispatcher, Where to, Bytes source, const Notice& notice) {
    return dispatcher.memory().start_put(to, source, notice);
}
Result<void> get(Dispatcher& dispatcher, Where from, MutableBytes target) {
    return dispatcher.memory().get(from, target);
}
Result<void> start_get(Dispatcher& dispatcher, Where from, MutableBytes target, Flag* flag) {
    return dispatcher.memory().start_get(from, target, flag);
}
Result<void> copy(Dispatcher& dispatcher, Where from, Where to, std::size_t bytes, const Notice& notice) {
    return dispatcher.memory().copy(from, to, bytes, notice);
}
Result<std::uint64_t> atomic(Dispatcher& dispatcher, Where word, const Atomic& what) {
    return dispatcher.memory().atomic(word, what);
}

} // namespace by_bytes

Result<void> Memory::put_strided(global_ptr<std::byte> to, const std::byte* source, const Strided& shape,
                                 const Notice& notice) {
    return dispatcher_->memory().put_strided(to, source, shape, notice);
}
Result<void> Memory::get_strided(global_ptr<std::byte> from, std::byte* target, const Strided& shape) {
    return dispatcher_->memory().get_strided(from, target, shape);
}
Result<void> Memory::put_pieces(std::span<const PutPiece> pieces, const Notice& notice) {
    return dispatcher_->memory().put_pieces(pieces, notice);
}
Result<void> Memory::get_pieces(std::span<const GetPiece> pieces) { return dispatcher_->memory().get_pieces(pieces); }

Result<void> Memory::set_flag(global_ptr<Flag> flag, Flag value) {
    return dispatcher_->memory().put(flag.as<std::byte>(), {}, Notice::set(flag, value));
}
Result<void> Memory::wait(const Flag& flag, Flag value, Instant deadline) {
    return dispatcher_->flags().wait(flag, value, deadline);
}
Result<void> Memory::wait_equal(const Flag& flag, Flag value, Instant deadline) {
    return dispatcher_->flags().wait(flag, value, deadline, Flags::Test::equal);
}
void Memory::notify(const BarrierToken& token, Flag& flag) { dispatcher_->barriers().notify(token, flag); }
void Memory::expect(Counter& counter, std::int64_t arrivals) { dispatcher_->flags().expect(counter, arrivals); }

Result<OfferToken> Memory::offer(std::uint64_t key, Node to, Bytes source, Flag* flag, Flag value) {
    return dispatcher_->rendezvous().offer(key, to, source, flag, value);
}
Result<AcceptToken> Memory::accept(std::uint64_t key, Node from, MutableBytes target, Flag* flag, Flag value) {
    return dispatcher_->rendezvous().accept(key, from, target, flag, value);
}
Result<void> Memory::cancel(const OfferToken& offered) { return dispatcher_->rendezvous().cancel(offered); }
Result<void> Memory::cancel(const AcceptToken& accepted, Instant deadline) {
    return dispatcher_->rendezvous().cancel(accepted, deadline);
}

} // namespace kumi::engine
