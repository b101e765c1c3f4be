#pragma once

#include "kumi/base/result.hpp"
#include "kumi/boot/session.hpp"
#include "kumi/pm/channel.hpp"
#include "kumi/pm/device.hpp"

#include <memory>

namespace kumi::job {

/// Opens the channel between the nodes of a job. On one host it is shared memory, unless KUMI_DEVICE names another
/// device. On several hosts it is a composite of shared memory and networks: those in the file that KUMI_CLUSTER names,
/// or those that the nodes find.
Result<std::unique_ptr<pm::Channel>> open_channel(boot::Session& session);

/// Lets a channel, or an engine, exchange data between nodes through the session.
class SessionMeeting final : public pm::Meeting {
public:
    explicit SessionMeeting(boot::Session& session) : session_(session) {}

    Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine) override { return session_.exchange(mine); }
    Result<base::Descriptor> share(base::Descriptor mine) override { return session_.share_on_host(std::move(mine)); }

private:
    boot::Session& session_;
};

} // namespace kumi::job
