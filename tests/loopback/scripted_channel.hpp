#pragma once

// One end of a channel whose other ends are the test: it says what arrives, and sees what was sent and slept through.

#include "kumi/base/assert.hpp"
#include "kumi/base/sync/futex.hpp"
#include "kumi/pm/channel.hpp"

#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace kumi::loopback {

/// Calls of the test are for any thread. Nothing is lost, refused or delivered unless the test says so.
class ScriptedChannel final : public pm::Channel, private pm::JointSleep {
public:
    struct Letter {
        pm::Node peer; // where it comes from, or goes to
        std::vector<std::byte> bytes;
    };

    explicit ScriptedChannel(pm::Node nodes, pm::Node self = 0, std::size_t message_bytes_max = 1 << 20)
        : traits_{.device = "scripted",
                  .message_bytes_max = message_bytes_max,
                  .bytes_per_peer_max = 1,
                  .latency_class_ns = 1,
                  .bandwidth_class_mb = 1,
                  .polls_memory = true},
          self_(self), sending_(nodes), refuses_(nodes), lost_(nodes) {}

    // ---- what the test does

    /// Will be handed out by a poll. Wakes nobody: ring() does.
    void deliver(pm::Node source, Bytes bytes) {
        const std::lock_guard lock(mutex_);
        arrivals_.push_back({source, {bytes.begin(), bytes.end()}});
    }
    /// Ends a sleep, as an arrival does.
    void ring() {
        word_.fetch_add(1);
        base::futex_wake(word_);
    }
    void refuse(pm::Node to, bool refuses = true) { refuses_[to] = refuses; }
    void lose(pm::Node node) { lost_[node] = true; }
    /// Called with what was sent, by the thread that sends it.
    std::function<void(pm::Node to, Bytes bytes)> on_sent = [](pm::Node, Bytes) {};
    pm::RemoteMemory* memory = nullptr;
    bool is_joint = true; // it can be slept on jointly; before anybody asks

    // ---- what the test sees

    /// What was sent to other nodes since the last call.
    std::vector<Letter> take_sent() {
        const std::lock_guard lock(mutex_);
        return std::exchange(sent_, {});
    }
    unsigned wakes() const { return wakes_; }   // calls of wake()
    unsigned sleeps() const { return sleeps_; } // begun
    bool is_asleep() const { return is_asleep_; }
    /// Sleeps that neither ring() nor wake() ended.
    unsigned slept_out() const { return slept_out_; }
    /// The thread that began the last sleep.
    std::thread::id sleeper() const {
        const std::lock_guard lock(mutex_);
        return sleeper_;
    }
    unsigned flushes() const { return flushes_; }

    // ---- the channel

    pm::Node self() const noexcept override { return self_; }
    pm::Node nodes() const noexcept override { return static_cast<pm::Node>(sending_.size()); }
    const pm::Traits& traits() const noexcept override { return traits_; }
    pm::SendSlot try_reserve(pm::Node to, std::size_t bytes) noexcept override {
        KUMI_ASSERT(to < nodes() && bytes <= traits_.message_bytes_max);
        if (refuses_[to] || lost_[to]) return {};
        sending_[to].resize(bytes + 1);
        return {to, MutableBytes(sending_[to].data(), bytes)};
    }
    void commit(const pm::SendSlot& slot) noexcept override {
        if (slot.to() == self_) return deliver(self_, slot.bytes());
        {
            const std::lock_guard lock(mutex_);
            sent_.push_back({slot.to(), {slot.bytes().begin(), slot.bytes().end()}});
        }
        on_sent(slot.to(), slot.bytes());
    }
    void cancel(const pm::SendSlot&) noexcept override {}
    std::size_t poll(pm::Handler handler, std::size_t messages_max) noexcept override {
        std::size_t handled = 0;
        for (; handled < messages_max; ++handled) {
            std::unique_lock lock(mutex_);
            if (arrivals_.empty()) break;
            const Letter letter = std::move(arrivals_.front());
            arrivals_.pop_front();
            lock.unlock();
            pm::Message message(letter.peer, letter.bytes);
            handler(message);
        }
        return handled;
    }
    bool arm() noexcept override {
        const std::lock_guard lock(mutex_);
        return arrivals_.empty() && std::exchange(seen_, word_.load()) == word_.load();
    }
    void sleep(Instant deadline) noexcept override {
        (void)begin_sleep();
        base::futex_wait(word_, seen_, deadline);
        end_sleep();
    }
    void wake() noexcept override {
        ++wakes_;
        ring();
    }
    bool lost(pm::Node node) const noexcept override { return lost_[node]; }
    pm::Traffic sent(pm::Node) const noexcept override { return {}; }
    pm::JointSleep* joint_sleep() noexcept override { return is_joint ? this : nullptr; }
    pm::RemoteMemory* remote_memory() noexcept override { return memory; }
    void flush() noexcept override { ++flushes_; }

private:
    pm::Watched begin_sleep() noexcept override {
        const std::lock_guard lock(mutex_);
        sleeper_ = std::this_thread::get_id();
        ++sleeps_;
        is_asleep_ = true;
        return {.word = &word_, .value = seen_};
    }
    void end_sleep() noexcept override {
        is_asleep_ = false;
        if (std::exchange(seen_, word_.load()) == word_.load()) ++slept_out_;
    }

    pm::Traits traits_;
    pm::Node self_;
    std::vector<std::vector<std::byte>> sending_;
    std::deque<std::atomic<bool>> refuses_, lost_; // by node
    mutable std::mutex mutex_;                     // guards the next three
    std::deque<Letter> arrivals_;
    std::vector<Letter> sent_;
    std::thread::id sleeper_;
    std::atomic<std::uint32_t> word_{0}; // changes when a sleep is to end
    std::uint32_t seen_ = 0;
    std::atomic<unsigned> wakes_{0}, sleeps_{0}, slept_out_{0}, flushes_{0};
    std::atomic<bool> is_asleep_{false};
};

} // namespace kumi::loopback
