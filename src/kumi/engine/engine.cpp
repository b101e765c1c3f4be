#include "kumi/engine/engine.hpp"

#include "kumi/base/system/machine.hpp"
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

Node Engine::node() const noexcept { return dispatcher_->node(); }
Node Engine::nodes() const noexcept { return dispatcher_->nodes(); }
std::size_t Engine::message_bytes_max() const noexcept { return dispatcher_->message_bytes_max(); }

bool Engine::try_send_packed(Node to, std::uint32_t handler, MutableBytes message, Bytes payload) noexcept {
    return dispatcher_->messages().try_send(to, handler, message, payload);
}
Result<void> Engine::send_packed(Node to, std::uint32_t handler, MutableBytes message, Bytes payload) {
    return dispatcher_->messages().send(to, handler, message, payload);
}

Result<void> Engine::sync(Instant deadline) { return dispatcher_->operations().sync(deadline); }
Result<void> Engine::start_sync(Flag& flag) { return dispatcher_->operations().start_sync(flag); }

BarrierToken Engine::arrive() { return dispatcher_->barriers().arrive(); }
Result<void> Engine::barrier(Instant deadline) { return dispatcher_->barriers().barrier(deadline); }
Result<BarrierToken> Engine::arrive(std::span<const Node> members) { return dispatcher_->barriers().arrive(members); }
bool Engine::test(const BarrierToken& token) { return dispatcher_->barriers().test(token); }
Result<void> Engine::wait(const BarrierToken& token, Instant deadline) {
    return dispatcher_->barriers().wait(token, deadline);
}

std::size_t Engine::poll() { return dispatcher_->progress().poll(); }
void Engine::flush() { dispatcher_->progress().flush(); }
bool Engine::wait_until(base::FunctionRef<bool()> done, Instant deadline) {
    if (dispatcher_->progress().in_handler()) return done();
    return dispatcher_->progress().wait_until(done, deadline);
}

} // namespace kumi::engine
