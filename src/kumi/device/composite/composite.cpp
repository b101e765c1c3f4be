#include "kumi/device/composite/composite.hpp"

#include "kumi/base/assert.hpp"
#include "kumi/device/composite/channel.hpp"

#include <algorithm>

namespace kumi::device::composite {
namespace {

/// The nodes of one channel among all that meet.
class PartMeeting final : public pm::Meeting {
public:
    PartMeeting(pm::Meeting& all, const std::vector<Node>& members) : all_(all), members_(members) {}

    Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine) override {
        auto told = all_.exchange(mine);
        if (!told) return told.error();
        std::vector<std::vector<std::byte>> ours;
        for (const Node member : members_) ours.push_back(std::move((*told)[member]));
        return ours;
    }
    Result<base::Descriptor> share(base::Descriptor mine) override { return all_.share(std::move(mine)); }

private:
    pm::Meeting& all_;
    const std::vector<Node>& members_;
};

} // namespace

Result<std::unique_ptr<pm::Channel>> CompositeDevice::open(const pm::Opening& opening) {
    KUMI_ASSERT(plan_of_.size() == opening.nodes);
    auto socket = WakeSocket::open();
    if (!socket) return socket.error();
    auto wakes = std::make_unique<WakeSocket>(*std::move(socket));
    auto told = opening.meeting.exchange(bytes_of(wakes->name()));
    if (!told) return told.error();

    std::vector<Part> parts;
    std::vector<std::uint32_t> part_of_plan(plans_.size());
    for (std::size_t i = 0; i < plans_.size(); ++i) {
        Plan& plan = plans_[i];
        if (plan.device == nullptr) {
            if (auto done = opening.meeting.exchange({}); !done) return done.error(); // the others meet
            continue;
        }
        std::vector<WakeSocket::Name> names(plan.members.size());
        for (std::size_t member = 0; member < names.size(); ++member)
            if (!read_value((*told)[plan.members[member]], names[member]))
                return error("node {} opens another device: are all nodes of one version?", plan.members[member]);
        auto waker = std::make_unique<SocketWaker>(*wakes);
        waker->set_names(std::move(names));
        PartMeeting meeting(opening.meeting, plan.members);
        const auto place = std::find(plan.members.begin(), plan.members.end(), opening.self);
        KUMI_ASSERT(place != plan.members.end());
        auto channel = plan.device->open({.self = static_cast<Node>(place - plan.members.begin()),
                                          .nodes = static_cast<Node>(plan.members.size()),
                                          .cores_on_host = opening.cores_on_host,
                                          .meeting = meeting,
                                          .keys = opening.keys,
                                          .waker = waker.get()});
        if (!channel) return channel.error();
        part_of_plan[i] = static_cast<std::uint32_t>(parts.size());
        parts.push_back({std::move(waker), *std::move(channel), plan.members});
    }
    std::vector<std::uint32_t> part_of;
    for (const std::uint32_t plan : plan_of_) {
        KUMI_ASSERT(plan < plans_.size() && plans_[plan].device != nullptr);
        part_of.push_back(part_of_plan[plan]);
    }
    return std::unique_ptr<pm::Channel>(std::make_unique<CompositeChannel>(opening.self, std::move(parts), part_of, std::move(wakes)));
}

} // namespace kumi::device::composite
