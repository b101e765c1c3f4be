#pragma once

// Shows on standard error where a benchmark is, and how long it still takes.

#include "kumi/base/clock.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace kumi::bench {

/// What a benchmark does now.
struct Step {
    std::string what; // what it measures, and of which contestant
    int round = 1;
    int rounds = 1;
    double part = 0; // of this round that is done, from 0 to 1
};

/// Estimates how long a benchmark still takes, from the time that its rounds took so far. All rounds measure the same.
/// In the first round the part that is done counts instead. Pure: the caller passes the time.
class Estimate {
public:
    explicit Estimate(Instant start) noexcept : start_(start), round_start_(start), part_start_(start) {}

    void on_step(const Step& step, Instant now) noexcept;
    /// Nothing: too little is done to tell.
    std::optional<std::chrono::seconds> left(Instant now) const noexcept;

private:
    Instant start_;
    Instant round_start_; // of the round that is under way
    int round_ = 1;
    int rounds_ = 1;
    double part_ = 0;
    Instant part_start_; // when that part was done
};

/// "about 40 s", "about 3 min", "about 1 h 20 min"
std::string readable_time(std::chrono::seconds time);

/// "kumi bench udp: round 2 of 7, kumi rate.32 loopback; about 3 min left", in at most `columns_max` columns.
std::string progress_text(const std::string& bench, const Step& step, std::optional<std::chrono::seconds> left,
                          std::size_t columns_max);

/// The line of progress. On a terminal each line replaces the one before. Elsewhere, as in a log, only a few are
/// written: at most one in `apart`, none of them in the beginning.
class ProgressLine {
public:
    static constexpr std::chrono::seconds apart{30};

    /// `file`: a descriptor, as standard error.
    ProgressLine(std::string bench, int file, bool is_terminal, Instant now)
        : bench_(std::move(bench)), file_(file), is_terminal_(is_terminal), written_(now), estimate_(now) {}

    void show(const Step& step, Instant now);
    /// Removes the line.
    void clear();

private:
    void write(const std::string& text) const;

    std::string bench_;
    int file_;
    bool is_terminal_;
    Instant written_; // when a line was last written that is not replaced
    Estimate estimate_;
};

} // namespace kumi::bench
