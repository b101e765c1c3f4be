#pragma once

#include <string_view>

namespace kumi::launch::remote {

/// Runs this host's part of a job for a `kumi run` on another host. Both speak the protocol of link_wire.hpp over the
/// standard streams of this process. Answers an exit code. When it returns or is killed, or when `kumi run` goes away,
/// no node is left.
int help_kumi_run(std::string_view version);

} // namespace kumi::launch::remote
