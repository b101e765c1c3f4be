#pragma once

#include "kumi/boot/session.hpp"

namespace kumi::boot {

/// A program started by hand: a job of one node.
std::unique_ptr<Session> make_alone_session();

} // namespace kumi::boot
