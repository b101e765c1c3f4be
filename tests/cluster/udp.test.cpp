// Jobs whose nodes talk over UDP.
#include "cluster/command.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

using namespace kumi::cluster_test;

namespace {

/// Over UDP, with more in the environment.
Outcome run_udp(const Words& words, Words environment = {}) {
    environment.emplace_back("KUMI_DEVICE=udp");
    return run({.words = words, .environment = environment});
}

/// Counters may follow.
void expect_ring_first(const Outcome& outcome, long nodes, long rounds) {
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(outcome.out.find(ring_result(nodes, rounds)), 0u) << outcome.out;
}

/// The job ends with one line that says what is wrong.
void expect_cannot_go_on(const Outcome& outcome, const std::string& pattern) {
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(
        is_one_line(outcome.err, "kumi run: " + any_node + "cannot go on: " + pattern + "(; ending [0-9]+ nodes?)?"));
}

/// What all nodes counted under `name`; -1: there is no such column in a table of totals.
long total_of(const std::string& out, const std::string& name) {
    const auto lines = lines_of(out);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        std::istringstream heading(lines[i]);
        Words names;
        for (std::string word; heading >> word;) names.push_back(word);
        const auto at = std::find(names.begin(), names.end(), name);
        if (names.empty() || names[0].find("udp") != 0 || at == names.end()) continue;
        for (std::size_t row = i + 1; row < lines.size(); ++row) {
            std::istringstream line(lines[row]);
            Words values;
            for (std::string word; line >> word;) values.push_back(word);
            if (values.empty() || values[0] != "total") continue;
            const auto from_the_end = static_cast<std::size_t>(names.end() - at); // the first column has several words
            if (from_the_end >= values.size()) return -1;
            std::string value = values[values.size() - from_the_end];
            std::erase(value, ',');
            return std::atol(value.c_str());
        }
    }
    return -1;
}

/// A port that nobody has at the moment.
std::uint16_t free_port() {
    const int descriptor = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    EXPECT_EQ(::bind(descriptor, reinterpret_cast<sockaddr*>(&address), bytes), 0);
    EXPECT_EQ(::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
    ::close(descriptor);
    return ntohs(address.sin_port);
}

} // namespace

// ---- what works

TEST(Udp, a_ring_works_with_one_two_and_eight_nodes) {
    for (const long nodes : {1L, 2L, 8L})
        expect_ring_first(run_udp(kumi_run({"-n", std::to_string(nodes), example("02_ring"), "20"})), nodes, 20);
}

TEST(Udp, a_ring_works_over_ipv6) {
    if (!probes::has_ipv6()) KUMI_SKIP(skips::no_ipv6);
    expect_ring_first(run_udp(kumi_run({"-n", "3", example("02_ring"), "20"}), {"KUMI_UDP_ADDRESS=::1"}), 3, 20);
}

TEST(Udp, an_encrypted_ring_works) {
    const Outcome libraries = run({.words = {"ldd", example("02_ring")}});
    ASSERT_EQ(libraries.code, 0) << libraries.err;
    if (!contains(libraries.out, "libcrypto")) KUMI_SKIP(skips::built_without("OpenSSL"));
    expect_ring_first(run_udp(kumi_run({"-n", "3", example("02_ring"), "50"}), {"KUMI_UDP_ENCRYPT=yes"}), 3, 50);
}

TEST(Udp, a_ring_works_though_packets_are_lost_and_the_repairs_are_shown) {
    const Outcome outcome =
        run_udp(kumi_run({"-n", "3", "--stats", example("02_ring"), "300"}), {"KUMI_FAULT=udp.loss=0.05,udp.seed=4"});
    expect_ring_first(outcome, 3, 300);
    EXPECT_GT(total_of(outcome.out, "repairs_sent"), 0) << outcome.out;
}

TEST(Udp, faults_of_every_kind_are_survived) {
    const Outcome outcome =
        run_udp(kumi_run({"-n", "3", "--stats", example("02_ring"), "100"}),
                {"KUMI_FAULT=udp.loss=0.02,udp.duplicate=0.05,udp.reorder=0.05,udp.corrupt=0.05,udp.truncate=0.05"});
    expect_ring_first(outcome, 3, 100);
    for (const char* name : {"dropped_damaged", "dropped_truncated", "duplicates"})
        EXPECT_GT(total_of(outcome.out, name), 0) << name << "\n" << outcome.out;
}

// ---- what is refused

TEST(Udp, a_device_that_there_is_none_of_is_refused_with_those_that_there_are) {
    const Outcome outcome =
        run({.words = kumi_run({"-n", "2", example("01_hello")}), .environment = {"KUMI_DEVICE=carrier-pigeon"}});
    expect_cannot_go_on(outcome, "KUMI_DEVICE=carrier-pigeon: write shmem, udp or composite");
}

TEST(Udp, a_fault_that_makes_no_sense_is_named_with_what_to_write) {
    for (const char* fault : {"udp.lost=0.1", "udp.loss=2", "loss=0.1"})
        expect_cannot_go_on(run_udp(kumi_run({"-n", "2", example("01_hello")}), {std::string("KUMI_FAULT=") + fault}),
                       std::string("KUMI_FAULT: ") + fault + ": write udp.loss=0.01 .*");
}

TEST(Udp, a_port_or_an_address_that_is_none_is_named_with_what_to_write) {
    const Words hello = kumi_run({"-n", "2", example("01_hello")});
    for (const char* port : {"65536", "http", ""})
        expect_cannot_go_on(run_udp(hello, {std::string("KUMI_UDP_PORT=") + port}),
                       std::string("KUMI_UDP_PORT=") + port + ": write a whole number from 0 to 65535");
    expect_cannot_go_on(run_udp(hello, {"KUMI_UDP_ADDRESS=localhost"}),
                        "udp: localhost: write a numeric address such as 10.0.0.1 or fd00::1");
    expect_cannot_go_on(run_udp(hello, {"KUMI_UDP_ADDRESS=0.0.0.0"}),
                        "udp: other nodes cannot send to 0.0.0.0: .*");
    expect_cannot_go_on(run_udp(hello, {"KUMI_UDP_ADDRESS=192.0.2.1"}),
                        "udp: opening 192.0.2.1:0: .*; this host has no such address: .*");
    expect_cannot_go_on(run_udp(hello, {"KUMI_UDP_ENCRYPT=maybe"}), "KUMI_UDP_ENCRYPT=maybe: write yes or no");
    expect_cannot_go_on(run_udp(hello, {"KUMI_UDP_BUFFER=much"}), "KUMI_UDP_BUFFER=much: .*");
}

TEST(Udp, one_port_for_two_nodes_of_a_host_is_refused_by_name) {
    const std::string port = std::to_string(free_port());
    expect_cannot_go_on(run_udp(kumi_run({"-n", "2", example("01_hello")}), {"KUMI_UDP_PORT=" + port}),
                        "udp: opening 127.0.0.1:" + port +
                            ": .*; another program has this port: choose another, or 0 for any");
}

TEST(Udp, nodes_that_do_not_agree_on_encryption_are_told) {
    Folder folder;
    const std::string one_encrypts = "mkdir \"$1/first\" 2>/dev/null && export KUMI_UDP_ENCRYPT=yes; exec \"$0\"";
    expect_cannot_go_on(run_udp(kumi_run({"-n", "2", "sh", "-c", one_encrypts, example("01_hello"), folder.path()})),
                        "udp: node [01] (encrypts and this one does not|does not encrypt and this one does): set "
                        "encrypt alike on all nodes");
}

// ---- how it ends

TEST(Udp, a_node_that_dies_ends_the_job_and_is_named) {
    const Outcome outcome = run_udp(kumi_run_actor({"-n", "3"}, {"ignore=TERM", "join", "2:abort", "wait"}));
    EXPECT_EQ(outcome.code, 134);
    EXPECT_TRUE(
        is_one_line(without_backtraces(outcome.err),
                    "kumi run: node 2 on [^ ]+ \\(pid [0-9]+\\) was killed by signal 6 \\(Aborted\\)(, core dumped)?; "
                    "ending 2 nodes"));
}

TEST(Udp, a_node_that_has_left_may_go_while_the_others_work_on) {
    const Outcome outcome =
        run_udp(kumi_run_actor({"-n", "3"}, {"join", "0:leave", "0:exit=0", "wait_ms=300", "leave", "say=done"}));
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
}

TEST(Udp, a_waiting_node_uses_less_than_one_percent_of_a_core) {
    if (sanitized) KUMI_SKIP(skips::plain_build_only); // instrumented code is no measure
    const Outcome outcome = run_udp(kumi_run_actor({"-n", "2"}, {"join", "0:sleep=1000", "1:wait_ms=1000"}));
    EXPECT_EQ(outcome.code, 0);
    const std::string words = "node 1: used ";
    ASSERT_EQ(outcome.out.find(words), 0u) << outcome.out;
    EXPECT_LT(std::atol(outcome.out.c_str() + words.size()), 10'000) << "microseconds in 1 s";
}
