#pragma once

#include "kumi/base/result.hpp"
#include "kumi/boot/session.hpp"
#include "kumi/pm/channel.hpp"

#include <memory>

namespace kumi::job {

/// Opens the channel that joins the nodes of a job. On one host that is shared memory, unless KUMI_DEVICE names another
/// device; on several it is a composite of shared memory and of networks: those that KUMI_CLUSTER's file describes, or those
/// that the nodes find.
Result<std::unique_ptr<pm::Channel>> open_channel(boot::Session& session);

} // namespace kumi::job
