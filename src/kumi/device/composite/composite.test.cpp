#include "kumi/device/composite/composite.hpp"

#include "kumi/base/system/keys.hpp"
#include "kumi/device/composite/sleep/wake_socket.hpp"
#include "kumi/device/shmem/shmem.hpp"
#include "kumi/device/udp/udp.hpp"
#include "kumi/pm/wait.hpp"
#include "loopback/meeting.hpp"
#include "loopback/passing_channel.hpp"

#include <functional>
#include <gtest/gtest.h>
#include <numeric>
#include <optional>
#include <thread>

namespace kumi::device::composite {
namespace {

using namespace std::chrono_literals;
using pm::Node;

std::unique_ptr<pm::Device> udp_that_loses(double share) {
    udp::Options options;
    options.faults.loss = share;
    options.packet_bytes_max = 1400; // so that it matters: a long message is many
    return std::make_unique<udp::UdpDevice>(options);
}

/// Another channel, that lets every long message wait: slower than what works, on a busy machine too.
class SlowChannel final : public loopback::PassingChannel {
public:
    SlowChannel(std::unique_ptr<pm::Channel> channel, Duration pause)
        : PassingChannel(std::move(channel)), pause_(pause) {}

    pm::SendSlot try_reserve(Node to, std::size_t bytes) noexcept override {
        if (bytes < 1024) return PassingChannel::try_reserve(to, bytes);
        if (!may_go_) may_go_ = now() + pause_;
        if (now() < *may_go_) return {};
        const pm::SendSlot slot = PassingChannel::try_reserve(to, bytes);
        if (slot) may_go_.reset();
        return slot;
    }

private:
    Duration pause_;
    std::optional<Instant> may_go_; // when the one that is waited for may
};

std::unique_ptr<pm::Device> slow_udp() {
    return std::make_unique<loopback::WrappingDevice<SlowChannel, udp::UdpDevice, Duration>>(udp::UdpDevice(), 100ms);
}

/// Opens composites of `plans(node)` in as many threads as there are nodes, and calls `body(node, channel)` in each.
void open_all(Node nodes, Duration patience, const std::function<std::vector<Plan>(Node)>& plans,
              const std::function<void(Node, Result<std::unique_ptr<pm::Channel>>&)>& body) {
    loopback::Place place(nodes);
    const auto keys = base::make_job_keys();
    std::vector<std::thread> threads;
    for (Node node = 0; node < nodes; ++node)
        threads.emplace_back([&, node] {
            loopback::ThreadMeeting meeting(place, node);
            auto made = plans(node);
            for (Plan& plan : made)
                if (plan.members.empty())
                    plan.members.resize(nodes), std::iota(plan.members.begin(), plan.members.end(), Node{0});
            std::vector<std::vector<Node>> members;
            for (const Plan& plan : made) members.push_back(plan.members);
            const auto joins = [members](std::size_t plan, Node to) {
                return std::find(members[plan].begin(), members[plan].end(), to) != members[plan].end();
            };
            CompositeDevice device(std::move(made), joins, patience);
            auto channel = device.open({.self = node, .nodes = nodes, .meeting = meeting, .keys = *keys});
            body(node, channel);
        });
    for (std::thread& thread : threads) thread.join();
}

std::vector<Plan> two_plans(std::unique_ptr<pm::Device> first, std::unique_ptr<pm::Device> second) {
    std::vector<Plan> plans(2);
    plans[0] = {"first", std::move(first), {}};
    plans[1] = {"second", std::move(second), {}};
    return plans;
}

/// Every node says something to every other, and hears nothing else.
void talk(pm::Channel& channel) {
    Node heard = 0;
    const auto hear = [&](pm::Message& message) {
        EXPECT_EQ(message.bytes().size(), sizeof(Node));
        ++heard;
    };
    for (Node to = 0; to < channel.nodes(); ++to)
        pm::poll_until(channel, hear, [&] { return channel.try_send(to, bytes_of(to)); }, pm::Patience{}, now() + 10s);
    EXPECT_TRUE(pm::poll_until(channel, hear, [&] { return heard == channel.nodes(); }, pm::Patience{}, now() + 10s));
}

TEST(CompositeDevice, the_first_plan_is_used_when_it_works) {
    open_all(
        3, 2s, [](Node) { return two_plans(udp_that_loses(0), std::make_unique<shmem::ShmemDevice>()); },
        [](Node, auto& channel) {
            ASSERT_TRUE(channel) << channel.error().text();
            for (Node to = 0; to < 3; ++to) EXPECT_EQ((*channel)->carrier(to), "first");
            talk(**channel);
        });
}

TEST(CompositeDevice, a_channel_can_be_slept_on_from_outside) {
    const auto is_slept_on = [](Node, auto& channel) {
        ASSERT_TRUE(channel) << channel.error().text();
        EXPECT_NE((*channel)->joint_sleep(), nullptr);
        talk(**channel);
    };
    open_all(
        3, 2s, [](Node) { return two_plans(udp_that_loses(0), std::make_unique<shmem::ShmemDevice>()); },
        is_slept_on);
}

TEST(CompositeDevice, a_way_that_does_not_answer_is_passed_over) {
    const Instant start = now();
    open_all(
        3, 200ms,
        // it hears, but is not heard
        [](Node node) { return two_plans(udp_that_loses(node == 1 ? 1 : 0), std::make_unique<shmem::ShmemDevice>()); },
        [](Node node, auto& channel) {
            ASSERT_TRUE(channel) << channel.error().text();
            for (Node to = 0; to < 3; ++to)
                if (to != node) {
                    EXPECT_EQ((*channel)->carrier(to), node == 1 || to == 1 ? "second" : "first")
                        << node << " to " << to;
                }
            talk(**channel);
        });
    EXPECT_LT(now() - start, 5s); // nor does anybody wait for it at the end
}

TEST(CompositeDevice, a_way_that_loses_some_is_used) {
    open_all(
        4, 5s, [](Node) { return two_plans(udp_that_loses(0.2), std::make_unique<shmem::ShmemDevice>()); },
        [](Node, auto& channel) {
            ASSERT_TRUE(channel) << channel.error().text();
            for (Node to = 0; to < 4; ++to) EXPECT_EQ((*channel)->carrier(to), "first");
        });
}

TEST(CompositeDevice, nodes_that_reach_each_other_by_nothing_are_named) {
    open_all(
        3, 100ms,
        [](Node node) { return two_plans(udp_that_loses(node == 2 ? 1 : 0), udp_that_loses(node == 2 ? 1 : 0)); },
        [](Node node, auto& channel) {
            ASSERT_FALSE(channel);
            EXPECT_EQ(channel.error().text(),
                      fmt::format("node {} reaches {} by no network, of those that should join them; see kumi map",
                                  node, node == 2 ? "nodes 0, 1" : "node 2"));
        });
}

TEST(CompositeDevice, a_node_may_be_on_some_of_the_networks_only) {
    // The first plan joins nobody with anybody; all take part in opening it all the same.
    open_all(
        3, 2s,
        [](Node node) {
            auto plans = two_plans(nullptr, udp_that_loses(0));
            plans[0].members = {node};
            return plans;
        },
        [](Node, auto& channel) {
            ASSERT_TRUE(channel) << channel.error().text();
            talk(**channel);
        });
}

std::vector<Plan> measured(std::vector<Plan> plans) {
    for (Plan& plan : plans) plan.is_measured = true;
    return plans;
}

TEST(CompositeDevice, of_measured_plans_the_faster_is_used) {
    open_all(
        4, 5s, [](Node) { return measured(two_plans(slow_udp(), std::make_unique<shmem::ShmemDevice>())); },
        [](Node, auto& channel) {
            ASSERT_TRUE(channel) << channel.error().text();
            for (Node to = 0; to < 4; ++to) EXPECT_EQ((*channel)->carrier(to), "second");
            talk(**channel);
        });
}

TEST(CompositeDevice, a_plan_that_is_not_measured_keeps_its_place) {
    open_all(
        3, 5s,
        [](Node) {
            auto plans = two_plans(udp_that_loses(0), udp_that_loses(0.2));
            plans.push_back({"third", std::make_unique<shmem::ShmemDevice>(), {}});
            plans[1].is_measured = plans[2].is_measured = true;
            return plans;
        },
        [](Node, auto& channel) {
            ASSERT_TRUE(channel) << channel.error().text();
            for (Node to = 0; to < 3; ++to) EXPECT_EQ((*channel)->carrier(to), "first");
        });
}

TEST(CompositeDevice, a_measured_plan_that_does_not_work_is_passed_over) {
    open_all(
        3, 200ms, [](Node) { return measured(two_plans(udp_that_loses(1), std::make_unique<shmem::ShmemDevice>())); },
        [](Node, auto& channel) {
            ASSERT_TRUE(channel) << channel.error().text();
            for (Node to = 0; to < 3; ++to) EXPECT_EQ((*channel)->carrier(to), "second");
            talk(**channel);
        });
}

TEST(CompositeDevice, plans_of_different_nodes_are_measured_by_their_own) {
    // A fast network of nodes 2 to 4, and a slow one of all.
    open_all(
        5, 5s,
        [](Node node) {
            auto plans = measured(two_plans(slow_udp(), node > 1 ? udp_that_loses(0) : nullptr));
            plans[1].members = {2, 3, 4};
            return plans;
        },
        [](Node node, auto& channel) {
            ASSERT_TRUE(channel) << channel.error().text();
            for (Node to = 0; to < 5; ++to)
                if (to != node) {
                    EXPECT_EQ((*channel)->carrier(to), node > 1 && to > 1 ? "second" : "first") << node << " to " << to;
                }
            talk(**channel);
        });
}

/// Tells node 0 of a job of two what node 1 is said to have told.
class OneSidedMeeting final : public pm::Meeting {
public:
    explicit OneSidedMeeting(std::vector<std::byte> other) : other_(std::move(other)) {}
    Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine) override {
        if (++exchanges > 1) return error("the first exchange was believed");
        return std::vector<std::vector<std::byte>>{{mine.begin(), mine.end()}, other_};
    }
    Result<base::Descriptor> share(base::Descriptor) override { return base::Descriptor{}; }

    int exchanges = 0;

private:
    std::vector<std::byte> other_;
};

TEST(CompositeDevice, a_name_to_wake_a_node_by_is_not_longer_than_names_are) {
    const auto reason = [](std::size_t report_bytes, std::uint8_t name_bytes) {
        std::vector<std::byte> report(sizeof(WakeSocket::Name));
        report.back() = std::byte{name_bytes};
        report.resize(report_bytes);
        OneSidedMeeting meeting(report);
        const auto keys = base::make_job_keys();
        std::vector<Plan> plans(1);
        plans[0].members = {0, 1};
        CompositeDevice device(std::move(plans), [](std::size_t, Node) { return false; }, 1ms);
        return device.open({.self = 0, .nodes = 2, .meeting = meeting, .keys = *keys}).error().text();
    };
    const std::string believed = "the first exchange was believed",
                      refused = "node 1 opens another device: are all nodes of one version?";
    EXPECT_EQ(reason(16, 15), believed);
    EXPECT_EQ(reason(16, 16), refused);
    EXPECT_EQ(reason(16, 255), refused);
    EXPECT_EQ(reason(15, 6), refused);
}

} // namespace
} // namespace kumi::device::composite
