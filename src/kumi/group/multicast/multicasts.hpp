#pragma once

// Multicasts of one node: the service of the engine that ties the parts together. It receives messages, gives each to
// the part that it is for, and runs handlers.
//
//   Sender      what this node has under way as a master
//   Relays      multicasts that this node passes on, and the answers of those below it
//   Deliveries  content on its way to this node's handlers, once and in order
//   Streams     content in blocks that this node does not have whole, or still passes on
//   HeldAnswers answers of this node's functions that are too large to climb the tree
//   Fetches     such answers of others to this node's multicasts
//   CostProbe   what messages take
//   SendQueue   messages that wait for room
//
// A whole message makes a Relay, and its content a Delivery; a Stream has a Relay too, for the answers, and becomes a
// Delivery when all blocks are here. A Relay is complete when all below it and this node's own Delivery are over.
//
// Losses. When a child is lost, Relays or Streams care for the members below it. A multicast may arrive twice because
// of that; the second time this node only passes it on. When a master is lost, the members that have its multicasts
// still pass them on. When nothing of it has arrived for some time, this node gives up what is not here whole, and
// delivers what waited for it.

#include "kumi/engine/dispatcher.hpp"
#include "kumi/group/answers/fetches.hpp"
#include "kumi/group/answers/held_answers.hpp"
#include "kumi/group/groups.hpp"
#include "kumi/group/multicast/cost_probe.hpp"
#include "kumi/group/multicast/deliveries.hpp"
#include "kumi/group/multicast/relays.hpp"
#include "kumi/group/multicast/send_queue.hpp"
#include "kumi/group/multicast/sender.hpp"
#include "kumi/group/multicast/streams.hpp"
#include "kumi/group/topology.hpp"

#include <atomic>
#include <deque>
#include <utility>
#include <vector>

namespace kumi::group {

class Multicasts final : public engine::Service {
public:
    Multicasts(engine::Dispatcher& dispatcher, Topology topology, const Settings& settings, const Costs& usual);

    /// Begins a multicast; waits while too much is under way, but not in a handler. For any thread. Where there is a
    /// background thread, this call runs nothing of the program's: the thread may hold a mutex that a handler takes.
    void start(const Set& to, const Purpose& purpose, Bytes arguments, Bytes payload, Ended ended);
    /// An error: no multicast of so many bytes goes to this set.
    Result<void> check(const Set& to, std::size_t bytes) const { return sender_.check(to, bytes); }
    /// As start(), with the turn, for a service. False: too much is under way; try again later.
    bool try_start(const engine::Turn& turn, const Set& to, const Purpose& purpose, const Pieces& content,
                   Ended& ended);
    /// Waits for the next multicast that is to be taken. For any thread.
    Result<Arrival> next(Instant deadline);
    /// Whether this node passes multicasts into memory on, and stores nothing. For any thread.
    void discard_stores(bool discards) noexcept { discards_stores_.store(discards, std::memory_order_relaxed); }

    engine::Dispatcher& dispatcher() noexcept { return dispatcher_; }
    const Topology& topology() const noexcept { return topology_; }
    Choice choice(const engine::Turn& turn, std::size_t bytes, Node members) const {
        return sender_.choice(turn, bytes, members);
    }
    const Costs& costs(const engine::Turn& turn) const noexcept { return probe_.costs(turn); }
    /// Multicasts that this node has something of.
    std::size_t kept(const engine::Turn& turn) const;

private:
    /// While something is done here. Handlers and callbacks may do more inside of that; settle() is called at the end
    /// of the outermost.
    class Busy {
    public:
        Busy(Multicasts& casts, const engine::Turn& turn) noexcept : casts_(casts), turn_(turn) { ++casts_.depth_; }
        Busy(const Busy&) = delete;
        Busy& operator=(const Busy&) = delete;
        ~Busy() {
            if (--casts_.depth_ == 0) casts_.settle(turn_);
        }

    private:
        Multicasts& casts_;
        const engine::Turn& turn_;
    };

    // engine::Service
    engine::Handled on_message(const engine::Turn& turn, Node source, std::uint16_t kind, Bytes bytes) override;
    bool go_on(const engine::Turn& turn) noexcept override;
    void check_silent_peers(const engine::Turn& turn) noexcept override;
    void on_lost(const engine::Turn& turn, Node node) noexcept override;
    bool is_done(const engine::Turn& turn) const noexcept override;
    void on_end(const engine::Turn& turn) noexcept override;

    // What comes; false: it makes no sense.
    bool on_cast(const engine::Turn& turn, Node source, Bytes bytes, bool is_placed);
    bool try_run_at_once(const engine::Turn& turn, Node source, const Cast& head, Bytes content);
    bool on_block(const engine::Turn& turn, Node source, Bytes bytes);
    bool on_answer(const engine::Turn& turn, Node source, Bytes bytes);
    bool on_over(const engine::Turn& turn, Node source, Bytes bytes);
    bool on_fetch(const engine::Turn& turn, Node source, Bytes bytes);

    std::optional<Draft> start(const engine::Turn& turn, Result<Draft> draft, Ended& ended);
    bool try_begin(const engine::Turn& turn, Draft& draft, Ended& ended);
    std::size_t most_under_way(const engine::Turn& turn) const noexcept;
    void wait_and_begin(Draft& draft, Ended& ended);
    void deliver(const engine::Turn& turn, Relay& relay, const Set& members, const std::vector<Before>& before,
                 Content content);
    void run_ready(const engine::Turn& turn);
    /// Runs what is short: a handler, or a store into memory.
    Result<std::vector<std::byte>> run_handler(const engine::Turn& turn, const Name& name, const Purpose& purpose,
                                               Bytes content);
    Result<void> store(const engine::Turn& turn, std::uint32_t places, Bytes content);
    void end_delivery(const engine::Turn& turn, const Name& name, Result<std::vector<std::byte>> value);
    void end_delivery_soon(const engine::Turn& turn, const Name& name, Result<std::vector<std::byte>> value);
    OwnAnswer own_answer(const Name& name, const Purpose& purpose, Result<std::vector<std::byte>> value);
    bool send_parts(const engine::Turn& turn);
    void end_complete(const engine::Turn& turn);
    void settle(const engine::Turn& turn) noexcept;

    /// A content of so many bytes is copied with the turn: that is soon done.
    static constexpr std::size_t drafted_in_turn_max = 1024;

    engine::Dispatcher& dispatcher_;
    engine::Port port_;
    Topology topology_;
    SendQueue queue_;
    Relays relays_;
    Deliveries deliveries_;
    Streams streams_;
    CostProbe probe_;
    HeldAnswers held_;
    Fetches fetches_;
    Sender sender_;
    std::deque<std::pair<Name, Result<std::vector<std::byte>>>> had_; // deliveries to be ended by go_on()
    bool is_running_ = false; // a handler
    bool has_ended_ = false;  // the engine
    int depth_ = 0;           // of Busy
    bool is_called_ = false;  // the background, for what is under way
    std::atomic<bool> discards_stores_{false};
};

} // namespace kumi::group
