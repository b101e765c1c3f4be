#pragma once

#include "kumi/base/bytes.hpp"
#include "kumi/engine/dispatcher.hpp"
#include "kumi/group/mail/mailbox.hpp"

#include <cstddef>
#include <cstdint>

namespace kumi::group {

/// The messages that one call sends: in pieces, and in order to each member. A message that is large, or for which the
/// window has no room, is asked for before it goes. `own` is a header of the call.
class CallSender {
public:
    /// Messages are cut between values of `bytes_each`, as far as these fit a piece.
    CallSender(Membership& seat, std::size_t bytes_each) noexcept;

    std::size_t piece_bytes() const noexcept { return piece_bytes_; }
    /// Begins to send `data`, which must stay until it has gone. True: all of it has gone already.
    bool send(const engine::Turn& turn, const CollectiveHeader& own, Node to, std::uint16_t step, Bytes data);
    /// Sends what there is room for now.
    void go_on(const engine::Turn& turn, const CollectiveHeader& own);
    /// The message that `source` was asked for may go, or is not wanted. False: the node was not asked for one.
    bool on_cleared(const engine::Turn& turn, const CollectiveHeader& own, Node source, bool is_wanted);

private:
    bool advance(const engine::Turn& turn, CollectiveHeader head, Sending& sending);

    Mailbox& mailbox_;
    std::vector<Sending>& sendings_; // of the inbox, that have not gone
    std::size_t piece_bytes_;
};

} // namespace kumi::group
