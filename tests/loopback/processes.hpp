#pragma once

// Nodes as processes that open their ends themselves, as the nodes of a job do. Some of them may be killed.

#include "kumi/pm/device.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <new>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace kumi::loopback {

/// Where processes of one host meet. Made before they are forked.
class ProcessPlace {
public:
    explicit ProcessPlace(pm::Node nodes) : nodes_(nodes) {
        void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        EXPECT_NE(memory, MAP_FAILED);
        shared_ = new (memory) Shared;
        for (pm::Node node = 0; node < nodes; ++node) {
            int both[2];
            EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, both), 0);
            to_.emplace_back(both[0]);
            at_.emplace_back(both[1]);
        }
    }
    ProcessPlace(const ProcessPlace&) = delete;
    ProcessPlace& operator=(const ProcessPlace&) = delete;
    ~ProcessPlace() { ::munmap(shared_, sizeof(Shared)); }

private:
    friend class ProcessMeeting;
    static constexpr std::size_t nodes_max = 16, told_bytes_max = 4096;
    struct Shared {
        std::atomic<std::uint32_t> come{0};
        std::atomic<std::uint32_t> read{0};
        std::size_t bytes[nodes_max] = {};
        std::byte told[nodes_max][told_bytes_max] = {};
    };

    pm::Node nodes_;
    Shared* shared_;
    std::vector<base::Descriptor> to_, at_; // by node: both ends of a socket
};

/// One node's. For devices that exchange little.
class ProcessMeeting final : public pm::Meeting {
public:
    ProcessMeeting(ProcessPlace& place, pm::Node self) : place_(place), self_(self) {}

    Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine) override {
        ProcessPlace::Shared& shared = *place_.shared_;
        if (mine.size() > place_.told_bytes_max || place_.nodes_ > place_.nodes_max) return error("too much to tell");
        shared.bytes[self_] = mine.size();
        std::copy(mine.begin(), mine.end(), shared.told[self_]);
        ++round_;
        if (auto all = meet(shared.come); !all) return all.error();
        std::vector<std::vector<std::byte>> told;
        for (pm::Node node = 0; node < place_.nodes_; ++node)
            told.emplace_back(shared.told[node], shared.told[node] + shared.bytes[node]);
        if (auto all = meet(shared.read); !all) return all.error();
        return told;
    }
    Result<base::Descriptor> share(base::Descriptor mine) override {
        char byte = 0;
        iovec content{&byte, 1};
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
        msghdr message{};
        message.msg_iov = &content;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        if (self_ != 0) {
            if (::recvmsg(place_.at_[self_].get(), &message, MSG_CMSG_CLOEXEC) != 1) return error("nothing was shared");
            auto got = base::descriptors_in(message);
            if (got.size() != 1) return error("no descriptor was shared");
            return std::move(got[0]);
        }
        cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        const int number = mine.get();
        std::memcpy(CMSG_DATA(header), &number, sizeof number);
        for (pm::Node node = 1; node < place_.nodes_; ++node)
            if (::sendmsg(place_.to_[node].get(), &message, MSG_NOSIGNAL) != 1) return error("sharing failed");
        return mine;
    }

private:
    /// Waits until all have counted themselves, which publishes what they wrote before.
    Result<void> meet(std::atomic<std::uint32_t>& count) {
        ++count;
        for (const Instant end = now() + std::chrono::seconds(20); count < round_ * place_.nodes_;) {
            if (now() > end) return error("not all nodes have come");
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
        return {};
    }

    ProcessPlace& place_;
    pm::Node self_;
    std::uint32_t round_ = 0;
};

/// Runs `body` on all nodes, each in a process of its own that opens its end by `make`. A process of `victims` is
/// killed when its body returns; the others close their ends. A failed expectation in any of them fails the test.
inline void run_and_kill(pm::Node nodes, const std::vector<pm::Node>& victims,
                         const std::function<std::unique_ptr<pm::Device>(pm::Node self)>& make,
                         const std::function<void(pm::Channel&)>& body) {
    std::fflush(nullptr); // or each child prints it again
    ProcessPlace place(nodes);
    const auto keys = base::make_job_keys();
    ASSERT_TRUE(keys) << keys.error().text();
    const auto is_victim = [&](pm::Node node) { return std::ranges::find(victims, node) != victims.end(); };
    std::vector<pid_t> processes;
    for (pm::Node node = 0; node < nodes; ++node) {
        const pid_t pid = ::fork();
        ASSERT_GE(pid, 0);
        if (pid == 0) {
            {
                ProcessMeeting meeting(place, node);
                const auto device = make(node);
                auto channel = device->open(
                    {.self = node, .nodes = nodes, .cores_on_host = nodes, .meeting = meeting, .keys = *keys});
                EXPECT_TRUE(channel) << channel.error().text();
                if (channel) body(**channel);
                std::fflush(nullptr);
                if (is_victim(node) && !testing::Test::HasFailure()) ::kill(::getpid(), SIGKILL);
            }
            ::_exit(testing::Test::HasFailure() ? 1 : 0);
        }
        processes.push_back(pid);
    }
    for (pm::Node node = 0; node < nodes; ++node) {
        int status = 0;
        ::waitpid(processes[node], &status, 0);
        if (is_victim(node)) EXPECT_TRUE(WIFSIGNALED(status)) << "node " << node << " was to be killed";
        else EXPECT_EQ(status, 0) << "the process of node " << node << " failed";
    }
}

} // namespace kumi::loopback
