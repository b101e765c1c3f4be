#include "kumi/group/collective/call_failure.hpp"

#include <algorithm>
#include <utility>

namespace kumi::group {

void CallFailure::refuse(ErrorCode code, std::string why) {
    has_failed_ = true;
    code_ = code;
    why_ = std::move(why);
}

void CallFailure::begin(const engine::Turn&, ErrorCode code, std::string why, std::string told,
                        std::uint64_t mismatch) {
    has_failed_ = true;
    code_ = code;
    mismatch_ = mismatch;
    why_ = std::move(why);
    told_ = std::move(told);
    told_.resize(std::min(told_.size(), text_bytes_max));
}

void CallFailure::tell(const engine::Turn& turn, Node to, const CollectiveHeader& own) {
    if (std::ranges::find(told_to_, to) != told_to_.end()) return;
    told_to_.push_back(to);
    post(turn, to, own, MessageKind::trouble);
}

void CallFailure::post(const engine::Turn& turn, Node to, CollectiveHeader head, MessageKind kind) {
    head.kind = kind;
    head.bytes = told_.size();
    head.came_with = mismatch_;
    head.step = static_cast<std::uint16_t>(code_);
    seat_.mailbox.post(turn, to, head, bytes_of(std::string_view(told_)));
}

void CallFailure::tell_all(const engine::Turn& turn, const CollectiveHeader& own, std::uint32_t barrier) {
    if (mismatch_ == 0) return;
    CollectiveHeader head = own;
    head.root = barrier;
    seat_.mailbox.mismatches(turn).add(mismatch_);
    for (const Node member : seat_.members)
        if (member != seat_.mailbox.dispatcher().node()) post(turn, member, head, MessageKind::mismatch);
}

void CallFailure::skip(const engine::Turn& turn, Node from) {
    if (std::ranges::find(skipped_, from) != skipped_.end()) return;
    skipped_.push_back(from);
    const auto heard = std::find_if(seat_.box.heard.rbegin(), seat_.box.heard.rend(),
                                    [&](const Inbox::Heard& one) { return one.source == from; });
    if (heard == seat_.box.heard.rend()) return seat_.mailbox.add_skip(turn, seat_.box, from, {});
    if (!heard->is_over) seat_.mailbox.add_skip(turn, seat_.box, from, heard->serial);
}

} // namespace kumi::group
