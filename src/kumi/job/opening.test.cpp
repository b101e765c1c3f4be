#include "kumi/job/opening.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace kumi::job {
namespace {

/// A variable of the environment, for the length of a test.
struct Setting {
    Setting(const char* given_name, const std::string& text) : name(given_name) { ::setenv(name, text.c_str(), 1); }
    ~Setting() { ::unsetenv(name); }
    const char* name;
};

/// Where a node says it is.
struct ToldPlace {
    std::uint32_t host, slot;
    std::uint64_t cluster;
};

/// Node 0's session, among nodes that say what a test wants, once: nothing is opened here.
class PlacesSession final : public boot::Session {
public:
    explicit PlacesSession(boot::Standing standing, std::function<std::vector<std::byte>(ToldPlace)> other = {})
        : standing_(std::move(standing)), other_(std::move(other)) {}

    const boot::Standing& standing() const noexcept override { return standing_; }
    Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine) override {
        if (!std::exchange(is_first_, false)) return error("that was believed");
        EXPECT_TRUE(read_value(mine, said));
        return std::vector<std::vector<std::byte>>{{mine.begin(), mine.end()}, other_(said)};
    }
    Result<base::Descriptor> share_on_host(base::Descriptor) override { return error("that was believed"); }
    void report_traffic(std::span<const boot::TrafficEntry>) override {}
    void report_stats(std::span<const boot::StatsEntry>) override {}
    bool report_failure(const Error&) override { return false; }
    void leave() override {}

    ToldPlace said{};

private:
    boot::Standing standing_;
    std::function<std::vector<std::byte>(ToldPlace)> other_;
    bool is_first_ = true;
};

boot::Standing one_of_two_hosts(const std::string& host = "a") {
    return {.node = 0, .nodes = 2, .slot = 0, .nodes_on_host = 1, .host = host, .hosts = {"a", "b"}};
}

std::string reason_of(boot::Session& session) {
    const auto channel = open_channel(session);
    return channel ? "none" : channel.error().text();
}

TEST(OpenChannel, a_device_that_there_is_not_is_refused_by_name) {
    const Setting device("KUMI_DEVICE", "myrinet");
    PlacesSession session(one_of_two_hosts());
    EXPECT_EQ(reason_of(session), "KUMI_DEVICE=myrinet: write shmem, udp or composite");
}

TEST(OpenChannel, shared_memory_does_not_join_two_hosts) {
    const Setting device("KUMI_DEVICE", "shmem");
    PlacesSession session(one_of_two_hosts());
    EXPECT_EQ(reason_of(session),
              "KUMI_DEVICE=shmem: the nodes are on 2 hosts (a, b), and shared memory is within one host; unset it");
    boot::Standing many = one_of_two_hosts();
    many.hosts = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
    PlacesSession large(many);
    EXPECT_EQ(reason_of(large), "KUMI_DEVICE=shmem: the nodes are on 9 hosts (a, b, c, d, e, f, g, h, ...), and "
                                "shared memory is within one host; unset it");
}

TEST(OpenChannel, stripes_are_wanted_or_not) {
    const Setting device("KUMI_DEVICE", "composite"), stripes("KUMI_STRIPES", "perhaps");
    boot::Standing alone = one_of_two_hosts();
    alone.nodes_on_host = 2;
    PlacesSession session(alone);
    EXPECT_EQ(reason_of(session), "KUMI_STRIPES=perhaps: write yes or no");
}

/// A cluster file that is gone after the test.
struct ClusterFile {
    explicit ClusterFile(std::string_view text)
        : descriptor(::memfd_create("cluster", MFD_CLOEXEC)), name(fmt::format("/proc/self/fd/{}", descriptor.get())),
          setting("KUMI_CLUSTER", name) {
        EXPECT_EQ(::write(descriptor.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    base::Descriptor descriptor;
    std::string name;
    Setting setting;
};

constexpr std::string_view two_hosts_file = R"(
    [[network]]
    name = "lan"
    [[host]]
    name = "a"
    address.lan = "127.0.0.1"
    [[host]]
    name = "b"
    address.lan = "127.0.0.2"
)";

std::vector<std::byte> as_told(const ToldPlace& place) {
    const Bytes bytes = bytes_of(place);
    return {bytes.begin(), bytes.end()};
}

TEST(OpenChannel, places_that_do_not_fit_the_file_are_refused_by_node) {
    const ClusterFile file(two_hosts_file);
    const auto reason = [](const std::function<std::vector<std::byte>(ToldPlace)>& other) {
        PlacesSession session(one_of_two_hosts(), other);
        return reason_of(session);
    };
    const std::string another = "node 1 has another cluster file: set KUMI_CLUSTER to the same file on all nodes";
    EXPECT_EQ(reason([](ToldPlace mine) { return as_told({1, 0, mine.cluster}); }), "that was believed");
    EXPECT_EQ(reason([](ToldPlace mine) { return as_told({0, 1, mine.cluster}); }), "that was believed");
    EXPECT_EQ(reason([](ToldPlace mine) {
                  return as_told({2, 0, mine.cluster});
              }),
              another)
        << "one host more than there are";
    EXPECT_EQ(reason([](ToldPlace mine) { return as_told({1, 0, mine.cluster + 1}); }), another);
    EXPECT_EQ(reason([](ToldPlace mine) {
                  auto told = as_told({1, 0, mine.cluster});
                  told.pop_back();
                  return told;
              }),
              another);
    EXPECT_EQ(reason([](ToldPlace) { return as_told({0xffffffff, 0, 0}); }),
              fmt::format("node 1 cannot go on: {} does not describe its host, or cannot be read there", file.name));
    const std::string twice =
        fmt::format("two hosts have the name a in {}: give each its own entry there", file.name);
    EXPECT_EQ(reason([](ToldPlace mine) { return as_told({0, 0, mine.cluster}); }), twice);
    EXPECT_EQ(reason([](ToldPlace mine) { return as_told({0, 2, mine.cluster}); }), twice);
}

TEST(OpenChannel, a_host_that_the_file_does_not_describe_says_so_to_the_others_too) {
    const ClusterFile file(two_hosts_file);
    PlacesSession stranger(one_of_two_hosts("c"), [](ToldPlace mine) { return as_told(mine); });
    EXPECT_EQ(reason_of(stranger),
              fmt::format("this host is c, and {} describes none of that name: add it, or correct its name there",
                          file.name));
    EXPECT_EQ(stranger.said.host, 0xffffffff);
    PlacesSession with_domain(one_of_two_hosts("b.example.org"), [](ToldPlace mine) {
        return as_told({0, 0, mine.cluster});
    });
    EXPECT_EQ(reason_of(with_domain), "that was believed");
    EXPECT_EQ(with_domain.said.host, 1u);
}

TEST(OpenChannel, clusters_that_differ_in_what_routes_depend_on_have_different_numbers) {
    const auto number = [](const std::string& text) {
        const ClusterFile file(text);
        PlacesSession session(one_of_two_hosts(), [](ToldPlace mine) { return as_told(mine); });
        (void)reason_of(session);
        return session.said.cluster;
    };
    const std::string text(two_hosts_file);
    const auto with = [&](std::string_view what, std::string_view instead) {
        std::string other = text;
        other.replace(other.find(what), what.size(), instead);
        return number(other);
    };
    EXPECT_EQ(number(text), number("# a comment\n" + text));
    EXPECT_NE(number(text), with("127.0.0.2", "127.0.0.3"));
    EXPECT_NE(number(text), with("name = \"b\"", "name = \"c\""));
    EXPECT_NE(number(text), with("name = \"lan\"", "name = \"lan\"\nencrypt = true"));
    EXPECT_NE(number(text), with("name = \"lan\"", "name = \"lan\"\ntopology = \"ring\""));
}

TEST(OpenChannel, nodes_that_nothing_joins_are_named) {
    const ClusterFile file("[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"");
    PlacesSession session(one_of_two_hosts(), [](ToldPlace mine) { return as_told({1, 0, mine.cluster}); });
    EXPECT_EQ(
        reason_of(session),
        "node 0 on a and node 1 on b have no network in common, and no node that could pass on messages; see kumi map");
}

} // namespace
} // namespace kumi::job
