#pragma once

// Answers of this node's functions that are too large to come with the answers of others: they stay here until the
// master of the multicast has fetched them, part by part. Only a reference (ValueHead) goes up the tree, so what lies
// between this node and the master may be lost without harm, and nobody else needs memory for the answer.
//
// An answer goes when its last part was sent, when the master does not want it, or when the master is lost. A master
// may say that it does not want an answer which does not exist yet: such an answer is not kept. The latest of such
// refusals are remembered.
//
// Bounds: all answers for one master take bytes_max together. A part is sent where it lies, and no more than one part
// of an answer is asked for at a time.
//
// Pure: no engine, clock or thread.

#include "kumi/base/bytes.hpp"
#include "kumi/group/wire/multicast.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace kumi::group {

class HeldAnswers {
public:
    static constexpr std::size_t unwanted_max = 1024;

    HeldAnswers(std::size_t bytes_max, std::size_t part_bytes_max) noexcept
        : bytes_max_(bytes_max), part_bytes_max_(part_bytes_max) {}

    /// Keeps an answer, unless its master does not want it. False: all answers for that master would take too much.
    bool add(const Name& name, std::vector<std::byte> value) {
        if (std::erase(unwanted_, name) != 0) return true;
        if (value.size() > bytes_max_ - std::min(bytes_max_, bytes_of_master(name.master))) return false;
        held_.try_emplace(name, Held{std::move(value), 0, false});
        return true;
    }
    /// Takes all of it; for a master that asks itself.
    std::optional<std::vector<std::byte>> take(const Name& name) {
        const auto found = held_.find(name);
        if (found == held_.end()) return {};
        std::vector<std::byte> value = std::move(found->second.value);
        erase(found);
        return value;
    }

    enum class Asked {
        gone,    // there is no such answer
        unsound, // not the next part, or it was asked for already
        sound,   // the part goes with send()
    };
    /// The master asks for the part that begins at `offset`.
    Asked ask(const Name& name, std::uint64_t offset) {
        const auto found = held_.find(name);
        if (found == held_.end()) return Asked::gone;
        if (found->second.is_asked || offset != found->second.sent) return Asked::unsound;
        found->second.is_asked = true;
        ++asked_;
        return Asked::sound;
    }
    /// Some parts were asked for and have not gone.
    bool has_asked() const noexcept { return asked_ != 0; }
    /// Sends the parts that were asked for, by `try_send(Name, offset, part)`, which is false where there is no room.
    /// True: something was sent.
    template <class TrySend>
    bool send(TrySend&& try_send) {
        bool any = false;
        for (auto at = held_.begin(); asked_ != 0 && at != held_.end();) {
            const auto here = at++;
            Held& held = here->second;
            if (!held.is_asked) continue;
            const Bytes part =
                Bytes(held.value).subspan(held.sent).first(std::min(part_bytes_max_, held.value.size() - held.sent));
            if (!try_send(here->first, std::uint64_t{held.sent}, part)) continue;
            any = true;
            held.sent += part.size();
            held.is_asked = false;
            --asked_;
            if (held.sent == held.value.size()) held_.erase(here);
        }
        return any;
    }

    /// The master does not want the answer, also if it comes later.
    void drop(const Name& name) {
        if (const auto found = held_.find(name); found != held_.end()) return erase(found);
        if (unwanted_.size() >= unwanted_max) unwanted_.pop_front();
        unwanted_.push_back(name);
    }
    /// The master is lost.
    void drop_all_of(Node master) {
        for (auto at = held_.lower_bound({master, 0}); at != held_.end() && at->first.master == master;) erase(at++);
        std::erase_if(unwanted_, [&](const Name& name) { return name.master == master; });
    }
    std::size_t size() const noexcept { return held_.size(); }

private:
    struct Held {
        std::vector<std::byte> value;
        std::size_t sent;
        bool is_asked; // for the next part
    };
    using Table = std::map<Name, Held>;

    void erase(Table::iterator held) {
        if (held->second.is_asked) --asked_;
        held_.erase(held);
    }
    std::size_t bytes_of_master(Node master) const {
        std::size_t bytes = 0;
        for (auto at = held_.lower_bound({master, 0}); at != held_.end() && at->first.master == master; ++at)
            bytes += at->second.value.size();
        return bytes;
    }

    std::size_t bytes_max_;
    std::size_t part_bytes_max_;
    Table held_;
    std::size_t asked_ = 0;     // of these, the number that are asked for
    std::deque<Name> unwanted_; // answers that do not exist, oldest first
};

} // namespace kumi::group
