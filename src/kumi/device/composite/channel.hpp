#pragma once

// Several channels as one (SCore's PM(Composite)). Each destination has a route: one of the parts, and the
// destination's number there. Receiving polls all parts. Where parts may fail, routes change while the job runs
// (networks.hpp).
//
// Threads. As with every channel, calls never overlap; they may come from several threads that have a lock of their
// own, as the engine's have. The composite takes no lock itself. wake() is from any thread. A handler may send by any
// part, also by the one that it is called from; a handler that polls is told "nothing".
//
// Sleep. The node sleeps on all parts at once, by one descriptor that stands for all of them (sleep_set.hpp), until a
// part or wake() ends the sleep. Other threads may send and poll meanwhile (pm/joint_sleep.hpp); what they do may bring
// the time to wake up forward, and then the sleep ends.

#include "kumi/device/composite/host_memory.hpp"
#include "kumi/device/composite/sleep/interface_watch.hpp"
#include "kumi/device/composite/networks/networks.hpp"
#include "kumi/device/composite/part.hpp"
#include "kumi/device/composite/poll_pace.hpp"
#include "kumi/device/composite/sleep/sleep_set.hpp"
#include "kumi/pm/channel.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kumi::device::composite {

/// A way to a destination: by one of the parts, or over other nodes; see PlannedWay.
struct ChosenWay {
    std::uint32_t part = 0;
    bool is_relayed = false;
    Path path{};
    bool is_silent = false;
};

class CompositeChannel final : public pm::Channel, private pm::JointSleep {
public:
    struct Options {
        StripeOptions stripes{};
        std::vector<Node> served{};       // the nodes whose messages this node passes on: it leaves after them
        std::vector<std::string> names{}; // of nodes, for people; "node 3" without
        Duration silence_max = std::chrono::seconds(60);
    };
    static constexpr std::size_t parts_max = 63;

    /// `ways_to` says for each destination, self included, how messages get there, the best way first. The other ways
    /// are of use where the first is by a part that may fail. The wakers of the parts use the socket of `sleep`.
    CompositeChannel(Node self, std::vector<Part> parts, const std::vector<std::vector<ChosenWay>>& ways_to,
                     std::unique_ptr<SleepSet> sleep, Options options);
    /// Stays until what was sent has arrived, and until no node needs this one as a relay any more.
    ~CompositeChannel() override;

    Node self() const noexcept override { return self_; }
    Node nodes() const noexcept override { return static_cast<Node>(routes_.size()); }
    const pm::Traits& traits() const noexcept override { return traits_; }

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
    void wake() noexcept override { sleep_->wake(); }
    bool lost(Node node) const noexcept override;
    pm::Traffic sent(Node to) const noexcept override;
    std::string_view carrier(Node to) const noexcept override;
    std::vector<pm::Counter> counters() const override;
    pm::JointSleep* joint_sleep() noexcept override { return this; }
    /// Of the nodes of this host; null without shared memory.
    pm::RemoteMemory* remote_memory() noexcept override { return host_memory_ ? &*host_memory_ : nullptr; }

private:
    /// A part in use.
    struct Port {
        Part part;
        pm::JointSleep* sleep = nullptr;        // null: the part is looked at every now and then
        std::optional<std::uint32_t> network{}; // its number among those that may fail
        pm::Ways* ways = nullptr;               // of such a part
        std::uint64_t losses = 0;               // of nodes, that the networks were told of
        PollPace pace{};
        SleepSet::OfPart watched{};

        /// In the destructor, while the channel stays for other nodes.
        bool is_closed() const noexcept { return part.channel == nullptr; }
    };
    struct Route {
        Port* port = nullptr;  // null: networks_ know
        Node number = 0;       // there
        bool reserved = false; // a slot is out
        bool missed = false;   // a sender was refused because of that
    };

    void add_route(Node to, const std::vector<ChosenWay>& ways, std::vector<PlannedWay>& planned);
    void open_networks(std::vector<Link> links, const std::vector<std::vector<PlannedWay>>& planned,
                       Options options);
    template <class... Pieces>
    bool try_send_pieces(Node to, const Pieces&... pieces) noexcept;
    template <class End>
    void give_back(const pm::SendSlot& slot, End&& end) noexcept;
    std::size_t poll_ports(pm::Handler handler, std::size_t messages_max) noexcept;
    std::size_t poll_port(Port& port, pm::Handler handler, std::size_t messages_max) noexcept;
    std::size_t poll_network(Port& port, pm::Handler handler, std::size_t messages_max) noexcept;
    void watch_networks(Instant time) noexcept;
    void linger() noexcept;
    void close_part(Port& port) noexcept;
    void after_network_send(Node to) noexcept;
    pm::Watched begin_sleep() noexcept override;
    void end_sleep() noexcept override;
    void stop_watching() noexcept;
    void tell_sleeper() noexcept;

    Node self_;
    bool is_polling_ = false;
    bool is_slept_on_ = false;        // from begin_sleep() until the sleep ends, or has been told to
    bool has_slept_ = false;          // since the networks were last told the time by a poll
    std::unique_ptr<SleepSet> sleep_; // outlives the ports, whose wakers use its socket
    std::vector<Port> ports_;         // never moved
    std::vector<Route> routes_;       // by destination
    std::size_t first_port_ = 0;      // to be polled
    pm::Traits traits_;
    std::optional<HostMemory> host_memory_;
    std::optional<Networks> networks_;         // the ports that may fail
    std::vector<Port*> network_ports_;         // as they are numbered there
    std::optional<InterfaceWatch> interfaces_; // where there are networks
    Instant watched_{};                        // when the networks were last told the time
    Instant sleep_deadline_{};                 // of the sleep that goes on
};

} // namespace kumi::device::composite
