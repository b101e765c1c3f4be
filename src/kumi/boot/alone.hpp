#pragma once

#include "kumi/boot/session.hpp"

namespace kumi::boot {

/// The session of a program that was started by hand: a job of one node, with keys of its own.
Result<std::unique_ptr<Session>> make_alone_session();

} // namespace kumi::boot
