#pragma once

// Messages of multicasts that wait for room. Messages to one node leave in the order in which they were added.

#include "kumi/engine/dispatcher.hpp"
#include "kumi/group/set.hpp"
#include "kumi/group/wire/message.hpp"
#include "kumi/group/wire/multicast.hpp"

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

namespace kumi::group {

class SendQueue {
public:
    SendQueue(engine::Dispatcher& dispatcher, const engine::Port& port) noexcept
        : dispatcher_(dispatcher), port_(port) {}
    SendQueue(const SendQueue&) = delete;
    SendQueue& operator=(const SendQueue&) = delete;

    bool empty() const noexcept { return waiting_.empty(); }

    /// Sends a message, which begins with room for the engine's header, at once or when there is room. A lost node is
    /// sent nothing.
    void send(const engine::Turn&, Node to, std::vector<std::byte>& message) {
        if (dispatcher_.is_lost(to) || port_.try_send(to, only_kind, message)) return;
        waiting_.push_back({to, no_relay, message});
    }
    void send(const engine::Turn& turn, Node to, std::vector<std::byte>&& message) { send(turn, to, message); }
    /// There was no room for the Cast of `relay` to that child. The Cast is not kept: it is made again.
    void add_cast(const engine::Turn&, Node to, RelayId relay) { waiting_.push_back({to, relay, {}}); }

    /// Sends what there is room for; true if something was sent. `try_cast(RelayId, Node)` makes and sends a Cast; it
    /// answers true also when the Cast is not needed any more.
    template <class TryCast>
    bool go_on(const engine::Turn&, TryCast&& try_cast) {
        bool any = false;
        Set refused; // messages to one node stay in order
        for (std::size_t i = 0, count = waiting_.size(); i < count; ++i) {
            Waiting next = std::move(waiting_.front());
            waiting_.pop_front();
            if (dispatcher_.is_lost(next.to)) continue; // drop() does the same for all that are left
            bool was_sent = false;
            if (!refused.contains(next.to))
                was_sent = next.relay.index == no_relay.index ? port_.try_send(next.to, only_kind, next.message)
                                                              : try_cast(next.relay, next.to);
            if (was_sent) any = true;
            else refused.add(next.to), waiting_.push_back(std::move(next));
        }
        return any;
    }

    /// `node` is lost.
    void drop(const engine::Turn&, Node node) {
        std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.to == node; });
    }
    void clear(const engine::Turn&) noexcept { waiting_.clear(); }

private:
    struct Waiting {
        Node to;
        RelayId relay;                  // of a Cast; none: a message
        std::vector<std::byte> message; // with room for the header
    };

    engine::Dispatcher& dispatcher_;
    engine::Port port_;
    std::deque<Waiting> waiting_;
};

} // namespace kumi::group
