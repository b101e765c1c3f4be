#include "kumi/device/composite/stripes/rails.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace kumi::device::composite {
namespace {

/// What stripes must bring, to be used; and to be used on.
constexpr double gain_wanted = 1.15;
constexpr double gain_kept = 1.05;
/// How fast shares follow what is carried, and the least that they get.
constexpr double share_step = 0.25;
constexpr double share_min = 0.02;

double median(double a, double b, double c) noexcept { return std::max(std::min(a, b), std::min(std::max(a, b), c)); }

} // namespace

Rails::Rails(std::size_t count, bool always)
    : always_(always), is_striped_(always && count > 1),
      shares_(count, 1.0 / static_cast<double>(std::max<std::size_t>(count, 1))), given_(count) {}

bool Rails::on_time(Instant now, std::uint64_t usable, bool are_clear) noexcept {
    const bool is_pressed = std::exchange(is_pressed_, false);
    learn_shares(is_pressed);
    if (usable != usable_) {
        usable_ = usable;
        start_over(now);
    }
    const bool are_several = std::popcount(usable) > 1;
    if (always_ || !are_several) {
        is_striped_ = always_ && are_several;
        return false;
    }
    if (is_pressed) pressed_at_ = now;
    if (now - pressed_at_ > pause_max) { // stripes would bring nothing now
        pressed_since_ = never;
        is_measuring_ = false;
        step_.reset();
        is_striped_ = pays_;
        return false;
    }
    if (step_) return is_pressed && end_step(now, are_clear);
    pressed_since_ = std::min(pressed_since_, now);
    if (pays_ && is_pressed) {
        const auto rate = end_period(now);
        if (rate && *rate < rates_.single) try_at_ = std::min(try_at_, trial_began_ + try_again_soonest);
        if (rate || !is_measuring_) begin_period(now);
    }
    if (now - pressed_since_ < pressed_time || now < try_at_) return false;
    step_ = 0;
    trial_began_ = now;
    begin_step(now);
    return false;
}

/// What was found out about other rails counts for nothing.
void Rails::start_over(Instant now) noexcept {
    is_striped_ = pays_ = false;
    step_.reset();
    is_measuring_ = false;
    pressed_since_ = never;
    try_at_ = now;
    try_again_after_ = try_again_after;
    const auto count = static_cast<double>(std::max(std::popcount(usable_), 1));
    std::fill(shares_.begin(), shares_.end(), 1 / count);
}

void Rails::learn_shares(bool is_pressed) noexcept {
    const double all = std::accumulate(given_.begin(), given_.end(), 0.0);
    for (std::size_t i = 0; is_pressed && all > 0 && i < shares_.size(); ++i)
        shares_[i] = std::max(share_min, shares_[i] + share_step * (given_[i] / all - shares_[i]));
    std::fill(given_.begin(), given_.end(), 0.0);
}

// ---- a trial

void Rails::begin_step(Instant now) noexcept {
    began_ = now;
    is_measuring_ = false;
    is_striped_ = *step_ % 2 == 1;
}

void Rails::begin_period(Instant now) noexcept {
    is_measuring_ = true;
    began_ = now;
    bytes_ = messages_ = 0;
}

/// The rate, if it was long enough.
std::optional<double> Rails::end_period(Instant now) const noexcept {
    if (!is_measuring_ || now - began_ < period_time || messages_ < period_messages) return std::nullopt;
    return static_cast<double>(bytes_) / std::chrono::duration<double>(now - began_).count();
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
    conclude(now);
    return true;
}

void Rails::conclude(Instant now) noexcept {
    rates_ = {.single = median(measured_[0], measured_[2], measured_[4]),
              .striped = median(measured_[1], measured_[3], measured_[5])};
    pays_ = is_striped_ = rates_.striped >= rates_.single * (pays_ ? gain_kept : gain_wanted);
    step_.reset();
    is_measuring_ = false;
    if (pays_) try_again_after_ = try_again_after;
    try_at_ = now + std::max<Duration>(try_again_after_, try_again_factor * (now - trial_began_));
    if (!pays_) try_again_after_ = std::min(try_again_after_ * 2, try_again_after_max);
}

} // namespace kumi::device::composite
