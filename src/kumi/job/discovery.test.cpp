#include "kumi/job/discovery.hpp"

#include <cstring>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>

namespace kumi::job {
namespace {

using Reports = std::vector<std::vector<std::byte>>;

/// One node's, among others that are made up: `told` makes all reports of its own.
class FakeSession final : public boot::Session {
public:
    FakeSession(boot::Standing standing, std::function<Reports(std::vector<std::byte>)> told,
                base::Descriptor page = {})
        : standing_(std::move(standing)), told_(std::move(told)), page_(std::move(page)) {}

    const boot::Standing& standing() const noexcept override { return standing_; }
    Result<Reports> exchange(Bytes mine) override { return told_({mine.begin(), mine.end()}); }
    Result<base::Descriptor> share_on_host(base::Descriptor) override { return std::move(page_); }
    void report_traffic(std::span<const boot::TrafficEntry>) override {}
    void report_stats(std::span<const boot::StatsEntry>) override {}
    bool report_failure(const Error&) override { return false; }
    void leave() override {}

private:
    boot::Standing standing_;
    std::function<Reports(std::vector<std::byte>)> told_;
    base::Descriptor page_;
};

constexpr std::size_t slot_at = 16; // in a report, behind the host's mark

boot::Standing node_0_of_2() { return {.node = 0, .nodes = 2, .slot = 0, .nodes_on_host = 2, .host = "here"}; }

TEST(LookAround, nodes_that_read_the_same_mark_are_on_one_host) {
    FakeSession session(node_0_of_2(), [](std::vector<std::byte> mine) {
        auto theirs = mine;
        theirs[slot_at] = std::byte{1};
        return Reports{mine, theirs};
    });
    const auto found = discover_cluster(session);
    ASSERT_TRUE(found) << found.error().text();
    ASSERT_EQ(found->cluster.hosts.size(), 1u);
    EXPECT_EQ(found->cluster.hosts[0].name, "here");
    EXPECT_EQ(found->cluster.hosts[0].slots, 2u);
    EXPECT_TRUE(found->cluster.networks.empty());
    EXPECT_EQ(found->placement, (cluster::Placement{{0, 0}, {0, 1}}));
}

TEST(LookAround, an_equal_name_makes_no_host) {
    FakeSession session(node_0_of_2(), [](std::vector<std::byte> mine) {
        auto theirs = mine;
        theirs[0] ^= std::byte{1};
        return Reports{mine, theirs};
    });
    const auto found = discover_cluster(session); // and they have the same addresses, too
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().text().find("hosts here and here have no addresses in one subnet: "), 0u)
        << found.error().text();
}

TEST(LookAround, a_node_that_cannot_map_memory_says_so_and_all_give_up) {
    boot::Standing standing = node_0_of_2();
    standing.node = standing.slot = 1;
    std::vector<std::byte> said;
    FakeSession session(
        standing,
        [&](std::vector<std::byte> mine) {
            said = mine;
            return Reports{mine, mine};
        },
        base::Descriptor(::open("/dev/null", O_RDWR | O_CLOEXEC)));
    const auto found = discover_cluster(session);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().text(), "the memory handed over is not a page of Kumi's");

    FakeSession other(node_0_of_2(), [&](std::vector<std::byte> mine) { return Reports{mine, said}; });
    const auto refused = discover_cluster(other);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().text(), "node 1 cannot go on; its own message says why");
}

TEST(LookAround, a_report_that_makes_no_sense_is_refused) {
    const auto look = [](const std::function<void(std::vector<std::byte>&)>& damage) {
        FakeSession session(node_0_of_2(), [&](std::vector<std::byte> mine) {
            auto theirs = mine;
            theirs[0] ^= std::byte{1}; // another host
            damage(theirs);
            return Reports{mine, theirs};
        });
        return discover_cluster(session).error().text();
    };
    EXPECT_EQ(look([](auto& report) { report.resize(3); }),
              "node 1 sent no report: do all nodes have one version of Kumi?");
    EXPECT_EQ(look([](auto& report) { report.resize(24), report[20] = std::byte{1}; }),
              "the report of node 1 is not valid: do all nodes have one version of Kumi?");
    EXPECT_EQ(look([](auto& report) { report[23] = std::byte{0xff}; }),
              "the report of node 1 is not valid: do all nodes have one version of Kumi?");
    EXPECT_EQ(look([](auto& report) { report[slot_at] = std::byte{7}; }),
              "node 1 has slot 7, which is not the next one on its host");
}

/// An interface as a report has it: "10.0.0.1/BITS" of so many bytes.
void add_interface(std::vector<std::byte>& report, std::uint32_t address_bytes = 4, std::uint32_t bits = 24) {
    struct {
        char name[16] = "eth0";
        std::uint8_t address[16] = {10, 0, 0, 1};
        std::uint32_t address_bytes, bits, leads_out = 0;
    } const body{.address_bytes = address_bytes, .bits = bits};
    static_assert(sizeof body == 44);
    const Bytes bytes = bytes_of(body);
    report.insert(report.end(), bytes.begin(), bytes.end());
}

/// Whether node 0 understands what node 1 tells of its own host: so many interfaces, of which `add` adds each.
bool is_understood(std::uint32_t interfaces, const std::function<void(std::vector<std::byte>&)>& add,
                   std::uint32_t added) {
    FakeSession session(node_0_of_2(), [&](std::vector<std::byte> mine) {
        auto theirs = mine;
        theirs[0] ^= std::byte{1}; // another host
        theirs.resize(24);
        std::memcpy(&theirs[20], &interfaces, sizeof interfaces);
        for (std::uint32_t i = 0; i < added; ++i) add(theirs);
        return Reports{mine, theirs};
    });
    const auto found = discover_cluster(session);
    return found || found.error().text() != "the report of node 1 is not valid: do all nodes have one version of Kumi?";
}

TEST(LookAround, a_host_tells_of_256_interfaces_and_not_of_one_more) {
    const auto add = [](std::vector<std::byte>& report) { add_interface(report); };
    EXPECT_TRUE(is_understood(256, add, 256));
    EXPECT_FALSE(is_understood(257, add, 257));
    EXPECT_FALSE(is_understood(256, add, 255)) << "one is missing";
    const auto add_cut = [](std::vector<std::byte>& report) {
        add_interface(report);
        report.pop_back();
    };
    EXPECT_FALSE(is_understood(1, add_cut, 1)) << "a byte is missing";
}

TEST(LookAround, an_address_has_4_or_16_bytes_and_no_more_bits_than_that) {
    const auto is_good = [](std::uint32_t bytes, std::uint32_t bits) {
        return is_understood(1, [=](std::vector<std::byte>& report) { add_interface(report, bytes, bits); }, 1);
    };
    EXPECT_TRUE(is_good(4, 32));
    EXPECT_FALSE(is_good(4, 33));
    EXPECT_TRUE(is_good(16, 128));
    EXPECT_FALSE(is_good(16, 129));
    for (const std::uint32_t bytes : {0u, 3u, 5u, 15u, 17u}) EXPECT_FALSE(is_good(bytes, 0)) << bytes;
}

} // namespace
} // namespace kumi::job
