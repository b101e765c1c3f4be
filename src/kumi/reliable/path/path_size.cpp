#include "kumi/reliable/path/path_size.hpp"

#include <algorithm>

namespace kumi::reliable {
namespace {

using namespace std::chrono_literals;

/// A size is too large after this many lost probes: packets get lost for other reasons too, and small ones may overtake
/// a large one.
constexpr unsigned tries_max = 3;
/// Pause between probes of one size, longer each time: what made one probe get lost may still last.
constexpr Duration pause = 20ms;
/// The search ends when the size is known this precisely.
constexpr std::uint32_t close_enough = 32;
/// A path that carries less than the hosts is probed again after this time: a switch may have been replaced.
constexpr Duration raise_again = 10min;

} // namespace

PathSize::PathSize(std::uint32_t sure_bytes, std::uint32_t limit_bytes) noexcept
    : sure_(sure_bytes), limit_(limit_bytes), bytes_(std::min(sure_, limit_)), too_large_(limit_bytes + 8) {}

void PathSize::begin(Instant now) noexcept {
    if (bytes_ < limit_ && probe_bytes_ == 0) try_next(limit_, now);
}

void PathSize::set_limit(std::uint32_t bytes, Instant now) noexcept {
    too_large_ = too_large_ > limit_ ? bytes + 8 : std::min(too_large_, bytes + 8);
    limit_ = bytes;
    const bool is_sure = sure_ == packet_bytes_max || too_large_ > sure_;
    bytes_ = std::min(is_sure ? std::max(bytes_, sure_) : bytes_, limit_);
    if (probe_bytes_ != 0) search(now);
}

void PathSize::doubt(Instant now) noexcept {
    const bool is_tried = probe_bytes_ == bytes_;
    if (is_tried || sure_ == packet_bytes_max || bytes_ <= packet_bytes_min) return;
    try_next(bytes_, now);
}

void PathSize::try_next(std::uint32_t bytes, Instant when) noexcept {
    probe_bytes_ = bytes;
    first_number_ = ++number_;
    tries_ = 0;
    is_out_ = false;
    next_at_ = when;
}

/// Binary search between the largest size that passes and the smallest that does not.
void PathSize::search(Instant now) noexcept {
    if (too_large_ > limit_ && bytes_ < limit_) return try_next(limit_, now);
    if (bytes_ + close_enough < too_large_ && bytes_ < limit_)
        return try_next((bytes_ + (too_large_ - bytes_) / 2) & ~7u, now);
    is_narrow_ = bytes_ < limit_;
    if (is_narrow_) try_next(limit_, now + raise_again);
    else probe_bytes_ = 0, is_out_ = false, next_at_ = never;
}

void PathSize::on_probe_sent(Sequence number, Sequence transmission) noexcept {
    if (probe_bytes_ == 0 || number != number_) return;
    transmission_ = transmission;
    is_out_ = true;
}

void PathSize::on_answer(Sequence number, Instant now) noexcept {
    // the answer may come late, after the next probe was sent
    const bool is_of_this_size = number - first_number_ <= number_ - first_number_;
    if (probe_bytes_ == 0 || !is_of_this_size) return;
    if (probe_bytes_ >= too_large_) too_large_ = limit_ + 8; // the path carries more than before
    bytes_ = std::max(bytes_, probe_bytes_);
    search(now);
}

void PathSize::on_probe_lost(Instant now) noexcept {
    is_out_ = false;
    ++number_;
    next_at_ = now + pause * ++tries_;
    if (tries_ < tries_max) return;
    if (probe_bytes_ <= bytes_) bytes_ = bytes_ > sure_ ? sure_ : packet_bytes_min;
    too_large_ = std::min(too_large_, probe_bytes_);
    search(now);
}

} // namespace kumi::reliable
