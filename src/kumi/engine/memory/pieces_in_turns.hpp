#pragma once

// Lets several large transfers make progress together: each sends a few pieces in turn, so none waits for another.

#include <cstddef>
#include <list>

namespace kumi::engine {

/// Transfers that take turns; more wait in line.
inline constexpr std::size_t turns_active_max = 16;
/// Pieces that one of them sends in its turn.
inline constexpr int pieces_per_turn = 4;

/// Calls `send_piece(transfer)` while it returns true, up to pieces_per_turn times, for each of the first transfers of
/// the list; then `is_over(transfer)`. Transfers that are over are removed. True: something was done.
template <class Transfer, class SendPiece, class IsOver>
bool send_pieces_in_turns(std::list<Transfer>& transfers, SendPiece&& send_piece, IsOver&& is_over) {
    bool any = false;
    std::size_t active = 0;
    for (auto transfer = transfers.begin(); transfer != transfers.end() && active < turns_active_max;) {
        for (int pieces = 0; pieces < pieces_per_turn && send_piece(*transfer); ++pieces) any = true;
        if (is_over(*transfer)) {
            transfer = transfers.erase(transfer);
            any = true;
        } else {
            ++transfer;
            ++active;
        }
    }
    return any;
}

} // namespace kumi::engine
