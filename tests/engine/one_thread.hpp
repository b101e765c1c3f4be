#pragma once

// A whole job in one thread, on the simulated network: each node has a stack of its own, and whoever polls lets another
// one go on, which one the seed says. So code that waits runs as it is, and a run is a function of its seed.

#include "engine/node.hpp"

#include "kumi/device/simulated/network.hpp"
#include "kumi/pm/remote_memory.hpp"
#include "model/fiber.hpp"
#include "simulation/seeds.hpp"
#include "skips.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <sys/mman.h>

namespace kumi::engine_test {

/// Memory that nodes of a job reach, as if some of them were on one host.
class HostMemory {
public:
    /// So many nodes are on each host; the last may have fewer.
    HostMemory(Node nodes, Node nodes_per_host) : per_host_(nodes_per_host) {
        for (Node node = 0; node < nodes; ++node)
            windows_.push_back(static_cast<std::byte*>(::mmap(nullptr, bytes_each, PROT_READ | PROT_WRITE,
                                                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)));
        for (Node node = 0; node < nodes; ++node) views_.emplace_back(*this, node);
    }
    HostMemory(const HostMemory&) = delete;
    ~HostMemory() {
        for (std::byte* const window : windows_) ::munmap(window, bytes_each);
    }
    pm::RemoteMemory& seen_by(Node node) { return views_[node]; }
    /// By node, the first of its host.
    std::vector<Node> firsts() const {
        std::vector<Node> all;
        for (Node node = 0; node < windows_.size(); ++node) all.push_back(node / per_host_ * per_host_);
        return all;
    }

    static constexpr std::size_t bytes_each = std::size_t{1} << 30; // of which half is a heap

private:
    class View final : public pm::RemoteMemory {
    public:
        View(HostMemory& memory, Node self) : memory_(memory), self_(self) {}
        std::size_t window_bytes() const noexcept override { return bytes_each; }
        Result<MutableBytes> expose(std::uint64_t, std::size_t) override { return MutableBytes(); } // all of it is
        void conceal(std::uint64_t, std::size_t) noexcept override {}
        Result<void> reach(Node) override { return {}; }
        std::byte* direct(Node node, std::uint64_t offset) noexcept override {
            return node / memory_.per_host_ == self_ / memory_.per_host_ ? memory_.windows_[node] + offset : nullptr;
        }

    private:
        HostMemory& memory_;
        Node self_;
    };
    Node per_host_;
    std::vector<std::byte*> windows_; // by node
    std::deque<View> views_;          // by node
};

class OneThread {
public:
    using Options = device::simulated::NetworkOptions;
    using Body = std::function<void(Channel&)>;

    explicit OneThread(const Options& options)
        : options_(options), network_(options), random_(options.seed), is_lost_(options.nodes),
          doing_(options.nodes, "something") {}

    device::simulated::Network& network() { return network_; }
    /// Before run(): all nodes are on one host, as far as their memory goes.
    void share_memory() { share_memory(options_.nodes); }
    /// The same with so many on each host; agree() tells the engines.
    void share_memory(Node nodes_per_host) { memory_.emplace(options_.nodes, nodes_per_host); }
    /// The engine learns who shares memory with whom, as it does when nodes join.
    void agree(Engine& engine) const {
        engine::Agreed agreed;
        for (std::uint32_t i = 0; i < engine.dispatcher().messages().handlers().entries().size(); ++i)
            agreed.handlers.push_back(i);
        for (std::uint32_t i = 0; i < engine.dispatcher().messages().handlers().functions().size(); ++i)
            agreed.functions.push_back(i);
        if (memory_) agreed.firsts = memory_->firsts();
        engine.dispatcher().set_agreement(std::move(agreed));
    }
    /// What the world does, each so many steps.
    std::function<void()> meanwhile = [] {};
    std::uint64_t steps_between = 1000;

    /// From now on the network is parted and heals, as the seed says.
    void part_at_random(std::uint64_t seed) {
        meanwhile = [this, fate = std::mt19937_64(seed)]() mutable {
            std::vector<Node> some;
            for (Node node = 0; node < options_.nodes; ++node)
                if (fate() % 2 == 0) some.push_back(node);
            fate() % 3 == 0 ? network_.part(some) : network_.heal();
        };
    }

    /// That node is gone; to it, so are all others, and it cannot even send to itself.
    void lose(Node node) {
        network_.lose(node);
        is_lost_[node] = true;
    }
    bool is_lost(Node node) const { return is_lost_[node]; }
    /// `self` calls `other` lost, though it is there.
    void lose_link(Node self, Node other) { network_.lose_link(self, other); }
    /// How nodes of such a job open their engines: without a thread of their own, and by the network's clock.
    Setup setup() {
        return {.in_background = false,
                .spin_max = Duration{0},
                .keepalive_every = std::chrono::microseconds(500),
                .clock = [this] { return network_.time(); }};
    }
    /// What a node is about to do: told when nothing goes on.
    void note(Node node, std::string what) { doing_[node] = std::move(what); }

    /// Runs the body of every node to its end; answers how many steps that took.
    std::uint64_t run(const Body& body) {
        std::vector<std::unique_ptr<Channel>> channels;
        for (Node node = 0; node < options_.nodes; ++node)
            channels.push_back(std::make_unique<End>(*this, network_.open(node)));
        std::vector<Node> running;
        for (Node node = 0; node < options_.nodes; ++node) {
            running.push_back(node);
            fibers_.push_back(std::make_unique<model::Fiber>([&, node] {
                try {
                    body(*channels[node]);
                } catch (const Stop&) {
                }
                std::erase(running, node);
            }));
        }
        std::uint64_t steps = 0;
        for (; !running.empty(); ++steps) {
            if (steps % steps_between == steps_between - 1) meanwhile();
            if (steps == steps_max) hang(running);
            current_ = running[random_() % running.size()];
            fibers_[current_]->resume();
        }
        fibers_.clear();
        return steps;
    }

private:
    static constexpr std::uint64_t steps_max = 20'000'000;

    /// A channel whose owner lets others go on whenever it polls, and never sleeps.
    class End final : public Channel {
    public:
        End(OneThread& world, std::unique_ptr<Channel> inner) : world_(world), inner_(std::move(inner)) {}

        Node self() const noexcept override { return inner_->self(); }
        Node nodes() const noexcept override { return inner_->nodes(); }
        const pm::Traits& traits() const noexcept override { return inner_->traits(); }
        pm::SendSlot try_reserve(Node to, std::size_t bytes) noexcept override {
            return inner_->try_reserve(to, bytes);
        }
        void commit(const pm::SendSlot& slot) noexcept override { inner_->commit(slot); }
        void cancel(const pm::SendSlot& slot) noexcept override { inner_->cancel(slot); }
        std::size_t poll(pm::Handler handler, std::size_t messages_max) noexcept override {
            world_.fibers_[self()]->suspend();
            return inner_->poll(handler, messages_max);
        }
        bool arm() noexcept override { return false; }
        void sleep(Instant) noexcept override {}
        void wake() noexcept override {}
        bool lost(Node node) const noexcept override { return world_.is_lost_[self()] || inner_->lost(node); }
        pm::Traffic sent(Node to) const noexcept override { return inner_->sent(to); }
        pm::RemoteMemory* remote_memory() noexcept override {
            return world_.memory_ ? &world_.memory_->seen_by(self()) : nullptr;
        }

    private:
        OneThread& world_;
        std::unique_ptr<Channel> inner_;
    };

    [[noreturn]] void hang(const std::vector<Node>& running) const {
        std::fprintf(stderr,
                     "nothing goes on: KUMI_SEED=%llu; still running:", static_cast<unsigned long long>(options_.seed));
        for (const Node node : running) std::fprintf(stderr, " node %u, %s;", node, doing_[node].c_str());
        std::fprintf(stderr, "\n");
        std::abort(); // stacks cannot be left otherwise
    }

    Options options_;
    device::simulated::Network network_;
    std::optional<HostMemory> memory_;
    std::mt19937_64 random_;
    std::vector<bool> is_lost_;
    std::vector<std::string> doing_; // by node
    std::vector<std::unique_ptr<model::Fiber>> fibers_; // by node
    Node current_ = 0;
};

/// Nodes (two, and less than `more` others), room and refusals as the seed says.
inline OneThread::Options options_of(std::uint64_t seed, std::uint64_t more) {
    std::mt19937_64 random(seed * 7919);
    return {.nodes = static_cast<Node>(2 + random() % more),
            .seed = seed,
            .refusal_chance = static_cast<double>(random() % 4) * 0.1,
            .in_flight_max = std::size_t{1} << random() % 6};
}

/// Some of them, where sanitizers are slow.
inline void for_each_seed([[maybe_unused]] std::uint64_t seeds_usually, const std::function<void(std::uint64_t)>& run) {
#if defined(KUMI_THREAD_SANITIZER)
    KUMI_SKIP(skips::one_thread);
#elif defined(KUMI_ADDRESS_SANITIZER)
    seeds_usually = std::min<std::uint64_t>(seeds_usually, 5);
#endif
    simulation::for_each_seed(seeds_usually, run);
}

/// An engine for a node of such a job: without a thread of its own.
inline Engine open_alone(Channel& channel, Handlers&& handlers = {}) {
    return open(channel, std::move(handlers), {.in_background = false, .spin_max = Duration{0}});
}

} // namespace kumi::engine_test
