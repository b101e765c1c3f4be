#include "kumi/engine/engine.hpp"

#include "kumi/base/system/machine.hpp"
#include "kumi/engine/dispatcher.hpp"

#include <utility>

namespace kumi {

engine::Engine& Call::engine() const noexcept { return dispatcher_.context().engine(); }

void Call::reply_packed(engine::Handle handler, MutableBytes message, Bytes payload) {
    // Nothing is thrown: which requests come is up to other nodes, and a handler may be noexcept.
    const auto refuse = [&](Error why) {
        if (!misuse_) misuse_ = std::make_unique<const Error>(std::move(why));
    };
    if (!is_request_)
        return refuse(
            error(ErrorCode::misuse, "replied to a reply: only a handler that a request has called may reply"));
    if (has_replied_) return refuse(error(ErrorCode::misuse, "replied twice: a handler may reply once"));
    if (auto known = dispatcher_.messages().check_handle("the handler of a reply", handler); !known)
        return refuse(known.error());
    has_replied_ = true;
    const std::size_t bytes = message.size() + payload.size() - sizeof(engine::Header),
                      bytes_max = dispatcher_.message_bytes_max();
    if (bytes > bytes_max)
        return refuse(error(ErrorCode::too_large, "replied with {}; the largest is {}",
                            base::readable_bytes_beside(bytes, bytes_max), base::readable_bytes(bytes_max)));
    dispatcher_.messages().reply(source_, handler.index, message, payload);
}

} // namespace kumi

namespace kumi::engine {

void Engine::Ending::operator()(Dispatcher* dispatcher) const noexcept {
    if (is_owner) delete dispatcher;
}

Engine::Engine(std::unique_ptr<Dispatcher> dispatcher) : dispatcher_(dispatcher.release(), Ending{true}) {
    dispatcher_->context().set_engine(std::unique_ptr<Engine>(new Engine(*dispatcher_)));
}
Engine::Engine(Dispatcher& dispatcher) noexcept : dispatcher_(&dispatcher, Ending{false}) {}
Engine::Engine(Engine&&) noexcept = default;
Engine::~Engine() = default;

Node Engine::node() const noexcept { return dispatcher_->node(); }
Node Engine::nodes() const noexcept { return dispatcher_->nodes(); }
std::size_t Engine::message_bytes_max() const noexcept { return dispatcher_->message_bytes_max(); }

bool Engine::try_send_packed(Node to, Handle handler, MutableBytes message, Bytes payload) noexcept {
    return dispatcher_->messages().try_send(to, handler, message, payload);
}
Result<void> Engine::send_packed(Node to, Handle handler, MutableBytes message, Bytes payload) {
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
    ProgressLoop& loop = dispatcher_->loop();
    if (loop.has_turn()) return done();
    const auto look = [&](const Turn& turn) {
        const Lending lending(turn);
        return done();
    };
    return loop.serve_until(look, deadline,
                            [] { return std::string("wait_until: the program's condition does not hold"); });
}

} // namespace kumi::engine
