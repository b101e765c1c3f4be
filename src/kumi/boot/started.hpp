#pragma once

#include "kumi/boot/session.hpp"

namespace kumi::boot {

/// A node that `kumi run` started: joins over the socket that it inherited.
Result<std::unique_ptr<Session>> join_started_job(base::Descriptor socket);

} // namespace kumi::boot
