#pragma once

// PM over UDP: one socket and one port for any number of peers. The protocol is reliable::Endpoint; this class drives
// it from the socket and the clock. There is no background thread: progress is made in calls that send, poll or sleep.

#include "kumi/base/system/descriptor.hpp"
#include "kumi/base/system/machine.hpp"
#include "kumi/device/udp/faults.hpp"
#include "kumi/device/udp/options.hpp"
#include "kumi/device/udp/seal/seal.hpp"
#include "kumi/device/udp/socket.hpp"
#include "kumi/pm/channel.hpp"
#include "kumi/pm/device.hpp"
#include "kumi/pm/silence.hpp"
#include "kumi/reliable/endpoint/endpoint.hpp"

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace kumi::device::udp {

using pm::Node;

/// What a node tells the others about itself when the channel opens.
struct Hello {
    Address::Wire address;
    std::uint32_t incarnation;
    std::uint32_t credit_guaranteed;
    std::uint32_t encrypt;
    std::uint32_t version;
    SealOffer seal;    // if the node encrypts
    base::HostId host; // zero: not known
};
static_assert(sizeof(Hello) == 152);

class UdpChannel final : public pm::Channel, private pm::BufferOwner, private pm::JointSleep, private pm::Ways {
public:
    /// Binds the socket. Then all nodes must exchange their hello() and pass all of them to meet().
    static Result<std::unique_ptr<UdpChannel>> bind(const Options& options, Node self, Node nodes,
                                                    const base::JobKeys& keys);
    Result<void> meet(std::span<const Hello> hellos);
    ~UdpChannel() override;

    Hello hello() const noexcept;
    const Address& address() const noexcept { return socket_.local(); }

    Node self() const noexcept override { return self_; }
    Node nodes() const noexcept override { return nodes_; }
    const pm::Traits& traits() const noexcept override { return traits_; }

    pm::SendSlot try_reserve(Node to, std::size_t bytes) noexcept override;
    void commit(const pm::SendSlot& slot) noexcept override;
    void cancel(const pm::SendSlot& slot) noexcept override;
    using pm::Channel::try_send;
    bool try_send(Node to, Bytes bytes) noexcept override { return send(to, bytes); }
    bool try_send(Node to, Bytes head, Bytes body) noexcept override { return send(to, {head, body}); }
    void flush() noexcept override;
    std::size_t poll(pm::Handler handler, std::size_t messages_max) noexcept override;
    bool arm() noexcept override;
    void sleep(Instant deadline) noexcept override;
    void wake() noexcept override;
    pm::JointSleep* joint_sleep() noexcept override { return this; }
    pm::Ways* ways() noexcept override { return options_.has_alternatives ? this : nullptr; }
    bool lost(Node node) const noexcept override { return endpoint_.gone(node) != reliable::Gone::no; }
    void give_up(Node node) noexcept override { endpoint_.give_up(node); }
    pm::Traffic sent(Node to) const noexcept override { return sent_[to]; }
    std::vector<pm::Counter> counters() const override;
    std::vector<pm::Counter> counters(Node peer) const override;

    const reliable::Endpoint& endpoint() const noexcept { return endpoint_; }
    /// For tests: from now on allocation fails as if the system had only `bytes` for messages.
    void limit_memory(std::size_t bytes) noexcept { endpoint_.limit_memory(bytes); }

private:
    /// How a thread sleeps on the channel: it receives from the socket, or watches the socket and the bell from
    /// outside.
    enum class Asleep : std::uint8_t { no, receiving, watching };

    UdpChannel(const Options& options, Node self, Node nodes, const base::JobKeys& keys, Socket socket,
               base::Descriptor bell, std::unique_ptr<Seal> seal);

    void release(std::uint64_t token) noexcept override;
    pm::Watched begin_sleep() noexcept override;
    void end_sleep() noexcept override;
    bool are_up() noexcept override { return is_up(socket_.local()); }
    Duration unanswered(Node to, Instant now) const noexcept override { return endpoint_.unanswered(to, now); }
    bool is_silent(Node to) const noexcept override { return endpoint_.is_silent(to); }
    bool has_left(Node to) const noexcept override { return endpoint_.gone(to) == reliable::Gone::left; }
    std::uint64_t losses() const noexcept override { return endpoint_.gone_count(); }
    bool all_arrived(Node to) const noexcept override { return endpoint_.sender(to).idle(); }
    std::uint64_t waiting_bytes(Node to) const noexcept override { return endpoint_.sender(to).queue_bytes(); }
    void begin_close() noexcept override { endpoint_.begin_close(); }
    void each_unarrived(Node to, base::FunctionRef<void(Bytes)> what) const override {
        endpoint_.sender(to).each_unarrived(what);
    }

    bool send(Node to, const Pieces& message) noexcept;
    void count_sent(Node to, std::size_t bytes) noexcept {
        ++sent_[to].messages;
        sent_[to].bytes += bytes;
    }
    void send_packet(Node to, Bytes packet) noexcept { socket_.send(addresses_[to], {packet, {}}); }
    void transmit(Instant time) noexcept;
    void send_part(Node to, Instant time) noexcept;
    bool put_on_wire(const reliable::Series& series, Instant time) noexcept;
    bool send_packets(const reliable::Series& series, std::span<const Datagram> datagrams, Instant time) noexcept;
    std::span<const Datagram> seal_series(const reliable::Series& series, Instant time) noexcept;
    void give_up_keyless(const reliable::Series& series, Instant time) noexcept;
    void pass_to_self(std::span<const Datagram> datagrams) noexcept;
    void pass_through_faults(Node to, std::span<const Datagram> datagrams);
    bool feed(Instant time) noexcept;
    std::size_t feed_packet(MutableBytes bytes, Instant time) noexcept;
    void deliver(reliable::Arrival& arrival, pm::Handler handler) noexcept;
    bool has_something_to_do() const noexcept;
    void update_sleeper() noexcept;
    void ring() noexcept;
    void note_refusal() noexcept { refused_ = true, refused_at_ = endpoint_.rooms_made(); }
    void on_time(Instant time) noexcept;
    void take_errors(Instant time) noexcept;
    void on_too_large(Node peer, std::uint32_t path_bytes, Instant time) noexcept;
    void warn_of_narrow_path(Node peer) noexcept;
    void check_bursts(Node peer) noexcept;
    void warn_of_no_memory() noexcept;
    void look_for_silence(Instant time) noexcept;
    void warn_of_silence(Node peer, Instant time) noexcept;
    void linger() noexcept;
    std::uint32_t packet_bytes_for(std::uint32_t path_bytes) const noexcept;

    Options options_;
    Node self_;
    Node nodes_;
    std::uint32_t incarnation_;
    Socket socket_;
    reliable::Endpoint endpoint_;
    std::unique_ptr<Seal> seal_;
    std::optional<FaultyWire> faults_;
    std::vector<Address> addresses_; // by node
    std::vector<pm::Traffic> sent_;
    std::vector<std::uint8_t> no_memory_warned_; // by node: warn_of_no_memory() has warned of it
    std::vector<pm::Silence> silences_;      // by node
    Node silent_ = 0;                        // number of nodes of whose silence the user was warned
    Instant looked_for_silence_{};
    pm::Traits traits_;

    reliable::Series series_;
    std::vector<std::byte> sealed_;       // an encrypted series
    std::array<Datagram, reliable::Sender::series_max> datagrams_;
    std::deque<std::vector<std::byte>> to_self_;
    std::vector<std::byte> from_self_;    // the packet of to_self_ that is being read
    std::span<const Batch> batches_;      // received, and not yet given to the endpoint
    std::size_t batch_at_ = 0;            // bytes of the first batch that were given to it
    std::size_t receive_window_ = 1;      // batches to ask for: one while latency matters, more in streams
    unsigned receives_in_a_row_ = 0;      // receives that found as many batches as they asked for
    bool polling_ = false;
    std::atomic<Asleep> asleep_{Asleep::no}; // how a thread sleeps, or is about to
    std::atomic<bool> woken_{false};      // wake() was called since the last sleep
    // Ends a sleep that watches from outside. Unlike a datagram, polling does not consume it.
    base::Descriptor bell_;
    std::atomic<bool> rung_{false};       // the bell was rung
    pm::Watched watched_{};               // what the sleeping thread watches
    bool is_slept_on_ = false;            // from begin_sleep() until the sleep ends, or was told to end
    bool met_ = false;
    bool is_plain_ = false;               // packets are sent without encryption and faults
    bool blocked_ = false;                // the socket's send buffer is full
    bool refused_ = false;                // a message found no room while rooms_made() was refused_at_
    std::uint64_t refused_at_ = 0;
    std::uint64_t gone_seen_ = 0;        // gone_count() at the last arm()
    std::uint64_t gone_handled_ = 0;        // gone_count() at the last warn_of_no_memory()
    bool narrow_path_warned_ = false;
    bool unreachable_warned_ = false;
    std::uint64_t foreign_ = 0;           // packets dropped before the endpoint sees them
    std::uint64_t forged_ = 0;
    std::uint64_t empty_ = 0;             // empty datagrams, of strangers or of wake()
    std::atomic<std::uint64_t> nudges_{0}; // empty datagrams that wake() sent
    std::uint64_t replayed_ = 0;
    std::uint64_t truncated_ = 0;
    std::uint64_t bursts_ = 0;
    std::uint64_t sends_blocked_ = 0;
    std::uint64_t receives_ = 0;
};

} // namespace kumi::device::udp
