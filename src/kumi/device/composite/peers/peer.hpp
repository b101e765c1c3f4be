#pragma once

#include "kumi/device/composite/letters/farewell.hpp"
#include "kumi/device/composite/letters/inbox.hpp"
#include "kumi/device/composite/letters/notes.hpp"
#include "kumi/device/composite/letters/own_letters.hpp"
#include "kumi/device/composite/letters/passing_letters.hpp"
#include "kumi/device/composite/letters/path_search.hpp"
#include "kumi/device/composite/peers/peer_ways.hpp"
#include "kumi/device/composite/stripes/joiner.hpp"
#include "kumi/device/composite/stripes/rails.hpp"
#include "kumi/device/composite/stripes/striped_messages.hpp"
#include "kumi/pm/silence.hpp"

namespace kumi::device::composite {

/// What this node sends to one peer, and what waits for room.
struct Outbox {
    // Shorter messages go by the current way at once: nothing is in between. 0: none do
    std::size_t plain_below = 0;
    bool passes_next = false; // what is passed on gets room before own letters
    bool refused = false;     // a sender was, because of what is in between
    Sequence next = 0;        // number of the next message
    pm::Traffic sent;
    OwnLetters own;
    Notes notes;
    UrgentLetters urgent;   // for this neighbour: before all else
    PassingLetters passing; // of other nodes

    bool is_plain() const noexcept { return plain_below != 0; }

    void clear() noexcept {
        own.clear();
        passing.clear();
        notes.clear();
        urgent.clear();
    }
};

/// The slot that a sender fills in place, one at a time for each peer.
struct Reservation {
    bool is_out = false;
    bool missed = false;  // another sender was refused because of that
    bool is_here = false; // in `letter`, not with the device
    std::size_t way = 0;
    Letter letter;
};

/// Messages in pieces to one peer.
struct PeerStripes {
    std::size_t message_bytes_min = 0; // that may go in pieces; none does where fewer than two networks join the pair
    Rails rails;                       // the ways to the peer, but relays
    StripedMessages under_way;
    bool held = false; // nothing is sent until the first of them has arrived
    Instant asked_how_far{};

    void clear() noexcept {
        under_way.clear();
        held = false;
    }
};

/// What this node receives from one peer.
struct PeerArrivals {
    Inbox inbox;
    Joiner joiner{0, 0};
    bool has_turn = false; // a message that came early may be handed out
    bool owes_word = false; // the peer is to be told what has arrived
    Path way_back{}; // by which the peer's last letter came that was passed on; empty: none was
};

/// Another node of the job.
struct Peer {
    Node node = 0;
    bool watched = false; // something may have to be found out about its ways
    bool pending = false; // something waits to be sent to it
    bool is_lost = false;
    bool has_closed = false; // it takes no more messages, but may still pass on those of others
    bool takes_messages() const noexcept { return !is_lost && !has_closed; }
    PeerWays ways;
    Reservation reservation;
    Outbox out;
    PeerStripes stripes;
    PeerArrivals in;
    PathSearch search;
    std::size_t hops_planned = 1; // of a path to it
    SeenSeeks seen;               // of its seeks
    Farewell farewell;
    pm::Silence silence;
};

} // namespace kumi::device::composite
