#pragma once

#include "kumi/engine/dispatcher.hpp"
#include "kumi/group/mail/mailbox.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kumi::group {

/// Why a call has failed, and what it still has to say: members that wait for its messages are told, and messages that
/// others still send for it are skipped, so that the next call on the set is in step again.
class CallFailure {
public:
    static constexpr std::size_t text_bytes_max = 500;

    explicit CallFailure(Membership& seat) noexcept : seat_(seat) {}

    bool has_failed() const noexcept { return has_failed_; }
    const std::string& why(const engine::Turn&) const noexcept { return why_; }
    ErrorCode code(const engine::Turn&) const noexcept { return code_; }

    /// The call has not begun, so no member has to be told.
    void refuse(ErrorCode code, std::string why);
    /// `told` is for other members; `mismatch` is the mismatch that was the cause, or 0 (mailbox.hpp).
    void begin(const engine::Turn& turn, ErrorCode code, std::string why, std::string told, std::uint64_t mismatch);
    /// That member waits for what this one will not send. It is told once. `own` is a header of the call.
    void tell(const engine::Turn& turn, Node to, const CollectiveHeader& own);
    /// After a mismatch: members in different calls may wait for this member, though it owes them nothing. `barrier` is
    /// the number of the set's barrier that this member waits for, or else arrives at next.
    void tell_all(const engine::Turn& turn, const CollectiveHeader& own, std::uint32_t barrier);
    /// That member may still send what this one does not wait for.
    void skip(const engine::Turn& turn, Node from);

private:
    void post(const engine::Turn& turn, Node to, CollectiveHeader head, MessageKind kind);

    Membership& seat_;
    bool has_failed_ = false; // written with the turn: handlers make calls fail
    ErrorCode code_ = ErrorCode::failed;
    std::string why_;
    std::string told_;
    std::uint64_t mismatch_ = 0;
    std::vector<Node> told_to_;
    std::vector<Node> skipped_;
};

} // namespace kumi::group
