#include "kumi/launch/host/pmi/pmi_server.hpp"

#include "kumi/launch/host/pmi/pmi_frames.hpp"

#include <gtest/gtest.h>

namespace kumi::launch::host {
namespace {

using boot::Kind;

/// The second of two hosts, with nodes 2, 3 and 4.
class PmiServerTest : public testing::Test {
protected:
    /// What is said to the process that has spoken; nothing must be said to others.
    std::string said(std::uint32_t slot, const std::string& line) {
        last_ = server_.on_line(slot, line);
        std::string text;
        for (const PmiServer::Line& one : last_.lines) {
            EXPECT_EQ(one.slot, slot);
            text += one.text;
        }
        return text;
    }
    std::optional<Kind> told() const { return last_.frame ? std::optional(last_.frame->kind) : std::nullopt; }
    std::string put_until_now() const {
        const auto fence = decode_fence(last_.frame->body);
        EXPECT_TRUE(fence && fence->key == PmiServer::fence_key);
        return fence ? std::string(text_of(fence->content)) : "";
    }

    PmiServer server_{JobMap{.name = "kumi-1", .parts = {{"a", 0, 2}, {"b", 2, 3}}, .own = 1}};
    PmiServer::Answer last_;
};

TEST_F(PmiServerTest, a_process_joins_learns_its_job_and_leaves) {
    EXPECT_EQ(said(1, "cmd=init pmi_version=1 pmi_subversion=1"),
              "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
    EXPECT_EQ(told(), Kind::mpi_joined);
    EXPECT_EQ(said(1, "cmd=get_maxes"), "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024 rc=0\n");
    EXPECT_EQ(told(), std::nullopt);
    EXPECT_EQ(said(1, "cmd=get_appnum"), "cmd=appnum appnum=0 rc=0\n");
    EXPECT_EQ(said(1, "cmd=get_my_kvsname"), "cmd=my_kvsname kvsname=kumi-1 rc=0\n");
    EXPECT_EQ(said(1, "cmd=get_universe_size"), "cmd=universe_size size=5 rc=0\n");
    EXPECT_EQ(said(1, "cmd=get kvsname=kumi-1 key=PMI_process_mapping"),
              "cmd=get_result rc=0 msg=success value=(vector,(0,1,2),(1,1,3))\n");
    EXPECT_EQ(said(1, "cmd=finalize"), "cmd=finalize_ack rc=0\n");
    EXPECT_EQ(told(), Kind::mpi_left);
}

TEST_F(PmiServerTest, what_is_put_goes_out_at_the_barrier_once) {
    EXPECT_EQ(said(0, "cmd=put kvsname=kumi-1 key=a value=x=1"), "cmd=put_result rc=0 msg=success\n");
    EXPECT_EQ(said(2, "cmd=put kvsname=kumi-1 key=b value=y"), "cmd=put_result rc=0 msg=success\n");
    EXPECT_EQ(said(0, "cmd=get kvsname=kumi-1 key=a"), "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
    for (const std::uint32_t slot : {2u, 0u, 0u}) { // one of them twice
        EXPECT_EQ(said(slot, "cmd=barrier_in"), "");
        EXPECT_EQ(told(), std::nullopt);
    }
    EXPECT_EQ(said(1, "cmd=barrier_in"), "");
    ASSERT_EQ(told(), Kind::fence);
    EXPECT_EQ(put_until_now(), "a=x=1\nb=y\n");
    EXPECT_EQ(said(1, "cmd=barrier_in"), "") << "while the other hosts are waited for";
    EXPECT_EQ(told(), std::nullopt);

    std::string out;
    for (const PmiServer::Line& line : server_.on_fenced(bytes_of(std::string_view("c=z\na=x=1\nb=y\n"))))
        out += std::to_string(line.slot) + " " + line.text;
    EXPECT_EQ(out, "0 cmd=barrier_out rc=0\n1 cmd=barrier_out rc=0\n2 cmd=barrier_out rc=0\n");
    EXPECT_EQ(said(1, "cmd=get kvsname=kumi-1 key=a"), "cmd=get_result rc=0 msg=success value=x=1\n");
    EXPECT_EQ(said(1, "cmd=get kvsname=kumi-1 key=c"), "cmd=get_result rc=0 msg=success value=z\n");
    // The next barrier has only what is new.
    said(0, "cmd=put kvsname=kumi-1 key=a value=2");
    for (const std::uint32_t slot : {0u, 1u, 2u}) said(slot, "cmd=barrier_in");
    ASSERT_EQ(told(), Kind::fence);
    EXPECT_EQ(put_until_now(), "a=2\n");
    server_.on_fenced(bytes_of(std::string_view("a=2\n")));
    EXPECT_EQ(said(1, "cmd=get kvsname=kumi-1 key=a"), "cmd=get_result rc=0 msg=success value=2\n");
}

TEST_F(PmiServerTest, a_process_that_puts_without_end_is_refused) {
    const std::string line = "cmd=put kvsname=kumi-1 key=a value=" + std::string(60'000, 'x');
    int taken = 0;
    while (taken < 1000 && said(0, line) == "cmd=put_result rc=0 msg=success\n") ++taken;
    EXPECT_EQ(taken, 280) << "16 MiB, and one";
    EXPECT_EQ(said(0, line), "cmd=put_result rc=-1 msg=too_much\n");
}

TEST_F(PmiServerTest, an_abort_is_told_with_its_code) {
    EXPECT_EQ(said(1, "cmd=abort exitcode=7 message=so it is"), "");
    ASSERT_EQ(told(), Kind::mpi_aborted);
    const auto abort = decode_abort(last_.frame->body);
    ASSERT_TRUE(abort);
    EXPECT_EQ(abort->code, 7);
    EXPECT_EQ(abort->text, "");
}

TEST_F(PmiServerTest, a_spawn_is_refused_when_all_of_it_has_come) {
    for (const char* const line : {"mcmd=spawn", "nprocs=1", "execname=/bin/true", "cmd=finalize"}) {
        EXPECT_EQ(said(2, line), "") << line;
        EXPECT_EQ(told(), std::nullopt) << line;
    }
    EXPECT_EQ(said(0, "cmd=get_appnum"), "cmd=appnum appnum=0 rc=0\n") << "another process";
    EXPECT_EQ(said(2, "endcmd"), "cmd=spawn_result rc=-1 msg=not_supported\n");
    ASSERT_EQ(told(), Kind::mpi_aborted);
    EXPECT_EQ(decode_abort(last_.frame->body)->text, spawn_refused);
    EXPECT_EQ(said(2, "cmd=get_appnum"), "cmd=appnum appnum=0 rc=0\n");
}

TEST_F(PmiServerTest, what_it_does_not_know_is_answered_so) {
    EXPECT_EQ(said(0, "cmd=publish_name service=s port=p"),
              "cmd=publish_result rc=-1 info=not_supported msg=not_supported\n");
    EXPECT_EQ(said(0, "cmd=lookup_name service=s"), "cmd=lookup_result rc=-1 info=not_supported msg=not_supported\n");
    EXPECT_EQ(said(0, "cmd=unpublish_name service=s"),
              "cmd=unpublish_result rc=-1 info=not_supported msg=not_supported\n");
    EXPECT_EQ(said(0, "cmd=dance"), "cmd=dance_result rc=-1 msg=unknown_command\n");
    EXPECT_EQ(said(0, "cmd=put kvsname=kumi-1 key=a"), "cmd=put_result rc=-1 msg=no_key_or_no_value\n");
    EXPECT_EQ(said(0, "cmd=put kvsname=kumi-1 key=a=b value=c"), "cmd=put_result rc=-1 msg=no_key_or_no_value\n");
    EXPECT_EQ(said(0, "cmd=get kvsname=kumi-1"), "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
    EXPECT_EQ(said(0, "good morning"), "");
    ASSERT_EQ(told(), Kind::failed);
    EXPECT_EQ(text_of(last_.frame->body), "\"good morning\" is no line of PMI-1");
}

TEST(ProcessMapping, hosts_with_as_many_processes_are_one_entry) {
    EXPECT_EQ(process_mapping({{"a", 0, 4}}), "(vector,(0,1,4))");
    EXPECT_EQ(process_mapping({{"a", 0, 2}, {"b", 2, 2}, {"c", 4, 1}, {"d", 5, 2}}),
              "(vector,(0,2,2),(2,1,1),(3,1,2))");
}

TEST(ProcessMapping, one_that_is_too_long_for_a_value_is_not_there) {
    JobMap map{.name = "kumi-1", .parts = {}, .own = 0};
    for (std::uint32_t i = 0, first = 0; i < 200; ++i) {
        map.parts.push_back({std::to_string(i), first, 1 + i % 2});
        first += 1 + i % 2;
    }
    PmiServer server(map);
    EXPECT_EQ(server.on_line(0, "cmd=get kvsname=kumi-1 key=PMI_process_mapping").lines.at(0).text,
              "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
}

} // namespace
} // namespace kumi::launch::host
