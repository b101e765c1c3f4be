#include "kumi/device/composite/stripes/rails.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace kumi::device::composite {
namespace {

/// What stripes must bring, to be used; and to be used on.
constexpr double gain_wanted = 1.10;
constexpr double gain_kept = 1.03;
/// How fast a rate follows what is measured.
constexpr double rate_step = 0.25;
/// A network that was idle while senders waited is taken for so much faster, but for no more than so many times what it
/// carried.
constexpr double idle_growth = 1.1;
constexpr double idle_growth_max = 2;

double median(double a, double b, double c) noexcept { return std::max(std::min(a, b), std::min(std::max(a, b), c)); }
double seconds(Duration time) noexcept { return std::chrono::duration<double>(time).count(); }
constexpr std::uint64_t bit(std::size_t rail) noexcept { return std::uint64_t{1} << rail; }

} // namespace

Rails::Rails(std::size_t count, bool always)
    : always_(always), is_striped_(always && count > 1), rails_(std::min<std::size_t>(count, 64)) {}

bool Rails::on_time(Instant now, std::uint64_t usable, std::size_t current, bool are_clear) noexcept {
    const bool is_pressed = std::exchange(is_pressed_, false);
    if (usable != usable_ || current != current_) {
        usable_ = usable;
        current_ = current;
        start_over(now);
    }
    learn_rates(now, is_pressed);
    const bool are_several = std::popcount(usable) > 1;
    if (always_ || !are_several) {
        is_striped_ = always_ && are_several;
        return false;
    }
    if (is_pressed) pressed_at_ = now;
    if (now - pressed_at_ > pause_max) { // stripes would bring nothing now
        pressed_since_ = never;
        is_measuring_ = is_timed_ = false;
        to_be_timed_ = under_way_ = 0;
        step_.reset();
        is_striped_ = pays_;
        return false;
    }
    if (step_) return is_pressed && end_step(now, are_clear);
    if (is_timed_) return end_timing(now);
    pressed_since_ = std::min(pressed_since_, now);
    if (pays_ && is_pressed) {
        const auto rate = end_period(now);
        if (rate && *rate < rates_.single) try_at_ = std::min(try_at_, trial_began_ + try_again_soonest);
        if (rate || !is_measuring_) begin_period(now);
    }
    if (now - pressed_since_ >= pressed_time && now >= try_at_) begin_timing(now);
    return false;
}

/// What was found out about other rails counts for nothing.
void Rails::start_over(Instant now) noexcept {
    is_striped_ = pays_ = false;
    step_.reset();
    is_measuring_ = is_timed_ = false;
    to_be_timed_ = under_way_ = 0;
    worthy_ = all;
    pressed_since_ = never;
    try_at_ = now;
    try_again_after_ = try_again_after;
    for (Rail& rail : rails_) rail = {.arrived = rail.arrived, .since = now, .arrived_before = rail.arrived};
}

// ---- rates

void Rails::learn_rates(Instant now, bool is_pressed) noexcept {
    for (std::size_t i = 0; i < rails_.size(); ++i) {
        Rail& rail = rails_[i];
        const Duration time = now - rail.since;
        const bool is_enough = time >= look_time && rail.arrived - rail.arrived_before >= look_bytes;
        if (is_pressed && !is_enough && time < look_time_max) continue;
        if (is_pressed) learn_rate(i, now);
        begin_look(rail, now);
    }
    double sum = 0;
    unsigned known = 0;
    for (const Rail& rail : rails_)
        if (rail.rate > 0) sum += rail.rate, ++known;
    rate_of_unknown_ = known != 0 ? sum / known : 1;
    if (is_striped_ && !always_) find_worthy();
}

void Rails::begin_look(Rail& rail, Instant now) noexcept {
    rail.carries = rail.arrived != rail.arrived_before;
    rail.since = now;
    rail.arrived_before = rail.arrived;
    rail.was_idle = false;
}

void Rails::learn_rate(std::size_t index, Instant now) noexcept {
    Rail& rail = rails_[index];
    const double measured = static_cast<double>(rail.arrived - rail.arrived_before) / seconds(now - rail.since);
    const bool is_used = is_striped_ ? (worthy_ & usable_ & bit(index)) != 0 : index == current_;
    if (!is_used) return;
    if (rail.rate == 0) rail.rate = measured;
    else if (!rail.was_idle) rail.rate += rate_step * (measured - rail.rate);
    else rail.rate = std::max(rail.rate, std::min(rail.rate * idle_growth, measured * idle_growth_max));
}

/// A rail that is not worth a piece any more is not given any until it is timed again.
void Rails::find_worthy() noexcept {
    double best = 0;
    for (std::size_t i = 0; i < rails_.size(); ++i)
        if ((usable_ & bit(i)) != 0) best = std::max(best, rails_[i].rate);
    for (std::size_t i = 0; i < rails_.size(); ++i)
        if (rails_[i].rate < best * worth_it) worthy_ &= ~bit(i);
}

/// True if the rails that are worth a piece carry together `gain` times as much as the current one.
bool Rails::do_rates_promise(double gain) const noexcept {
    double sum = 0;
    for (std::size_t i = 0; i < rails_.size(); ++i)
        if ((worthy_ & usable_ & bit(i)) != 0) sum += rails_[i].rate;
    return sum >= rails_[current_].rate * gain;
}

// ---- timing

/// Rails that carry something now need not be timed.
void Rails::begin_timing(Instant now) noexcept {
    to_be_timed_ = usable_ & ~bit(current_);
    for (std::size_t i = 0; is_striped_ && i < rails_.size(); ++i)
        if (rails_[i].carries) to_be_timed_ &= ~bit(i);
    is_timed_ = true;
    trial_began_ = now;
}

void Rails::on_timed_given(std::size_t rail, std::size_t bytes, Instant now) noexcept {
    to_be_timed_ &= ~bit(rail);
    under_way_ |= bit(rail);
    rails_[rail].timed_at = now;
    rails_[rail].timed_bytes = bytes;
}

void Rails::on_timed_arrived(std::size_t index, Instant now) noexcept {
    under_way_ &= ~bit(index);
    Rail& rail = rails_[index];
    const Duration time = std::max<Duration>(now - rail.timed_at, std::chrono::microseconds(1));
    rail.rate = std::min(static_cast<double>(rail.timed_bytes) / seconds(time), rails_[current_].rate);
}

/// A trial begins when all letters have arrived that may still show that a rail is worth it, if that is promising.
/// True: it is over.
bool Rails::end_timing(Instant now) noexcept {
    const double least = rails_[current_].rate * worth_it;
    for (std::size_t i = 0; i < rails_.size(); ++i) {
        if (!is_timing(i)) continue;
        Rail& rail = rails_[i];
        const double most = static_cast<double>(rail.timed_bytes) / std::max(seconds(now - rail.timed_at), 1e-9);
        if (most >= least) return false;
        rail.rate = most;
    }
    is_timed_ = false;
    to_be_timed_ = under_way_ = 0; // those that had no room, and those that are too late
    worthy_ = all;
    find_worthy();
    if (!do_rates_promise(pays_ ? gain_kept : gain_wanted)) {
        rates_ = {.single = rails_[current_].rate, .striped = 0};
        conclude(now, false, std::min(try_again_after_, time_again_after_max));
        return true;
    }
    step_ = 0;
    begin_step(now);
    return false;
}

// ---- a trial

void Rails::begin_step(Instant now) noexcept {
    began_ = now;
    is_measuring_ = false;
    is_striped_ = *step_ % 2 == 1;
    for (Rail& rail : rails_) begin_look(rail, now);
}

void Rails::begin_period(Instant now) noexcept {
    is_measuring_ = true;
    began_ = now;
    arrived_before_ = arrived();
}

std::uint64_t Rails::arrived() const noexcept {
    std::uint64_t bytes = 0;
    for (const Rail& rail : rails_) bytes += rail.arrived;
    return bytes;
}

/// The rate, if it was long enough.
std::optional<double> Rails::end_period(Instant now) const noexcept {
    const std::uint64_t bytes = arrived() - arrived_before_;
    if (!is_measuring_ || now - began_ < period_time || bytes < period_bytes) return std::nullopt;
    return static_cast<double>(bytes) / seconds(now - began_);
}

/// A sender was refused: a period may begin or end. True: the trial is over.
bool Rails::end_step(Instant now, bool are_clear) noexcept {
    if (!is_measuring_) {
        if (now - began_ >= settle_time && (is_striped_ || are_clear)) begin_period(now);
        return false;
    }
    const auto rate = end_period(now);
    if (!rate) return false;
    measured_[*step_] = *rate;
    if (++*step_ < steps) return begin_step(now), false;
    rates_ = {.single = median(measured_[0], measured_[2], measured_[4]),
              .striped = median(measured_[1], measured_[3], measured_[5])};
    const bool pays = rates_.striped >= rates_.single * (pays_ ? gain_kept : gain_wanted);
    conclude(now, pays, std::max<Duration>(try_again_after_, try_again_factor * (now - trial_began_)));
    return true;
}

/// The next trial begins after `rest`. While stripes do not pay, the rests become longer.
void Rails::conclude(Instant now, bool pays, Duration rest) noexcept {
    pays_ = is_striped_ = pays;
    step_.reset();
    is_measuring_ = false;
    try_at_ = now + rest;
    try_again_after_ = pays_ ? try_again_after : std::min(2 * rest, try_again_after_max);
}

} // namespace kumi::device::composite
