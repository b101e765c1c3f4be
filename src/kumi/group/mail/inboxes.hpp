#pragma once

// The inboxes of one node, by the key of their set, and what they keep: messages that came before a call received them,
// and notes of what is not wanted any more.
//
// Bounds. A node has at most kept_max messages here; of more, one of the oldest goes. Of the notes there are skips_max;
// of more, the oldest goes.

#include "kumi/base/bytes.hpp"
#include "kumi/base/function_ref.hpp"
#include "kumi/group/mail/inbox.hpp"
#include "kumi/group/mail/windows.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kumi::group {

class Inboxes {
public:
    static constexpr std::uint32_t kept_max = Windows::window_bytes / Windows::message_cost + 1024; // of one node
    static constexpr std::size_t skips_max = 1 << 16;

    /// Called with each kept message that is forgotten: its sender may wait to hear of it.
    using Forgotten = base::FunctionRef<void(Inbox& box, Node source, const CollectiveHeader& head)>;

    explicit Inboxes(std::size_t nodes) : kept_(nodes) {}
    Inboxes(const Inboxes&) = delete;
    Inboxes& operator=(const Inboxes&) = delete;

    /// Null: there is none.
    Inbox* find(std::uint64_t key) noexcept { return last_ != nullptr && last_->key == key ? last_ : find_other(key); }
    Inbox& find_or_add(std::uint64_t key);
    /// Removes the inbox if it has nothing and nobody uses it.
    void remove_unused(Inbox& box) noexcept;
    std::size_t size() const noexcept { return boxes_.size(); }

    // ---- messages that were not received yet

    /// Keeps a message, or its beginning.
    void keep(Inbox& box, Node source, const CollectiveHeader& head, Bytes data, Forgotten forgotten);
    Inbox::Early take(Inbox& box, std::deque<Inbox::Early>::iterator early);
    /// Messages that are kept.
    std::size_t kept() const noexcept;
    /// The beginning of a message that no call has received, and its inbox. Nulls: there is none.
    std::pair<const Inbox*, const Inbox::Early*> find_kept() const noexcept;
    /// The calls of `source` up to that serial are over: forgets their messages.
    void forget_up_to(Inbox& box, Node source, std::uint32_t serial, Forgotten forgotten);

    // ---- messages that are not wanted

    /// What that node still sends for a call with this serial, and before, is not wanted; without a serial: for the
    /// call of its next message.
    void add_skip(Inbox& box, Node source, std::optional<std::uint32_t> serial, Forgotten forgotten);
    /// Whether a message of that call is not wanted.
    static bool is_skipped(Inbox& box, Node source, std::uint32_t serial);

private:
    Inbox* find_other(std::uint64_t key) noexcept;
    void forget_one(Node source, const Inbox& current, Forgotten forgotten);
    void forget_if(Inbox& box, Node source, base::FunctionRef<bool(std::uint32_t serial)> is_unwanted,
                   Forgotten forgotten);

    std::unordered_map<std::uint64_t, std::unique_ptr<Inbox>> boxes_;
    Inbox* last_ = nullptr;              // that was found
    std::vector<std::uint32_t> kept_;    // by node, its messages
    std::deque<std::uint64_t> skipping_; // keys of boxes that skips were added to, oldest first
};

} // namespace kumi::group
