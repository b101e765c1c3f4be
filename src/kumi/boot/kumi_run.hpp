#pragma once

#include "kumi/boot/session.hpp"

namespace kumi::boot {

/// Joins the job of a node that `kumi run` started, over the socket that it inherited.
Result<std::unique_ptr<Session>> join_started_job(base::Descriptor socket);

} // namespace kumi::boot
