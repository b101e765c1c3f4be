#pragma once

// First-in first-out lists by key, in which any entry can be removed. An entry is a number below some bound; it is in
// one list at most. Finding a list, and adding or removing an entry, takes the same time however many entries and lists
// there are. No memory is allocated while the numbers of entries and of lists do not grow beyond what they were.

#include "kumi/base/assert.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace kumi::provider {

class Bins {
public:
    using Entry = std::uint32_t;
    static constexpr Entry none = std::numeric_limits<Entry>::max();

    struct Key {
        std::uint64_t tag;
        std::uint32_t source;
        friend bool operator==(const Key&, const Key&) = default;
    };

    /// The oldest entry of a list, or `none`.
    Entry front(const Key& key) const noexcept {
        const std::size_t place = find(key);
        return place == nowhere ? none : slots_[place].first;
    }
    void push_back(const Key& key, Entry entry) {
        if (entry >= links_.size()) links_.resize(entry + std::size_t{1});
        if (2 * (used_ + 1) > slots_.size()) grow();
        Slot& slot = slots_[place_for(key)];
        links_[entry] = {slot.last, none};
        if (slot.last == none) slot = {key, entry, entry}, ++used_;
        else links_[slot.last].next = entry, slot.last = entry;
        ++size_;
    }
    /// The entry must be in the list of that key.
    void remove(const Key& key, Entry entry) noexcept {
        const std::size_t place = find(key);
        KUMI_ASSERT(place != nowhere);
        Slot& slot = slots_[place];
        const Link link = links_[entry];
        (link.before == none ? slot.first : links_[link.before].next) = link.next;
        (link.next == none ? slot.last : links_[link.next].before) = link.before;
        --size_;
        if (slot.first == none) erase(place);
    }

    std::size_t size() const noexcept { return size_; }

private:
    static constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();

    struct Slot {
        Key key{};
        Entry first = none; // none: the slot is free
        Entry last = none;
    };
    struct Link {
        Entry before;
        Entry next;
    };

    static std::uint64_t hash(const Key& key) noexcept {
        std::uint64_t mixed = (key.tag ^ std::uint64_t{key.source} << 40) * 0x9e3779b97f4a7c15;
        mixed ^= mixed >> 32;
        return mixed * 0xd6e8feb86659fd93 >> 16;
    }
    std::size_t home(const Key& key) const noexcept { return hash(key) & (slots_.size() - 1); }
    std::size_t next(std::size_t place) const noexcept { return (place + 1) & (slots_.size() - 1); }
    /// Where the key is, or the free slot where it would be.
    std::size_t place_for(const Key& key) const noexcept {
        std::size_t place = home(key);
        while (slots_[place].first != none && !(slots_[place].key == key)) place = next(place);
        return place;
    }
    std::size_t find(const Key& key) const noexcept {
        if (size_ == 0) return nowhere;
        const std::size_t place = place_for(key);
        return slots_[place].first == none ? nowhere : place;
    }
    /// Frees a slot. Those behind it that would not be found any more are moved.
    void erase(std::size_t hole) noexcept {
        --used_;
        for (std::size_t place = next(hole); slots_[place].first != none; place = next(place)) {
            const std::size_t from_home = (place - home(slots_[place].key)) & (slots_.size() - 1);
            if (from_home < ((place - hole) & (slots_.size() - 1))) continue;
            slots_[hole] = slots_[place];
            hole = place;
        }
        slots_[hole] = {};
    }
    void grow() {
        std::vector<Slot> old(slots_.empty() ? 16 : 2 * slots_.size());
        old.swap(slots_);
        for (const Slot& slot : old)
            if (slot.first != none) slots_[place_for(slot.key)] = slot;
    }

    std::vector<Slot> slots_; // a power of two, at most half of them used
    std::vector<Link> links_; // by entry
    std::size_t used_ = 0;    // slots
    std::size_t size_ = 0;    // entries
};

} // namespace kumi::provider
