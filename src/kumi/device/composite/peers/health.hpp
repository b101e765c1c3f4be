#pragma once

#include "kumi/device/composite/peers/peers.hpp"

namespace kumi::device::composite {

/// Which peers live, which have answered, and which have all that was sent to them.
class Health {
public:
    explicit Health(Peers& peers) noexcept : peers_(peers) {}

    /// A node that answers by no way for so long is lost; 0: never.
    void set_silence(Duration limit) noexcept { silence_max_ = limit; }
    /// This node sends nothing new, and waits less long.
    void begin_close() noexcept { is_closing_ = true; }
    bool is_closing() const noexcept { return is_closing_; }

    /// The peer will never answer again, as far as one can tell.
    bool is_lost(const Peer& peer) const noexcept;
    /// A device says that the peer leaves, or all networks that join it with this node say that it is gone.
    bool is_reported_gone(const Peer& peer) const noexcept;
    /// Forgets all that is for a peer that is lost. If a network joined it with this node, the nodes whose messages
    /// this node passes on are told.
    void lose(Peer& peer);
    /// The peer takes no more messages: forgets those that are for it.
    void on_closed(Peer& peer) noexcept;

    /// How long the peer has owed an answer by that way; 0 if it owes none.
    Duration unanswered(const Peer& peer, std::size_t way, Instant now) const noexcept;
    /// A network joins the peer with this node, and the peer has answered by it lately.
    bool is_near(const Peer& peer) const noexcept;
    /// What was sent to the peer has arrived, or never will.
    bool has_all(const Peer& peer) const noexcept;
    /// Nothing is to be found out about the ways to the peer.
    bool is_settled(const Peer& peer) const noexcept;

private:
    bool is_over(Instant since, Duration limit) const noexcept;
    bool is_dead(const Peer& peer, std::size_t way) const noexcept;

    Peers& peers_;
    Duration silence_max_ = std::chrono::seconds(60);
    bool is_closing_ = false;
};

} // namespace kumi::device::composite
