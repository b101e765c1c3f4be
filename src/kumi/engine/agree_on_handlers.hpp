#pragma once

#include "kumi/engine/dispatcher.hpp"
#include "kumi/pm/device.hpp"

namespace kumi::engine {

/// Where the engines of a job meet, before any of them starts: all must have handlers and functions of the same names
/// and parameters, in whatever order; an error says what which node has and another has not. Collective.
Result<void> agree_on_handlers(Dispatcher& dispatcher, pm::Meeting& meeting, std::string_view host);

} // namespace kumi::engine
