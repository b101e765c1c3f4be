#include "harness/progress.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace kumi::bench {
namespace {

constexpr double part_min = 0.05; // of the first round; a smaller part does not tell how long the round takes
constexpr std::size_t log_columns = 1000;

/// One column less than the terminal has: a line that fills the last one may wrap, and then cannot be replaced.
std::size_t columns_of(int terminal) {
    winsize size{};
    if (::ioctl(terminal, TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return 79;
    return size.ws_col - 1u;
}

} // namespace

void Estimate::on_step(const Step& step, Instant now) noexcept {
    if (step.round != round_) round_start_ = now;
    if (step.round != round_ || step.part != part_) part_start_ = now;
    round_ = step.round;
    rounds_ = step.rounds;
    part_ = step.part;
}

std::optional<std::chrono::seconds> Estimate::left(Instant now) const noexcept {
    using Seconds = std::chrono::duration<double>;
    const Seconds here = now - round_start_;
    const int before = round_ - 1; // rounds that are complete
    Seconds round{};
    if (before > 0) round = Seconds(round_start_ - start_) / before;
    else if (part_ >= part_min) round = Seconds(part_start_ - start_) / part_;
    else return std::nullopt;
    // A round that takes longer than those before it is about to end.
    const Seconds rest_of_round = std::max(Seconds(0), round - here);
    return std::chrono::round<std::chrono::seconds>(rest_of_round + round * (rounds_ - round_));
}

std::string readable_time(std::chrono::seconds time) {
    const auto seconds = time.count();
    if (seconds < 10) return "a few seconds";
    if (seconds < 100) return fmt::format("about {} s", (seconds + 5) / 10 * 10);
    const auto minutes = (seconds + 30) / 60;
    if (minutes < 60) return fmt::format("about {} min", minutes);
    return fmt::format("about {} h {} min", minutes / 60, minutes % 60);
}

std::string progress_text(const std::string& bench, const Step& step, std::optional<std::chrono::seconds> left,
                          std::size_t columns_max) {
    const std::string round = step.rounds > 1 ? fmt::format("round {} of {}, ", step.round, step.rounds) : "";
    const std::string time = left ? fmt::format("; {} left", readable_time(*left)) : "";
    std::string text = fmt::format("kumi bench {}: {}{}", bench, round, step.what);
    // What is measured is cut, so that the time stays.
    if (text.size() + time.size() > columns_max && columns_max > time.size() + 3)
        text = text.substr(0, columns_max - time.size() - 3) + "...";
    return (text + time).substr(0, columns_max);
}

void ProgressLine::show(const Step& step, Instant now) {
    estimate_.on_step(step, now);
    const auto text = [&](std::size_t columns) { return progress_text(bench_, step, estimate_.left(now), columns); };
    if (is_terminal_) return write("\r\033[K" + text(columns_of(file_)));
    if (now - written_ < apart) return;
    written_ = now;
    write(text(log_columns) + "\n");
}

void ProgressLine::clear() {
    if (is_terminal_) write("\r\033[K");
}

void ProgressLine::write(const std::string& text) const {
    if (::write(file_, text.data(), text.size()) < 0) {
        // nobody reads it; the benchmark goes on
    }
}

} // namespace kumi::bench
