#pragma once

#include "kumi/base/result.hpp"
#include "kumi/boot/session.hpp"
#include "kumi/pm/channel.hpp"
#include "kumi/pm/device.hpp"

#include <memory>

namespace kumi::job {

/// Opens the channel that joins the nodes of a job. On one host that is shared memory, unless KUMI_DEVICE names another
/// device; on several it is a composite of shared memory and of networks: those that KUMI_CLUSTER's file describes, or
/// those that the nodes find. `is_serialized` is Opening's.
Result<std::unique_ptr<pm::Channel>> open_channel(boot::Session& session, bool is_serialized = false);

/// The nodes of a channel, and of an engine, meet through the session.
class SessionMeeting final : public pm::Meeting {
public:
    explicit SessionMeeting(boot::Session& session) : session_(session) {}

    Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine) override { return session_.exchange(mine); }
    Result<base::Descriptor> share(base::Descriptor mine) override { return session_.share_on_host(std::move(mine)); }

private:
    boot::Session& session_;
};

} // namespace kumi::job
