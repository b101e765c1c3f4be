#pragma once

// Broadcast into memory: copies data to the same place of a segment on all nodes. Pieces go down a binomial tree, whose
// nodes store them and pass them on; answers climb it when all nodes below have stored the piece.

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/global_ptr.hpp"
#include "kumi/engine/memory/words.hpp"
#include "kumi/engine/operation/operations.hpp"
#include "kumi/engine/service.hpp"
#include "kumi/engine/wire.hpp"

#include <atomic>
#include <list>

namespace kumi::engine {

class Flags;
class MemoryService;
class Segments;

class Broadcasts final : public Service {
public:
    Broadcasts(Dispatcher& dispatcher, Segments& segments, Flags& flags, MemoryService& memory);

    /// Only begins: `source` must stay as it is until sync().
    Result<void> start(global_ptr<std::byte> to, Bytes source, const Notice& notice);
    /// From now on this node passes broadcasts on and stores nothing.
    void discard(bool discard) noexcept { discards_.store(discard); }

private:
    struct Sending {
        Place place;
        Bytes source;
        Notice notice;
        std::uint64_t next = 0; // the first byte that has not gone
        bool has_gone = false;
        unsigned under_way = 0; // pieces that not all nodes have stored yet
    };

    Handled on_message(const Turn& turn, Node source, std::uint16_t kind, Bytes body) override;
    bool go_on(const Turn& turn) noexcept override;

    bool on_broadcast(const Turn& turn, Node source, Bytes body);
    bool send_piece(const Turn& turn, Sending& sending);
    void pass_on(const Turn& turn, Broadcast what, Bytes data, Operation::Answered when_all_have_it);

    Dispatcher& dispatcher_;
    Port port_;
    Segments& segments_;
    Flags& flags_;
    MemoryService& memory_;
    std::list<Sending> sendings_; // a list: the answers to pieces refer to theirs
    std::atomic<bool> discards_{false};
};

} // namespace kumi::engine
