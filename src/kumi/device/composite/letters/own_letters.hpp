#pragma once

// Messages from this node to one other node that this node keeps itself: those that no device has taken yet, and, where
// relays pass them on, those that the destination has not acknowledged. The latter are given to the first relay in
// order, as many as its window allows, and given again when nothing arrives.

#include "kumi/base/clock.hpp"
#include "kumi/device/composite/letters/envelope.hpp"
#include "kumi/device/composite/letters/relay_window.hpp"

#include <list>
#include <vector>

namespace kumi::device::composite {

using Letter = std::vector<std::byte>; // an envelope and what is in it
using Letters = std::list<Letter>;

class OwnLetters {
public:
    OwnLetters() = default;
    OwnLetters(const OwnLetters&) = delete;
    OwnLetters& operator=(const OwnLetters&) = delete;

    bool empty() const noexcept { return letters_.empty(); }
    std::size_t size() const noexcept { return letters_.size(); }
    std::size_t bytes() const noexcept { return bytes_; }

    void push(Letter letter);
    /// Letters that a device kept, and which are older than all that are here. All are to be sent from the first one
    /// on.
    void put_back(Letters letters);
    void clear() noexcept;
    /// All are to be given from the first one on.
    void begin_again() noexcept;

    // ---- to a device, which keeps what it takes

    const Letter& front() const noexcept { return letters_.front(); }
    void pop_front() noexcept;

    // ---- over relays

    /// Relays pass on what they are given: the destination is to acknowledge each letter.
    void ask_for_arrivals() noexcept;
    /// The next one to be given to the first relay; null if there is none, or the window does not allow it.
    const Letter* next() const noexcept;
    void on_given(Instant now) noexcept;
    /// True: letters have arrived of which this was not known.
    bool on_arrived(Sequence expected, Instant now) noexcept;
    /// All go by another path, from the first one on. Answers how many are given again.
    std::size_t on_new_path(Instant now) noexcept;

    /// Starts the time for which an arrival is waited for, if there is one to wait for. To be called regularly.
    void look(Instant now) noexcept { waits_since_ = empty() ? never : std::min(waits_since_, now); }
    /// For how long nothing has arrived though something should.
    Duration unanswered(Instant now) const noexcept { return waits_since_ != never ? now - waits_since_ : Duration{0}; }
    /// Whether a relay may have died with letters: all that the window allows were given and nothing has arrived for
    /// long.
    bool is_overdue(Instant now) const noexcept;
    /// Gives all again, and waits twice as long next time.
    void on_timeout() noexcept;

private:
    bool note_given(Sequence sequence) noexcept;

    Letters letters_;
    Letters::iterator next_ = letters_.end(); // the first that no relay was given
    std::size_t bytes_ = 0;
    std::size_t given_bytes_ = 0; // of letters before next_
    Sequence given_end_ = 0;      // behind the last letter that a relay or a device was given
    RelayWindow window_;
    Instant waits_since_ = never;
    Instant given_{};         // when a relay was last given the first letter
    unsigned timeouts_ = 0;   // since something arrived
    Duration answer_time_{0}; // the longest between two arrivals lately, while there was something to arrive
};

} // namespace kumi::device::composite
