#include "harness/stage.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace kumi::bench {

std::vector<Entry> in_turn(std::vector<Entry> entries, int round) {
    if (entries.empty()) return entries;
    const auto first = static_cast<std::size_t>(round) % entries.size();
    std::rotate(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(first), entries.end());
    return entries;
}

void Stage::begin_round(int number, int count) { step_ = {"", number, count, 0}; }

void Stage::begin_case(std::size_t done, std::size_t count) {
    step_.part = static_cast<double>(done) / static_cast<double>(count);
}

std::optional<Heard> Stage::run(const Entry& entry, std::chrono::seconds seconds_max) {
    const std::string name = fmt::format("{} {}", entry.who, entry.what);
    if (std::find(failed_.begin(), failed_.end(), name) != failed_.end()) return std::nullopt;
    step_.what = name;
    on_progress_(step_);
    auto heard = run_contestant(entry.words, entry.environment, seconds_max);
    if (heard) return std::move(*heard);
    failed_.push_back(name);
    table_.note(fmt::format("{}: not measured: {}", name, heard.error().text()));
    return std::nullopt;
}

} // namespace kumi::bench
