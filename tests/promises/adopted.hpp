#pragma once

// Jobs in the worlds of the engine's tests: nodes have a channel, and meet in memory that threads and forked processes
// share. Start a test's nodes after its Assembly is made.

#include "engine/node.hpp"
#include "loopback/passing_channel.hpp"

#include "kumi/boot/session.hpp"
#include "kumi/job/job.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <new>
#include <sys/mman.h>
#include <thread>

namespace kumi::engine_test {

/// Where the nodes of a job exchange what they tell each other when they join.
class Assembly {
public:
    explicit Assembly(Node nodes) : nodes_(nodes) {
        void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        EXPECT_NE(memory, MAP_FAILED);
        shared_ = new (memory) Shared;
    }
    Assembly(const Assembly&) = delete;
    Assembly& operator=(const Assembly&) = delete;
    ~Assembly() { ::munmap(shared_, sizeof(Shared)); }

    Node nodes() const noexcept { return nodes_; }
    Result<std::vector<std::vector<std::byte>>> exchange(Node self, Bytes mine) {
        Slot& own = shared_->slots.at(self);
        if (mine.size() > own.content.size()) return Error(ErrorCode::too_large, "a test exchanges too much");
        own.bytes = mine.size();
        std::ranges::copy(mine, own.content.begin());
        if (!meet()) return Error(ErrorCode::timed_out, "not all nodes have come to the exchange");
        std::vector<std::vector<std::byte>> all;
        for (Node node = 0; node < nodes_; ++node) {
            const auto begin = shared_->slots.at(node).content.begin();
            all.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(shared_->slots.at(node).bytes));
        }
        if (!meet()) return Error(ErrorCode::timed_out, "not all nodes have left the exchange");
        return all;
    }

private:
    struct Slot {
        std::size_t bytes = 0;
        std::array<std::byte, 16 << 10> content{};
    };
    struct Shared {
        std::atomic<std::uint32_t> come{0};
        std::array<Slot, 8> slots{};
    };

    /// Sequentially consistent: what a node wrote before it came is seen by those that leave.
    bool meet() {
        const std::uint32_t mine = shared_->come.fetch_add(1);
        const std::uint32_t all = (mine / nodes_ + 1) * nodes_;
        for (const Instant end = deadline(); shared_->come.load() < all;) {
            if (now() > end) return false;
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
        return true;
    }

    Node nodes_;
    Shared* shared_;
};

class AssembledSession final : public boot::Session {
public:
    AssembledSession(Assembly& assembly, Node self) : assembly_(assembly) {
        standing_.node = self;
        standing_.nodes = assembly.nodes();
        standing_.slot = self;
        standing_.nodes_on_host = assembly.nodes();
        standing_.cores_on_host = 2;
        standing_.host = "here";
        standing_.hosts = {"here"};
    }

    const boot::Standing& standing() const noexcept override { return standing_; }
    Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine) override {
        return assembly_.exchange(standing_.node, mine);
    }
    Result<base::Descriptor> share_on_host(base::Descriptor) override {
        return Error(ErrorCode::misuse, "the channel is open already");
    }
    void report_traffic(std::span<const boot::TrafficEntry>) override {}
    void report_stats(std::span<const boot::StatsEntry>) override {}
    bool report_failure(const Error&) override { return false; }
    void leave() override {}

private:
    Assembly& assembly_;
    boot::Standing standing_;
};

/// The channel of a world, which owns it, as a job has it.
class LentChannel final : public loopback::PassingChannel {
public:
    explicit LentChannel(Channel& channel) : PassingChannel(channel), lent_(channel) {}
    std::string_view carrier(Node node) const noexcept override { return lent_.carrier(node); }
    pm::RemoteMemory* remote_memory() noexcept override { return lent_.remote_memory(); }

private:
    Channel& lent_;
};

inline Result<Job> join(Assembly& assembly, Channel& channel, Handlers&& handlers = {}, Job::Adoption adoption = {}) {
    return Job::adopt(std::make_unique<AssembledSession>(assembly, channel.self()),
                      std::make_unique<LentChannel>(channel), std::move(handlers), std::move(adoption));
}

} // namespace kumi::engine_test
