#include "kumi/boot/foreign/foreign_job.hpp"

#include "kumi/base/system/machine.hpp"
#include "kumi/boot/foreign/handover.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

namespace kumi::boot {
namespace {

using namespace std::chrono_literals;
using Values = std::vector<std::vector<std::byte>>;

/// What a launcher would keep, for nodes that are threads.
struct Shelf {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::string, std::vector<std::byte>> values;
    std::uint32_t nodes = 0, waiting = 0, fences = 0, left = 0;
    bool is_closed = false; // nobody waits for others any more
    std::chrono::milliseconds patience = 10s;
    /// Changes a value on its way to the shelf.
    std::function<void(std::uint32_t node, std::vector<std::byte>& value)> on_put;
};

class FakeStore final : public KeyValues {
public:
    FakeStore(Shelf& shelf, std::uint32_t node) : shelf_(shelf), node_(node) {}
    std::uint32_t node() const noexcept override { return node_; }
    std::uint32_t nodes() const noexcept override { return shelf_.nodes; }
    Result<void> put(std::string_view key, Bytes value) override {
        const std::lock_guard lock(shelf_.mutex);
        std::vector<std::byte> bytes(value.begin(), value.end());
        if (shelf_.on_put) shelf_.on_put(node_, bytes);
        const bool is_new = shelf_.values.emplace(fmt::format("{}/{}", node_, key), std::move(bytes)).second;
        return is_new ? Result<void>() : error("{} was there already", key);
    }
    Result<void> fence() override {
        std::unique_lock lock(shelf_.mutex);
        const std::uint32_t fences = shelf_.fences;
        if (++shelf_.waiting == shelf_.nodes) {
            shelf_.waiting = 0;
            ++shelf_.fences;
            shelf_.changed.notify_all();
        }
        shelf_.changed.wait_for(lock, shelf_.patience, [&] { return shelf_.fences > fences || shelf_.is_closed; });
        return shelf_.fences > fences ? Result<void>() : error("not all came");
    }
    Result<std::vector<std::byte>> get(std::uint32_t node, std::string_view key) override {
        const std::lock_guard lock(shelf_.mutex);
        const auto entry = shelf_.values.find(fmt::format("{}/{}", node, key));
        if (entry == shelf_.values.end()) return error("there is no {} of node {}", key, node);
        return entry->second;
    }
    void leave() override {
        const std::lock_guard lock(shelf_.mutex);
        ++shelf_.left;
    }

private:
    Shelf& shelf_;
    std::uint32_t node_;
};

/// Nodes on made-up hosts, one thread each.
struct World {
    explicit World(std::vector<std::uint64_t> hosts) : hosts_of_nodes(std::move(hosts)) {
        shelf.nodes = static_cast<std::uint32_t>(hosts_of_nodes.size());
    }

    Result<std::unique_ptr<Session>> join(std::uint32_t node) {
        HostId id = *this_host();
        id.network_inode = hosts_of_nodes[node];
        return join_foreign_job(std::make_unique<FakeStore>(shelf, node), id, shelf.patience);
    }

    /// Every node joins and does `work`.
    void run(const std::function<void(Session&)>& work) {
        std::vector<std::thread> threads;
        for (std::uint32_t node = 0; node < shelf.nodes; ++node)
            threads.emplace_back([this, node, &work] {
                auto session = join(node);
                ASSERT_TRUE(session) << session.error().text();
                work(**session);
                (*session)->leave();
            });
        for (std::thread& thread : threads) thread.join();
        EXPECT_EQ(shelf.left, shelf.nodes);
    }

    std::vector<std::uint64_t> hosts_of_nodes;
    Shelf shelf;
};

TEST(ForeignSession, nodes_of_one_host_know_their_slots_and_share_one_key) {
    World world({7, 7, 7});
    std::mutex mutex;
    std::vector<base::JobKeys> keys;
    world.run([&](Session& session) {
        const Standing& standing = session.standing();
        EXPECT_EQ(standing.nodes, 3u);
        EXPECT_EQ(standing.slot, standing.node);
        EXPECT_EQ(standing.nodes_on_host, 3u);
        EXPECT_GE(standing.cores_on_host, 1u);
        EXPECT_EQ(standing.hosts, std::vector<std::string>{standing.host});
        EXPECT_FALSE(standing.traffic_wanted || standing.stats_wanted);
        EXPECT_FALSE(session.report_failure(error("none")));
        const std::lock_guard lock(mutex);
        keys.push_back(standing.keys);
    });
    ASSERT_EQ(keys.size(), 3u);
    EXPECT_NE(keys[0].token, 0u);
    EXPECT_EQ(keys[0], keys[1]);
    EXPECT_EQ(keys[0], keys[2]);
}

TEST(ForeignSession, hosts_are_told_apart_and_slots_counted_on_each) {
    World world({1, 2, 1, 3, 2, 1});
    const std::vector<std::uint32_t> slots{0, 0, 1, 0, 1, 2}, on_host{3, 2, 3, 1, 2, 3};
    world.run([&](Session& session) {
        const Standing& standing = session.standing();
        EXPECT_EQ(standing.slot, slots[standing.node]);
        EXPECT_EQ(standing.nodes_on_host, on_host[standing.node]);
        EXPECT_EQ(standing.hosts.size(), 3u);
    });
}

TEST(ForeignSession, one_node_is_a_job_too) {
    World world({1});
    world.run([](Session& session) {
        EXPECT_EQ(session.standing().nodes_on_host, 1u);
        EXPECT_EQ(session.exchange(bytes_of('a'))->size(), 1u);
        EXPECT_FALSE(*session.share_on_host({}));
    });
}

TEST(ForeignSession, every_round_of_exchange_brings_what_all_gave_in_that_round) {
    World world({1, 1, 2, 2});
    world.run([](Session& session) {
        for (std::uint32_t round = 0; round < 5; ++round) {
            const std::uint32_t mine = session.standing().node * 100 + round;
            const auto all = session.exchange(round == 3 ? Bytes{} : bytes_of(mine));
            ASSERT_TRUE(all) << all.error().text();
            ASSERT_EQ(all->size(), 4u);
            for (std::uint32_t node = 0; node < 4; ++node) {
                std::uint32_t theirs = 0;
                EXPECT_EQ(read_value((*all)[node], theirs), round != 3);
                EXPECT_EQ(theirs, round == 3 ? 0 : node * 100 + round);
            }
        }
    });
}

TEST(ForeignSession, a_descriptor_reaches_all_nodes_of_its_host_and_no_others) {
    World world({1, 2, 1, 2, 1});
    std::atomic<int> wrong{0};
    world.run([&](Session& session) {
        const std::uint32_t host = session.standing().node % 2;
        for (char round = 'a'; round < 'd'; ++round) {
            base::Descriptor mine;
            const char text[2] = {static_cast<char>('0' + host), round};
            if (session.standing().slot == 0) {
                mine.reset(::memfd_create("test", MFD_CLOEXEC));
                ASSERT_EQ(::pwrite(mine.get(), text, 2, 0), 2);
            }
            auto shared = session.share_on_host(std::move(mine));
            ASSERT_TRUE(shared) << shared.error().text();
            EXPECT_EQ(static_cast<bool>(*shared), session.standing().slot != 0);
            char read[2] = {text[0], text[1]};
            if (*shared && (::pread(shared->get(), read, 2, 0) != 2 || read[0] != text[0] || read[1] != text[1]))
                ++wrong;
        }
    });
    EXPECT_EQ(wrong, 0);
}

TEST(ForeignSession, a_node_whose_descriptors_do_not_arrive_is_on_a_host_of_its_own) {
    World world({1, 1, 1});
    // Node 0's listener leads nowhere for anybody, as between containers that cannot reach each other.
    std::array<int, 3> puts{};
    world.shelf.on_put = [&](std::uint32_t node, std::vector<std::byte>& value) {
        if (puts[node]++ == 0 && node == 0)
            for (std::size_t i = 64; i < 80; ++i) value[i] ^= std::byte{1};
    };
    world.run([&](Session& session) {
        EXPECT_EQ(session.standing().nodes_on_host, 1u);
        EXPECT_EQ(session.standing().slot, 0u);
        EXPECT_EQ(session.standing().hosts.size(), 3u);
        EXPECT_TRUE(session.share_on_host(base::Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC))));
    });
}

TEST(ForeignSession, a_node_that_never_comes_is_an_error_after_the_deadline) {
    World world({1, 1});
    world.shelf.patience = 50ms;
    const auto session = world.join(0);
    ASSERT_FALSE(session);
    EXPECT_EQ(session.error().text(), "not all came");
}

TEST(ForeignSession, a_card_of_another_version_is_refused_by_node) {
    World world({1, 1});
    world.shelf.patience = 300ms;
    world.shelf.on_put = [](std::uint32_t node, std::vector<std::byte>& value) {
        if (node == 1) value.resize(3);
    };
    std::thread other([&] { (void)world.join(1); });
    const auto session = world.join(0);
    other.join();
    ASSERT_FALSE(session);
    EXPECT_NE(session.error().text().find("node 1 joins with another version of Kumi"), std::string::npos)
        << session.error().text();
}

// Where things are in the information of a node.
constexpr std::size_t info_version_at = 0, cores_bytes_at = 4, listener_at = 64, token_at = 80, info_head_bytes = 120;

template <class T>
T value_at(const std::vector<std::byte>& bytes, std::size_t at) {
    T value{};
    EXPECT_TRUE(read_value(Bytes(bytes).subspan(at), value));
    return value;
}

void put_number(std::vector<std::byte>& bytes, std::size_t at, std::uint32_t number) {
    std::memcpy(bytes.data() + at, &number, sizeof number);
}

/// What a node says at a listener.
struct SentGreeting {
    std::uint64_t token;
    std::uint32_t node;
    std::uint32_t reserved;
};

TEST(ForeignSession, who_knocks_and_is_no_other_node_of_this_job_gets_nothing_and_disturbs_nobody) {
    World world({1, 1, 1});
    std::vector<base::Descriptor> visits; // before those of the nodes
    world.shelf.on_put = [&](std::uint32_t node, std::vector<std::byte>& info) {
        if (node != 0 || !visits.empty()) return;
        const auto listener = value_at<ListenerName>(info, listener_at);
        const auto token = value_at<std::uint64_t>(info, token_at);
        const auto visit = [&](std::uint64_t said_token, std::uint32_t said_node,
                               std::size_t bytes = sizeof(SentGreeting)) {
            const SentGreeting greeting{said_token, said_node, 0};
            auto socket = connect_to(listener, bytes_of(greeting).first(bytes));
            ASSERT_TRUE(socket) << socket.error().text();
            visits.push_back(*std::move(socket));
        };
        visit(token + 1, 1);                        // of another job
        visit(token, 3);                            // one more than there are nodes
        visit(token, 0);                            // the leader itself
        visit(token, 1, sizeof(SentGreeting) - 1); // cut short
        visit(token, 1, 0);
    };
    world.run([](Session& session) {
        EXPECT_EQ(session.standing().nodes_on_host, 3u);
        EXPECT_EQ(session.standing().slot, session.standing().node);
    });
    ASSERT_EQ(visits.size(), 5u);
    for (std::size_t i = 0; i < visits.size(); ++i)
        EXPECT_FALSE(receive_descriptor(visits[i].get(), now() + 10s, "the leader")) << "visitor " << i;
}

TEST(ForeignSession, of_two_who_knock_as_one_node_the_first_is_let_in) {
    World world({1, 1, 1});
    base::Descriptor first;
    world.shelf.on_put = [&](std::uint32_t node, std::vector<std::byte>& info) {
        if (node != 0 || first) return;
        const SentGreeting greeting{value_at<std::uint64_t>(info, token_at), 1, 0};
        auto socket = connect_to(value_at<ListenerName>(info, listener_at), bytes_of(greeting));
        ASSERT_TRUE(socket) << socket.error().text();
        first = *std::move(socket);
    };
    world.run(
        [](Session& session) { EXPECT_EQ(session.standing().nodes_on_host, session.standing().node == 1 ? 1u : 2u); });
}

/// How node 0 fares with a node 1 that leaves something else in `round` of exchange.
std::string reason_with(int round, const std::function<void(std::vector<std::byte>&)>& damage) {
    World world({1, 1});
    int puts = 0;
    world.shelf.on_put = [&](std::uint32_t node, std::vector<std::byte>& value) {
        if (node == 1 && puts++ == round) damage(value);
    };
    std::thread other([&] { (void)world.join(1); });
    const auto session = world.join(0);
    {
        const std::lock_guard lock(world.shelf.mutex);
        world.shelf.is_closed = true; // node 1 shall not wait for node 0
        world.shelf.changed.notify_all();
    }
    other.join();
    return session ? fmt::format("{} on {} hosts", session.value()->standing().nodes,
                                 session.value()->standing().hosts.size())
                   : session.error().text();
}

TEST(ForeignSession, a_card_with_one_byte_of_cores_more_than_it_has_is_refused) {
    const std::string another =
        "node 1 joins with another version of Kumi: build all programs of a job with the same one";
    EXPECT_EQ(reason_with(0, [](auto&) {}), "2 on 1 hosts");
    EXPECT_EQ(reason_with(0,
                          [](auto& info) {
                              put_number(info, cores_bytes_at,
                                         static_cast<std::uint32_t>(info.size() - info_head_bytes));
                          }),
              "2 on 1 hosts")
        << "all that follows is cores";
    EXPECT_EQ(reason_with(0,
                          [](auto& info) {
                              put_number(info, cores_bytes_at,
                                         static_cast<std::uint32_t>(info.size() - info_head_bytes + 1));
                          }),
              another);
    EXPECT_EQ(reason_with(0, [](auto& info) { info.resize(info_head_bytes), put_number(info, cores_bytes_at, 0); }),
              "2 on 1 hosts");
    EXPECT_EQ(reason_with(0, [](auto& info) { info.resize(info_head_bytes - 1); }), another);
    EXPECT_EQ(reason_with(0,
                          [](auto& info) {
                              put_number(info, info_version_at, value_at<std::uint32_t>(info, info_version_at) + 1);
                          }),
              another);
}

TEST(ForeignSession, a_node_is_led_by_one_that_is_not_behind_it) {
    const std::string unknown = "node 1 does not say which host it is on";
    EXPECT_EQ(reason_with(1, [](auto& leader) { put_number(leader, 0, 0); }), "2 on 1 hosts");
    EXPECT_EQ(reason_with(1, [](auto& leader) { put_number(leader, 0, 1); }), "2 on 2 hosts");
    EXPECT_EQ(reason_with(1, [](auto& leader) { put_number(leader, 0, 2); }), unknown);
    EXPECT_EQ(reason_with(1, [](auto& leader) { leader.resize(3); }), unknown);
}

TEST(ForeignSession, the_cores_of_a_host_are_those_that_any_of_its_nodes_may_use) {
    World world({1, 1, 2});
    world.shelf.on_put = [](std::uint32_t node, std::vector<std::byte>& info) {
        if (node != 1 || info.size() < info_head_bytes) return;
        // One core more, which no real machine has, for the others to see.
        info.resize(info_head_bytes + value_at<std::uint32_t>(info, cores_bytes_at));
        info.resize(info_head_bytes + 256);
        info.back() = std::byte{0b10};
        put_number(info, cores_bytes_at, 256);
    };
    world.run([&](Session& session) {
        EXPECT_EQ(session.standing().cores_on_host, base::cores_allowed() + (session.standing().node == 0 ? 1 : 0))
            << "node " << session.standing().node;
    });
}

} // namespace
} // namespace kumi::boot
