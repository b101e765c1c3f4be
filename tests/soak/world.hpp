#pragma once

// What all parts of a node of the soak share: its job, the plan, and the judgement of results.

#include "soak/plan.hpp"

#include <kumi/functions.hpp>
#include <kumi/kumi.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <string_view>

namespace kumi::soak {

using namespace std::chrono_literals;

class World {
public:
    explicit World(const Plan& its_plan) : plan(its_plan) {}

    /// Called once, right after join().
    void set_job(Job& job) noexcept { job_ = &job, self_ = job.node(); }
    Job& job() const noexcept { return *job_; }
    Node self() const noexcept { return self_; }
    unsigned epoch() const noexcept { return epoch_.load(); }
    void set_epoch(unsigned epoch) noexcept { epoch_.store(epoch); }

    /// Whether the call may fail because it needs a node that is lost, or may be any moment. Nodes do not wait for one
    /// that is to be lost, and may be in later epochs than that one.
    bool is_risky(Node node) const noexcept { return plan.is_lost(node, epoch()) || is_victim(); }
    bool is_risky(const Set& set) const noexcept;
    bool is_victim() const noexcept { return plan.is_lost(self_, epoch()); }
    /// sync(), and the wait for a flag, tell a loss to each thread that has sent something to the lost node. A thread
    /// may have sent to any node: it relays multicasts and runs handlers while it waits.
    bool is_some_lost() const noexcept { return is_risky(Set::range(0, plan.nodes)); }
    Set survivors() const { return plan.survivors(epoch()); }
    /// Until when a call is to end. A call that must succeed has a time that is passed only by a hang.
    Instant deadline(bool is_risky) const noexcept { return now() + (is_risky ? 1s : 60s); }

    /// True if there is a value. An error ends the program, unless the call was risky and the code says so.
    template <class T>
    bool is_good(const Result<T>& result, bool is_risky, std::string_view what) const {
        if (!result) judge(result.error(), is_risky, what);
        return result.has_value();
    }
    void judge(const Error& error, bool is_risky, std::string_view what) const;
    /// Waits until all that this thread has begun is done.
    void sync() const;
    /// Waits for a flag of this node. Tells a loss only if the call is risky.
    Result<void> wait(const Flag& flag, Flag value, bool is_risky) const;

    /// Ends the program: something is not as it must be.
    [[noreturn]] void wrong(const std::string& what) const;
    template <class T>
    void expect(const T& found, const T& expected, std::string_view what) const {
        if (!(found == expected)) wrong(fmt::format("{}: {} instead of {}", what, found, expected));
    }

    const Plan plan;

private:
    Job* job_ = nullptr;
    Node self_ = 0;
    std::atomic<unsigned> epoch_ = 0;
};

/// What a thread of a node makes calls of its own with.
struct Actor {
    Random random;
    unsigned thread; // from 0; the main thread is 0

    /// Mostly a node that survives this epoch.
    Node some_node(const World& world);
    /// A set of at least two nodes, `member` among them.
    Set some_set(const World& world, Node member);
};

/// Bytes that say where they come from.
std::vector<std::byte> pattern(std::uint64_t key, std::size_t bytes);
bool has_pattern(Bytes bytes, std::uint64_t key);

} // namespace kumi::soak
