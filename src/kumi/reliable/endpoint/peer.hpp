#pragma once

#include "kumi/base/clock.hpp"
#include "kumi/reliable/counters.hpp"
#include "kumi/reliable/endpoint/options.hpp"
#include "kumi/reliable/packet.hpp"
#include "kumi/reliable/path/path_size.hpp"
#include "kumi/reliable/receiver.hpp"
#include "kumi/reliable/sender.hpp"

#include <cstddef>
#include <cstdint>

namespace kumi::reliable {

/// What an endpoint knows about one peer. Only Endpoint uses it.
struct Peer {
    Peer(BlockPool& pool, const SenderOptions& sending, const ReceiverOptions& receiving, const PathSize& path_size)
        : sender(pool, sending, counters), receiver(pool, receiving, counters), path(path_size) {}

    PeerCounters counters;
    Sender sender;
    Receiver receiver;
    PathSize path;
    Sequence probe = 0;             // number of the peer's last probe
    bool owes_probe_answer = false; // to that probe
    std::uint32_t incarnation = 0;
    Sequence transmission = 0; // of the next packet to the peer
    Gone gone = Gone::no;
    bool ready = false;   // in Endpoint::ready_
    bool timed = false;   // in timed_
    bool open = false;    // in open_
    bool ask = false;     // request an answer, by a bare packet
    bool stalled = false; // in stalled_
    bool touched = false; // in touched_
    bool talked = false;  // a packet was sent to the peer, or came from it
    unsigned farewells = 0;
    bool owes_farewell = false; // the peer is gone but still sends
    bool owes_report = false;   // the peer is to be told of nodes that do not listen any more
    // Measured in time that this node was awake.
    Duration heard_at{0};   // the peer or its host last answered
    Duration checked_at{0}; // the peer's host was last asked
    Instant asked_at{};     // since when the peer owes an answer, if it does
    bool silent = false;
    /// The peer's host, or another node, says that nobody listens there, and the peer has not answered since.
    struct Refused {
        bool is_on = false;
        unsigned words = 0; // that were far enough apart to be independent
        Instant since{};
        Instant counted{}; // the last of `words`
        Instant seen{};    // the last time that somebody said so
        Instant asked{};   // the last time that the peer itself was asked

        /// One word may be late or forged. Two that came while the peer was asked are believed, unless it answers.
        bool is_likely() const noexcept { return is_on && words >= 2; }
    } refused;

    /// How the peer has answered when it was asked whether it still listens.
    struct Watch {
        std::uint64_t packets = 0; // that had come from the peer when it was last looked at
        unsigned looks = 0;        // in a row, without a packet from it in between
    } watch;

    /// There was no memory for a message to or from the peer. The wait is over when no one tries again for a while, or
    /// when a message as large finds memory.
    struct MemoryWait {
        Instant since{};
        Instant seen{};
        std::size_t bytes = 0;
        bool is_sending = false;
        bool is_new = false; // seen, but not yet handled by Endpoint::settle()
    } memory_wait;

    /// From now on the peer owes an answer.
    void asked(Duration awake, Instant now) noexcept { heard_at = awake, asked_at = now; }
};

} // namespace kumi::reliable
