#include "kumi/engine/engine.hpp"

#include "kumi/base/machine.hpp"
#include "kumi/engine/dispatcher.hpp"

#include <stdexcept>

namespace kumi {

void Call::reply_packed(std::uint32_t handler, MutableBytes message, Bytes payload) {
    // Which of the two a handler was called for, others decide: it is told to them, as whatever a handler throws is.
    if (!is_request_) throw std::logic_error("it replied to a reply");
    if (has_replied_) throw std::logic_error("it replied twice");
    const std::size_t bytes = message.size() + payload.size() - sizeof(engine::Header),
                      bytes_max = dispatcher_.message_bytes_max();
    if (bytes > bytes_max)
        throw std::length_error(fmt::format("it replied with {}; the largest is {}", base::readable_bytes(bytes),
                                            base::readable_bytes(bytes_max)));
    has_replied_ = true;
    dispatcher_.messages().reply(source_, handler, message, payload);
}

} // namespace kumi

namespace kumi::engine {

Engine::Engine(std::unique_ptr<Dispatcher> dispatcher) noexcept : dispatcher_(std::move(dispatcher)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine::~Engine() = default;
void Engine::close() noexcept { dispatcher_.reset(); }

Node Engine::node() const noexcept { return dispatcher_->node(); }
Node Engine::nodes() const noexcept { return dispatcher_->nodes(); }
std::size_t Engine::message_bytes_max() const noexcept { return dispatcher_->message_bytes_max(); }

bool Engine::try_send_packed(Node to, std::uint32_t handler, MutableBytes message, Bytes payload) noexcept {
    return dispatcher_->messages().try_send(to, handler, message, payload);
}
Result<void> Engine::send_packed(Node to, std::uint32_t handler, MutableBytes message, Bytes payload) {
    return dispatcher_->messages().send(to, handler, message, payload);
}

Result<Engine::MadeSegment> Engine::make_segment(std::size_t count, std::size_t bytes_each) {
    const auto made = dispatcher_->segments().make(count, bytes_each);
    if (!made) return made.error();
    return MadeSegment{made->id, made->bytes};
}
Result<void> Engine::free_segment(SegmentId segment) { return dispatcher_->segments().free(segment); }
Result<std::uint64_t> Engine::allocate_bytes(std::size_t count, std::size_t bytes_each) {
    return dispatcher_->segments().allocate(count, bytes_each);
}
Result<void> Engine::release_bytes(global_ptr<std::byte> memory) { return dispatcher_->segments().release(memory); }
std::byte* Engine::local_bytes(global_ptr<std::byte> where, std::size_t bytes) noexcept {
    return dispatcher_->segments().local(where, bytes);
}

Result<void> Engine::put_bytes(global_ptr<std::byte> to, Bytes source, const Notice& notice) {
    return dispatcher_->memory().put(to, source, notice);
}
Result<void> Engine::start_put_bytes(global_ptr<std::byte> to, Bytes source, const Notice& notice) {
    return dispatcher_->memory().start_put(to, source, notice);
}
Result<void> Engine::get_bytes(global_ptr<std::byte> from, MutableBytes target) {
    return dispatcher_->memory().get(from, target);
}
Result<void> Engine::start_get_bytes(global_ptr<std::byte> from, MutableBytes target, Flag* flag) {
    return dispatcher_->memory().start_get(from, target, flag);
}
Result<void> Engine::copy_bytes(global_ptr<std::byte> from, global_ptr<std::byte> to, std::size_t bytes,
                                const Notice& notice) {
    return dispatcher_->memory().copy(from, to, bytes, notice);
}
Result<void> Engine::put_strided(global_ptr<std::byte> to, const std::byte* source, const Strided& shape,
                                 const Notice& notice) {
    return dispatcher_->memory().put_strided(to, source, shape, notice);
}
Result<void> Engine::get_strided(global_ptr<std::byte> from, std::byte* target, const Strided& shape) {
    return dispatcher_->memory().get_strided(from, target, shape);
}

Result<void> Engine::put_pieces(std::span<const PutPiece> pieces, const Notice& notice) {
    return dispatcher_->memory().put_pieces(pieces, notice);
}

Result<void> Engine::get_pieces(std::span<const GetPiece> pieces) { return dispatcher_->memory().get_pieces(pieces); }

Result<std::uint64_t> Engine::atomic_bytes(global_ptr<std::byte> word, const Atomic& what) {
    return dispatcher_->memory().atomic(word, what);
}

Result<void> Engine::set_flag(global_ptr<Flag> flag, Flag value) {
    return dispatcher_->memory().put(flag.as<std::byte>(), {}, Notice::set(flag, value));
}
Result<void> Engine::wait(const Flag& flag, Flag value, Instant deadline) {
    return dispatcher_->flags().wait(flag, value, deadline);
}
void Engine::expect(Counter& counter, std::int64_t arrivals) { dispatcher_->flags().expect(counter, arrivals); }
Result<void> Engine::sync(Instant deadline) { return dispatcher_->operations().sync(deadline); }
Result<void> Engine::start_sync(Flag& flag) { return dispatcher_->operations().start_sync(flag); }
Result<void> Engine::offer(std::uint64_t key, Node to, Bytes source, Flag* flag, Flag value) {
    return dispatcher_->rendezvous().offer(key, to, source, flag, value);
}
Result<void> Engine::accept(std::uint64_t key, Node from, MutableBytes target, Flag* flag, Flag value) {
    return dispatcher_->rendezvous().accept(key, from, target, flag, value);
}
Result<void> Engine::broadcast_bytes(global_ptr<std::byte> to, Bytes source, const Notice& notice) {
    return dispatcher_->broadcasts().start(to, source, notice);
}
void Engine::discard_broadcasts(bool discard) noexcept { dispatcher_->broadcasts().discard(discard); }

BarrierToken Engine::arrive() { return dispatcher_->barriers().arrive(); }
Result<void> Engine::barrier(Instant deadline) { return dispatcher_->barriers().barrier(deadline); }
Result<BarrierToken> Engine::arrive(std::span<const Node> members) { return dispatcher_->barriers().arrive(members); }
bool Engine::test(const BarrierToken& token) { return dispatcher_->barriers().test(token); }
Result<void> Engine::wait(const BarrierToken& token, Instant deadline) {
    return dispatcher_->barriers().wait(token, deadline);
}

std::size_t Engine::poll() { return dispatcher_->poll(); }
void Engine::flush() { dispatcher_->flush(); }
bool Engine::wait_until(base::FunctionRef<bool()> done, Instant deadline) {
    if (dispatcher_->in_handler()) return done();
    return dispatcher_->wait_until(done, deadline);
}

} // namespace kumi::engine
