#pragma once

// Several channels as one (SCore's PM(Composite)): each destination has a route, which is one of the channels and its
// number there; receiving polls them all. Where channels may fail, routes change while the job runs (networks.hpp).
// Unlike other channels this one is for many threads at once.
//
// Locks. One thread at a time receives (`receiving_`); others that poll meanwhile are told "nothing", because it is
// being done for them. A link has a lock for sending, which polling takes too where the device cannot do both at once;
// the networks, among which messages may move, have one together. The order is receiving_, then a link's; whoever holds
// a link's waits for nothing. So a handler may send, on the same link (this thread has its lock already) and on others.
// It must not wait for another thread that sends: a lock may be held while it runs. A thread that is alone takes no
// locks (base/biased_lock.hpp).
//
// Sleep. A thread that is alone sleeps on all links at once, until one of them or wake() ends it. Where there are
// several threads one takes from a link what another waits for, and their sleeps end after a millisecond at the latest:
// whoever wants to know sooner lets one thread receive, and wakes the others himself.
//
// Serialized. Where the callers have a lock of their own none of this is needed: every caller is alone. Then the
// channel can be slept on from outside, by one descriptor that stands for all links.

#include "kumi/base/biased_lock.hpp"
#include "kumi/device/composite/descriptor_set.hpp"
#include "kumi/device/composite/host_memory.hpp"
#include "kumi/device/composite/interface_watch.hpp"
#include "kumi/device/composite/lock.hpp"
#include "kumi/device/composite/networks.hpp"
#include "kumi/device/composite/part.hpp"
#include "kumi/device/composite/wake_socket.hpp"
#include "kumi/pm/channel.hpp"

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kumi::device::composite {

class CompositeChannel final : public pm::Channel, private pm::JointSleep {
public:
    /// A way to a destination: by one of the parts, or over other nodes; see PlannedWay.
    struct Way {
        std::uint32_t part = 0;
        bool is_relayed = false;
        Path path{};
        bool is_silent = false;
    };
    /// `ways_to` says for each destination, self included, how messages get there, the best way first. The others are
    /// of use where the first is by a part that may fail. With a set to sleep on, calls never overlap.
    CompositeChannel(Node self, std::vector<Part> parts, const std::vector<std::vector<Way>>& ways_to,
                     std::unique_ptr<WakeSocket> wakes, const StripeOptions& stripes = {},
                     std::optional<DescriptorSet> sleep_set = {});
    /// What a channel whose calls never overlap is made with; nothing for others.
    static Result<std::optional<DescriptorSet>> open_sleep_set(bool is_serialized, const WakeSocket& wakes);
    /// Before anything else: those whose messages this node is to pass on, and before whom it does not leave.
    void set_served(const std::vector<Node>& sources) { networks_.set_served(sources); }
    /// By node, for people.
    void set_names(std::vector<std::string> names) { networks_.set_names(std::move(names)); }
    void set_silence(Duration limit) { networks_.set_silence(limit); }
    static constexpr std::size_t parts_max = 63;
    /// Stays until what was sent has arrived, and until nobody needs this node as a relay any more.
    ~CompositeChannel() override;

    Node self() const noexcept override { return self_; }
    Node nodes() const noexcept override { return static_cast<Node>(routes_.size()); }
    const pm::Traits& traits() const noexcept override { return traits_; }

    // All from any thread, and at once unless it is serialized. From handlers too, but arm() and sleep(); a handler
    // that polls is told "nothing".
    pm::SendSlot try_reserve(Node to, std::size_t bytes) noexcept override;
    void commit(const pm::SendSlot& slot) noexcept override;
    void cancel(const pm::SendSlot& slot) noexcept override;
    using pm::Channel::try_send;
    bool try_send(Node to, Bytes bytes) noexcept override;
    bool try_send(Node to, Bytes head, Bytes body) noexcept override;
    void flush() noexcept override;
    std::size_t poll(pm::Handler handler, std::size_t messages_max) noexcept override;
    bool arm() noexcept override;
    void sleep(Instant deadline) noexcept override;
    void wake() noexcept override { call_sleeper(); }
    bool lost(Node node) const noexcept override;
    pm::Traffic sent(Node to) const noexcept override;
    std::string_view carrier(Node to) const noexcept override;
    std::vector<pm::Counter> counters() const override;
    /// Null unless it is serialized.
    pm::JointSleep* joint_sleep() noexcept override { return is_serialized_ ? this : nullptr; }
    /// Of the nodes of this host; null without shared memory.
    pm::RemoteMemory* remote_memory() noexcept override { return host_memory_ ? &*host_memory_ : nullptr; }

private:
    struct Guard {
        SpinLock lock;
        std::atomic<const void*> poller{nullptr}; // the thread that polls, with the lock
    };
    struct Link {
        Part part;
        pm::JointSleep* sleep; // null: looked at every now and then
        bool is_apart;         // sends and polls at once
        bool is_light;         // polled every time
        Guard own_guard;
        Guard* guard = &own_guard;            // sending; and all else, unless it is apart
        std::optional<std::uint32_t> network; // among those that may fail
        std::atomic<unsigned> quiet{0};           // polls since something came or went
        unsigned passed_over = 0;                 // polls of the others since it was last thought of
        Instant thought_of{};
        Instant polled{};
        DescriptorSet::Place watched{}, bell{}; // where it is serialized
    };
    struct Route {
        Link* link = nullptr;  // null: networks_ know
        Node number = 0;       // there
        bool reserved = false; // with the link's lock: a slot is out
        bool missed = false;   // with the link's lock: somebody was refused because of that
    };
    class Call;
    class Sending;

    template <class... Pieces>
    bool try_send_pieces(Node to, const Pieces&... pieces) noexcept;
    bool enter() const noexcept;
    bool enter_first() const noexcept;
    std::size_t poll_links(pm::Handler handler, std::size_t messages_max, bool is_alone) noexcept;
    std::size_t poll_link(Link& link, pm::Handler handler, std::size_t messages_max, bool is_alone) noexcept;
    std::size_t poll_network(Link& link, pm::Handler handler, std::size_t messages_max) noexcept;
    void watch_networks(Instant time) noexcept;
    void linger() noexcept;
    bool is_due(Link& link) noexcept;
    void note_quiet(Link& link, bool is_quiet) noexcept;
    template <class End>
    void give_back(const pm::SendSlot& slot, End&& end) noexcept;
    template <class End>
    void give_back_to_networks(End&& end) noexcept;
    Guard& guard_of(const Route& route) const noexcept {
        return route.link != nullptr ? *route.link->guard : networks_guard_;
    }
    void after_send(Link& link) noexcept;
    void after_network_send(Node to) noexcept;
    bool arm_links(bool is_alone) noexcept;
    void sleep_on_links(Instant deadline) noexcept;
    template <class Watch>
    Instant begin_links(bool is_alone, Watch&& watch) noexcept;
    void end_links(bool is_alone, bool have_interfaces_changed) noexcept;
    pm::Watched begin_sleep() noexcept override;
    void end_sleep() noexcept override;
    void tell_sleeper() noexcept;
    void call_sleeper() const noexcept;

    Node self_;
    bool is_serialized_;
    bool is_polling_ = false;  // where it is serialized
    bool is_slept_on_ = false; // the same: from begin_sleep() until it ends, or has been told to
    std::unique_ptr<WakeSocket> wakes_; // outlives the links, whose wakers use it
    std::unique_ptr<Link[]> link_memory_;
    std::span<Link> links_;
    std::vector<Route> routes_; // by destination
    pm::Traits traits_;
    std::optional<HostMemory> host_memory_;
    mutable Guard networks_guard_;
    Networks networks_;
    std::vector<Link*> network_links_; // as they are numbered there
    std::optional<InterfaceWatch> interfaces_; // where there are networks
    Instant watched_{};                        // the networks

    mutable SpinLock receiving_;
    std::atomic<const void*> receiver_{nullptr}; // the thread that polls
    std::size_t first_link_ = 0;                 // to be polled, with receiving_

    std::atomic<const void*> sleeper_{nullptr}; // the thread that has armed the links
    std::atomic<bool> asleep_{false};           // it sleeps, or is about to
    mutable std::atomic<bool> woken_{false};    // wake() was called since
    // of the wake socket, the interfaces and the links, where it is serialized
    std::optional<DescriptorSet> sleep_set_;
    Instant sleep_deadline_{};                  // the same: of who sleeps

    mutable std::atomic<const void*> first_thread_{nullptr};
    mutable base::BiasedLock<base::MachineMemory, base::Visits::never_end> bias_; // its owner is the first thread
    mutable std::atomic<bool> shared_{false}; // others have come since
};

} // namespace kumi::device::composite
