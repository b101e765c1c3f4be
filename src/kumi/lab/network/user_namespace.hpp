#pragma once

#include "kumi/base/result.hpp"

namespace kumi::lab {

/// Which user a program in a user namespace is there.
enum class UserInside {
    root,   // may do everything there
    myself, // the same user as outside; may set up networks there, and send and receive raw packets
};

/// Moves this process, which must have one thread, into a new user namespace, where it may make and enter others.
/// Programs that it starts can do what `inside` says. The error says which switch of the system forbids it.
Result<void> make_user_namespace(UserInside inside);

} // namespace kumi::lab
