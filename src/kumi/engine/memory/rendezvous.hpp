#pragma once

// Rendezvous by key: one node offers data under a key, another accepts it, and neither knows where the other has it.
// The offers and accepts of one key and pair of nodes meet in order.

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/memory/words.hpp"
#include "kumi/engine/service.hpp"
#include "kumi/engine/wire.hpp"

#include <deque>
#include <map>
#include <utility>

namespace kumi::engine {

class MemoryService;

class Rendezvous final : public Service {
public:
    Rendezvous(Dispatcher& dispatcher, MemoryService& memory);

    Result<void> offer(std::uint64_t key, Node to, Bytes source, Flag* flag, Flag value);
    Result<void> accept(std::uint64_t key, Node from, MutableBytes target, Flag* flag, Flag value);

private:
    struct Offer {
        Bytes source;
        Flag* flag;
        Flag value;
    };
    using Meeting = std::pair<std::uint64_t, Node>; // key, the other node

    Handled on_message(const Turn& turn, Node source, std::uint16_t kind, Bytes body) override;
    void on_lost(const Turn& turn, Node node) noexcept override;

    bool on_want(const Turn& turn, Node source, Bytes body);
    void give(const Turn& turn, Node to, const Want& want, const Offer& offer);

    static constexpr std::size_t wants_max = 1 << 16;

    Dispatcher& dispatcher_;
    Port port_;
    MemoryService& memory_;
    std::map<Meeting, std::deque<Offer>> offers_; // that nobody has accepted yet
    std::map<Meeting, std::deque<Want>> wants_;   // accepts of other nodes that wait for an offer
    std::size_t wants_waiting_ = 0;
};

} // namespace kumi::engine
