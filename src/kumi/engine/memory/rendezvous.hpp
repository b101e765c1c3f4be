#pragma once

// Rendezvous by key: one node offers data under a key, another accepts it, and neither knows where the other has it.
// The offers and accepts of one key and pair of nodes meet in order.
//
// The node that offers brings both together: the other one sends it a Want, and the data goes to a landing, which the
// number of the accept's operation names. To withdraw an accept, the node asks the one that offers, which answers after
// the last piece that it has sent. If the answer does not come in time, the landing is given up all the same: what
// still comes for it finds none, and is no error.

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/memory/transfers.hpp"
#include "kumi/engine/memory/words.hpp"
#include "kumi/engine/service.hpp"
#include "kumi/engine/wire.hpp"

#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace kumi::engine {

class MemoryService;

class Rendezvous final : public Service {
public:
    Rendezvous(Dispatcher& dispatcher, MemoryService& memory);

    Result<OfferToken> offer(std::uint64_t key, Node to, Bytes source, Flag* flag, Flag value);
    Result<AcceptToken> accept(std::uint64_t key, Node from, MutableBytes target, Flag* flag, Flag value);
    Result<void> cancel(const OfferToken& offered);
    Result<void> cancel(const AcceptToken& accepted, Instant deadline);

    /// What `source` puts there may be for an accept that was withdrawn.
    bool is_withdrawn(const Turn&, Node source, const Place& place) const noexcept;

private:
    struct Offer {
        Bytes source;
        Flag* flag;
        Flag value;
        std::uint64_t number;
        std::uint32_t thread; // base::thread_number() of the thread that offered
    };
    using Meeting = std::pair<std::uint64_t, Node>; // key, the other node
    using Landing = std::tuple<Node, std::uint32_t, std::uint32_t>; // where from, index, generation

    Handled on_message(const Turn& turn, Node source, std::uint16_t kind, Bytes body) override;
    void on_lost(const Turn& turn, Node node) noexcept override;

    bool on_want(const Turn& turn, Node source, Bytes body);
    bool on_withdraw(const Turn& turn, Node source, Bytes body);
    bool on_withdrawn(Node source, Bytes body);
    void meet(const Turn& turn, const Meeting& meeting, const Offer& offer);
    void give(const Turn& turn, Node to, const Want& want, const Offer& offer);

    static constexpr std::size_t wants_max = 1 << 16;

    Dispatcher& dispatcher_;
    Port port_;
    MemoryService& memory_;
    std::map<Meeting, std::deque<Offer>> offers_; // that nobody has accepted yet, oldest first
    std::map<Meeting, std::deque<Want>> wants_;   // accepts of other nodes that wait for an offer
    std::size_t wants_waiting_ = 0;
    std::uint64_t last_offer_ = 0; // its number
    std::set<Landing> withdrawn_;  // accepts of this node, not yet answered
};

} // namespace kumi::engine
