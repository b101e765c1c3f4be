#pragma once

#include <string_view>

namespace kumi::launch::remote {

/// Runs this host's part of a job for a `kumi run` on another: link_wire.hpp has what they say to each other over our
/// standard streams. Answers an exit code. When it returns, is killed, or `kumi run` goes away, no node is left.
int help_kumi_run(std::string_view version);

} // namespace kumi::launch::remote
