#include "kumi/group/mail/inboxes.hpp"

#include <algorithm>
#include <utility>

namespace kumi::group {

Inbox* Inboxes::find_other(std::uint64_t key) noexcept {
    const auto found = boxes_.find(key);
    return found == boxes_.end() ? nullptr : last_ = found->second.get();
}

Inbox& Inboxes::find_or_add(std::uint64_t key) {
    if (Inbox* const found = find(key)) return *found;
    auto& added = boxes_[key];
    added = std::make_unique<Inbox>();
    added->key = key;
    return *(last_ = added.get());
}

void Inboxes::remove_unused(Inbox& box) noexcept {
    if (box.seats != 0 || !box.early.empty() || !box.skips.empty()) return;
    if (last_ == &box) last_ = nullptr;
    boxes_.erase(box.key);
}

// ---- messages that were not received yet

void Inboxes::keep(Inbox& box, Node source, const CollectiveHeader& head, Bytes data, Forgotten forgotten) {
    if (kept_[source] >= kept_max) forget_one(source, box, forgotten);
    ++kept_[source];
    auto& early = box.early.emplace_back(Inbox::Early{source, head, {}});
    if (head.kind == MessageKind::first) early.data.reserve(head.bytes);
    early.data.assign(data.begin(), data.end());
}

Inbox::Early Inboxes::take(Inbox& box, std::deque<Inbox::Early>::iterator early) {
    Inbox::Early taken = std::move(*early);
    box.early.erase(early);
    --kept_[taken.source];
    return taken;
}

std::size_t Inboxes::kept() const noexcept {
    std::size_t count = 0;
    for (const auto& [key, box] : boxes_) count += box->early.size();
    return count;
}

std::pair<const Inbox*, const Inbox::Early*> Inboxes::find_kept() const noexcept {
    for (const auto& [key, box] : boxes_)
        for (const Inbox::Early& early : box->early)
            if (early.head.kind == MessageKind::first || early.head.kind == MessageKind::ready)
                return {box.get(), &early};
    return {nullptr, nullptr};
}

/// Forgets the oldest message of `source` in some set: in a set that is not in use, if there is one.
void Inboxes::forget_one(Node source, const Inbox& current, Forgotten forgotten) {
    for (const bool with_seats : {false, true})
        for (const auto& [key, box] : boxes_) {
            if ((box->seats != 0) != with_seats) continue;
            const auto found = std::ranges::find(box->early, source, &Inbox::Early::source);
            if (found == box->early.end()) continue;
            forgotten(*box, source, take(*box, found).head);
            if (box.get() != &current) remove_unused(*box);
            return;
        }
}

void Inboxes::forget_if(Inbox& box, Node source, base::FunctionRef<bool(std::uint32_t serial)> is_unwanted,
                        Forgotten forgotten) {
    std::erase_if(box.early, [&](const Inbox::Early& early) {
        if (early.source != source || !is_unwanted(early.head.serial)) return false;
        --kept_[source];
        forgotten(box, source, early.head);
        return true;
    });
}

void Inboxes::forget_up_to(Inbox& box, Node source, std::uint32_t serial, Forgotten forgotten) {
    const auto is_over = [&](std::uint32_t its) { return static_cast<std::int32_t>(its - serial) <= 0; };
    forget_if(box, source, is_over, forgotten);
}

// ---- messages that are not wanted

bool Inboxes::is_skipped(Inbox& box, Node source, std::uint32_t serial) {
    for (auto skip = box.skips.begin(); skip != box.skips.end();) {
        if (skip->source != source) {
            ++skip;
            continue;
        }
        if (!skip->serial) skip->serial = serial;
        if (static_cast<std::int32_t>(serial - *skip->serial) <= 0) return true;
        skip = box.skips.erase(skip);
    }
    return false;
}

void Inboxes::add_skip(Inbox& box, Node source, std::optional<std::uint32_t> serial, Forgotten forgotten) {
    box.skips.push_back({source, serial});
    skipping_.push_back(box.key);
    const auto is_unwanted = [&](std::uint32_t its) { return is_skipped(box, source, its); };
    forget_if(box, source, is_unwanted, forgotten);
    if (skipping_.size() <= skips_max) return;
    Inbox* const oldest = find(skipping_.front());
    skipping_.pop_front();
    if (oldest == nullptr || oldest == &box || oldest->skips.empty()) return;
    oldest->skips.erase(oldest->skips.begin());
    remove_unused(*oldest);
}

} // namespace kumi::group
