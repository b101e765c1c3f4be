#pragma once

namespace kumi::base {

/// From now on a process that would exit with status 0 exits with status 1 instead: something failed that the program
/// does not know of. Other statuses stay as they are. For any thread, any number of times.
void fail_exit() noexcept;

} // namespace kumi::base
