#pragma once

// What ends the sleep of a composite: the wake socket of this node, a change of interfaces and all parts, as one
// descriptor; and wake(), which any thread may call.

#include "kumi/base/result.hpp"
#include "kumi/device/composite/sleep/descriptor_set.hpp"
#include "kumi/device/composite/sleep/wake_socket.hpp"
#include "kumi/pm/joint_sleep.hpp"

#include <atomic>
#include <memory>

namespace kumi::device::composite {

class SleepSet final {
public:
    /// The descriptors of one part that are watched.
    struct OfPart {
        DescriptorSet::Entry descriptor{}, bell{};
    };

    static Result<std::unique_ptr<SleepSet>> open();
    SleepSet(const SleepSet&) = delete;
    SleepSet& operator=(const SleepSet&) = delete;

    /// By which nodes of this host, and wake(), end the sleep.
    const WakeSocket& socket() const noexcept { return socket_; }
    /// Readable when the sleep is to end.
    int descriptor() const noexcept { return set_.descriptor(); }

    /// For good.
    void watch_interfaces(int descriptor) noexcept;
    /// Watches what a part names. False: the system refuses.
    bool watch(OfPart& part, const pm::Watched& watched) noexcept;

    /// This node is about to sleep: from here on wake() sends a byte.
    void begin() noexcept { asleep_.store(true); } // sequentially consistent, as in wake()
    /// wake() was called since the last sleep: after begin(), so that no call is missed.
    bool was_woken() noexcept { return woken_.exchange(false); }
    /// The sleep is over. True: interfaces have changed.
    bool end() noexcept;

    /// Ends the sleep, or the next one if this node is awake. From any thread.
    void wake() noexcept {
        // Sequentially consistent: either this thread sees that the node sleeps, or the node sees that it was woken.
        woken_.store(true);
        if (asleep_.load()) socket_.wake_self();
    }
    /// Ends a sleep that goes on.
    void end_early() const noexcept { socket_.wake_self(); }

private:
    SleepSet(WakeSocket socket, DescriptorSet set) noexcept : socket_(std::move(socket)), set_(std::move(set)) {}

    WakeSocket socket_;
    DescriptorSet set_;
    std::atomic<bool> asleep_{false}; // this node sleeps, or is about to
    std::atomic<bool> woken_{false};  // wake() was called since
};

} // namespace kumi::device::composite
