#include "kumi/device/composite/letters/own_letters.hpp"

#include <algorithm>
#include <utility>

namespace kumi::device::composite {
namespace {

using namespace std::chrono_literals;

/// Letters that relays were given and the destination has not acknowledged are given again; later, where arrivals are
/// as far apart anyway.
constexpr Duration again_after = 300ms; // and twice as long each time
constexpr Duration again_after_max = 1s;
constexpr unsigned doublings_max = 7;

} // namespace

void OwnLetters::push(Letter letter) {
    if (letters_.empty()) waits_since_ = never; // the time is not known here
    bytes_ += letter.size();
    letters_.push_back(std::move(letter));
    if (next_ == letters_.end()) --next_;
}

void OwnLetters::put_back(Letters letters) {
    for (const Letter& letter : letters) {
        bytes_ += letter.size();
        note_given(head_of(letter).sequence);
    }
    letters_.splice(letters_.begin(), letters);
    begin_again();
}

void OwnLetters::clear() noexcept {
    letters_.clear();
    bytes_ = 0;
    begin_again();
}

void OwnLetters::begin_again() noexcept {
    next_ = letters_.begin();
    given_bytes_ = 0;
    window_.on_given_again();
}

void OwnLetters::pop_front() noexcept {
    bytes_ -= letters_.front().size();
    letters_.pop_front();
    next_ = letters_.begin();
}

void OwnLetters::ask_for_arrivals() noexcept {
    for (Letter& letter : letters_) {
        Envelope head = head_of(letter);
        head.asks = true;
        std::memcpy(letter.data(), &head, sizeof head);
    }
}

const Letter* OwnLetters::next() const noexcept {
    const Letters::const_iterator next = next_;
    if (next == letters_.end()) return nullptr;
    return given_bytes_ == 0 || given_bytes_ + next->size() <= window_.bytes() ? &*next : nullptr;
}

void OwnLetters::on_given(Instant now) noexcept {
    if (next_ == letters_.begin()) given_ = now;
    if (const Sequence sequence = head_of(*next_).sequence; note_given(sequence)) window_.on_given(sequence, now);
    given_bytes_ += next_->size();
    ++next_;
}

/// True: no relay or device was given it before.
bool OwnLetters::note_given(Sequence sequence) noexcept {
    if (is_before(sequence, given_end_)) return false;
    given_end_ = sequence + 1;
    return true;
}

bool OwnLetters::on_arrived(Sequence expected, Instant now) noexcept {
    const Duration waited = unanswered(now);
    const std::size_t before = letters_.size();
    const Sequence end = is_before(expected, given_end_) ? expected : given_end_; // nothing else can have arrived
    while (!letters_.empty() && is_before(head_of(letters_.front()).sequence, end)) {
        bytes_ -= letters_.front().size();
        if (next_ == letters_.begin()) ++next_; // it was to be given again, and the first copy has arrived
        else given_bytes_ -= letters_.front().size();
        letters_.pop_front();
    }
    if (letters_.size() == before) return false;
    waits_since_ = now;
    timeouts_ = 0;
    answer_time_ = std::max(waited, answer_time_ - answer_time_ / 8);
    window_.on_arrived(expected, now);
    return true;
}

std::size_t OwnLetters::on_new_path(Instant now) noexcept {
    const std::size_t again = next_ == letters_.begin() ? 0 : letters_.size();
    begin_again();
    window_.on_new_path();
    waits_since_ = now;
    timeouts_ = 0;
    return again;
}

bool OwnLetters::is_overdue(Instant now) const noexcept {
    if (given_bytes_ == 0 || next() != nullptr) return false;
    const Duration wait =
        std::clamp(4 * answer_time_, again_after, again_after_max) * (1u << std::min(timeouts_, doublings_max));
    return now - std::max(given_, waits_since_) > wait;
}

void OwnLetters::on_timeout() noexcept {
    begin_again();
    window_.on_timeout();
    ++timeouts_;
}

} // namespace kumi::device::composite
