// Composites of encrypted networks: no key may ever meet a nonce twice, whatever happens to the networks.

#include "kumi/device/composite/composite.hpp"
#include "kumi/device/udp/seal/crypto.hpp"
#include "kumi/device/udp/udp.hpp"
#include "kumi/pm/wait.hpp"
#include "loopback/meeting.hpp"
#include "loopback/passing_channel.hpp"
#include "skips.hpp"

#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace kumi::device::composite {
namespace {

using namespace std::chrono_literals;
using pm::Node;

constexpr Node nodes = 3;
constexpr std::size_t networks = 3;
/// A node sends a peer at most so many messages more than it has received from that peer. Otherwise all messages would
/// be sent before the first network fails, and many of them in one packet.
constexpr std::uint64_t ahead_max = 4;

/// Every key and nonce that any network used.
class Uses {
public:
    void note(std::size_t network, Bytes key, Bytes nonce) {
        const std::lock_guard lock(mutex_);
        const std::vector<std::byte> own(key.begin(), key.end());
        const bool is_new = uses_.insert({own, {nonce.begin(), nonce.end()}}).second;
        repeated_ += is_new ? 0 : 1;
        keys_[network].insert(own);
    }
    std::size_t repeated() const { return repeated_; }
    std::size_t all() const { return uses_.size(); }
    std::size_t keys(std::size_t network) const { return keys_.at(network).size(); }
    std::size_t keys() const {
        std::set<std::vector<std::byte>> different;
        for (const auto& [network, own] : keys_) different.insert(own.begin(), own.end());
        return different.size();
    }

private:
    std::mutex mutex_;
    std::set<std::pair<std::vector<std::byte>, std::vector<std::byte>>> uses_;
    std::map<std::size_t, std::set<std::vector<std::byte>>> keys_;
    std::size_t repeated_ = 0;
};

/// Hears nothing and answers nothing while its network is cut.
class CutChannel final : public loopback::PassingChannel {
public:
    CutChannel(std::unique_ptr<pm::Channel> channel, const std::atomic<bool>* is_cut)
        : PassingChannel(std::move(channel)), is_cut_(is_cut) {}
    std::size_t poll(pm::Handler handler, std::size_t messages_max) noexcept override {
        return is_cut_->load() ? 0 : PassingChannel::poll(handler, messages_max);
    }

private:
    const std::atomic<bool>* is_cut_;
};

struct Cluster {
    std::atomic<bool> is_cut[networks]{};
    std::atomic<std::uint64_t> heard = 0;
    Uses uses;

    std::vector<Plan> plans() {
        std::vector<Plan> made;
        for (std::size_t network = 0; network < networks; ++network) {
            udp::Options options{.encrypt = true};
            options.rekeying = {.packets = 8,
                                .on_use = [this, network](Bytes key, Bytes nonce) { uses.note(network, key, nonce); }};
            Plan plan{std::string(1, static_cast<char>('a' + network)),
                      std::make_unique<loopback::WrappingDevice<CutChannel, udp::UdpDevice, const std::atomic<bool>*>>(
                          udp::UdpDevice(options), &is_cut[network]),
                      {}};
            for (Node node = 0; node < nodes; ++node) plan.members.push_back(node);
            made.push_back(std::move(plan));
        }
        return made;
    }

    /// One life of all nodes. Each sends `count` messages to each other node; meanwhile networks fail and return.
    void live(const base::JobKeys& keys, std::uint64_t count) {
        heard = 0;
        loopback::Place place(nodes);
        std::vector<std::thread> threads;
        for (Node node = 0; node < nodes; ++node) threads.emplace_back([&, node] { be(node, place, keys, count); });
        const std::uint64_t all = nodes * (nodes - 1) * count;
        for (std::size_t network = 0; network < networks; ++network) {
            const Instant deadline = now() + 60s;
            const std::uint64_t mark = all * (network + 1) / (networks + 1);
            while (heard.load() < mark && now() < deadline) std::this_thread::sleep_for(1ms);
            for (std::size_t i = 0; i < networks; ++i) is_cut[i] = i == network;
        }
        for (const Instant deadline = now() + 60s; heard.load() < all * 9 / 10 && now() < deadline;)
            std::this_thread::sleep_for(1ms);
        for (std::atomic<bool>& cut : is_cut) cut = false;
        for (std::thread& thread : threads) thread.join();
    }

private:
    void be(Node self, loopback::Place& place, const base::JobKeys& keys, std::uint64_t count) {
        loopback::ThreadMeeting meeting(place, self);
        CompositeDevice device(plans(), [](std::size_t, Node) { return true; }, 5s);
        auto channel = device.open({.self = self, .nodes = nodes, .meeting = meeting, .keys = keys});
        ASSERT_TRUE(channel) << channel.error().text();
        std::vector<std::uint64_t> expected(nodes), sent(nodes);
        const auto hear = [&](pm::Message& message) {
            std::uint64_t number = 0;
            ASSERT_TRUE(read_value(message.bytes(), number));
            EXPECT_EQ(number, expected[message.source()]++);
            ++heard;
        };
        const auto is_done = [&] {
            bool done = true;
            for (Node to = 0; to < nodes; ++to) {
                if (to == self) continue;
                // Until it is refused, or has to wait for messages: nothing wakes a node that sleeps before that.
                while (sent[to] < std::min(count, expected[to] + ahead_max) &&
                       (*channel)->try_send(to, bytes_of(sent[to])))
                    ++sent[to];
                done = done && sent[to] == count && expected[to] == count;
            }
            return done;
        };
        EXPECT_TRUE(pm::poll_until(**channel, hear, is_done, pm::Patience{}, now() + 120s)) << "node " << self;
        channel->reset();
    }
};

TEST(SealedComposite, no_key_meets_a_nonce_twice_on_three_networks_that_fail_and_return_in_two_lives) {
    if (!udp::crypto::is_available()) KUMI_SKIP(skips::built_without("OpenSSL"));
    const auto keys = base::make_job_keys();
    ASSERT_TRUE(keys);
    Cluster cluster;
    std::size_t keys_before = 0;
    for (unsigned life = 0; life < 2; ++life) {
        cluster.live(*keys, 2000);
        EXPECT_EQ(cluster.uses.repeated(), 0u);
        // Each network has at least a key for every direction, and the busy ones have had many.
        for (std::size_t network = 0; network < networks; ++network)
            EXPECT_GE(cluster.uses.keys(network), (life + 1) * nodes * (nodes - 1)) << network;
        EXPECT_GE(cluster.uses.keys(), keys_before + 100);
        keys_before = cluster.uses.keys();
        std::size_t by_network = 0;
        for (std::size_t network = 0; network < networks; ++network) by_network += cluster.uses.keys(network);
        EXPECT_EQ(by_network, keys_before) << "networks share a key";
    }
    EXPECT_GE(cluster.uses.all(), 4000u);
}

} // namespace
} // namespace kumi::device::composite
