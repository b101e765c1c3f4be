#include "kumi/engine/receiving/handler_context.hpp"

#include "kumi/engine/engine.hpp"

#include <utility>

namespace kumi::engine {

HandlerContext::HandlerContext() noexcept = default;
HandlerContext::~HandlerContext() = default;

void HandlerContext::set_engine(std::unique_ptr<Engine> engine) noexcept { engine_ = std::move(engine); }

} // namespace kumi::engine
