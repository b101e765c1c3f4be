#pragma once

#include "kumi/device/composite/letters/own_letters.hpp"

#include <algorithm>
#include <vector>

namespace kumi::device::composite {

/// What this node has to tell one peer about links, arrivals and leaving: envelopes without a body, which go by
/// whatever way is in use. A later one takes the place of one that it makes void. Pure.
class Notes {
public:
    bool empty() const noexcept { return notes_.empty(); }
    const Envelope& front() const noexcept { return notes_.front(); }
    void pop_front() { notes_.erase(notes_.begin()); }
    void clear() noexcept { notes_.clear(); }
    template <class Is>
    bool has(Is&& is) const {
        return std::any_of(notes_.begin(), notes_.end(), is);
    }

    void add(const Envelope& note) {
        std::erase_if(notes_, [&](const Envelope& one) { return makes_void(note, one); });
        notes_.push_back(note);
    }

private:
    static bool is_hearing(Envelope::Kind kind) noexcept {
        return kind == Envelope::Kind::deaf || kind == Envelope::Kind::hears;
    }
    static bool makes_void(const Envelope& later, const Envelope& one) noexcept {
        const bool are_alike = one.kind == later.kind || (is_hearing(one.kind) && is_hearing(later.kind));
        return are_alike && one.sequence == later.sequence;
    }

    std::vector<Envelope> notes_;
};

/// Seeks, and answers to seeks and pings along paths, for one neighbour: they go before all messages. Pure.
class UrgentLetters {
public:
    /// Of more the oldest go: nodes that seek ask again.
    static constexpr std::size_t letters_max = 256;

    bool empty() const noexcept { return letters_.empty(); }
    std::size_t size() const noexcept { return letters_.size(); }
    const Letter& front() const noexcept { return letters_.front(); }
    void pop_front() { letters_.pop_front(); }
    void clear() noexcept { letters_.clear(); }

    void push(Bytes letter) {
        const Envelope head = head_of(letter);
        std::erase_if(letters_, [&](const Letter& one) { return is_outdated(head_of(one), head); });
        if (letters_.size() >= letters_max) letters_.pop_front();
        letters_.emplace_back(letter.begin(), letter.end());
    }

private:
    /// An earlier seek of a search says less than a later one.
    static bool is_outdated(const Envelope& one, const Envelope& later) noexcept {
        return later.kind == Envelope::Kind::seek && one.kind == later.kind && one.source == later.source &&
               one.destination == later.destination && one.sequence != later.sequence;
    }

    Letters letters_;
};

} // namespace kumi::device::composite
