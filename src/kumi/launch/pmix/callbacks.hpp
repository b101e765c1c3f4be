#pragma once

#include "kumi/launch/pmix/server.hpp"

namespace kumi::launch::pmix {

/// The functions that libpmix calls for what processes ask, which pass it on to `server`. What is not there is answered
/// by "not supported". `server` outlives libpmix's server.
pmix_server_module_t callbacks_for(Server& server);

} // namespace kumi::launch::pmix
