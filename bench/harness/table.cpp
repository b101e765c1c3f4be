#include "harness/table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <toml++/toml.h>

namespace kumi::bench {
namespace {

std::string number(std::optional<double> value) {
    if (!value) return "-";
    return fmt::format("{:.{}f}", *value, *value >= 1000 ? 0 : *value >= 10 ? 1 : 2);
}

std::string ratio(std::optional<double> value, std::optional<double> base) {
    if (!value || !base || *base == 0) return "-";
    return fmt::format("{:.2f}", *value / *base);
}

} // namespace

Table::Table(std::vector<RowKind> rows, std::vector<std::string> peers)
    : rows_(std::move(rows)), peers_(std::move(peers)) {}

void Table::add(const std::string& who, const std::string& id, double value) {
    if (!struck_.contains({who, id})) values_[who][id].push_back(value);
}

void Table::strike(const std::string& who, const std::string& id) {
    struck_.insert({who, id});
    values_[who].erase(id);
}

void Table::note(const std::string& text) {
    if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(text);
}

std::optional<Table::Summary> Table::summary(const std::string& who, const RowKind& row) const {
    std::optional<Summary> best;
    for (const auto& [name, by_row] : values_) {
        const auto found = by_row.find(row.id);
        if ((name != who && !name.starts_with(who + "#")) || found == by_row.end()) continue;
        std::vector<double> sorted = found->second;
        std::sort(sorted.begin(), sorted.end());
        const double median = sorted[sorted.size() / 2];
        if (best && (row.lower_is_better ? median >= best->median : median <= best->median)) continue;
        best = Summary{median, row.lower_is_better ? sorted.front() : sorted.back(), sorted.size()};
    }
    return best;
}

std::optional<double> Table::median(const std::string& who, const RowKind& row) const {
    const auto found = summary(who, row);
    return found ? std::optional(found->median) : std::nullopt;
}

std::optional<double> Table::best_peer(const RowKind& row) const {
    std::optional<double> best;
    for (const std::string& peer : peers_)
        if (const auto value = median(peer, row))
            best = !best ? *value : row.lower_is_better ? std::min(*best, *value) : std::max(*best, *value);
    return best;
}

std::optional<double> Table::median(const std::string& who, const std::string& id) const {
    const auto row = std::ranges::find(rows_, id, &RowKind::id);
    return row == rows_.end() ? std::nullopt : median(who, *row);
}

std::string Table::text() const {
    std::string text =
        fmt::format("{:<34} {:>6} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9}  {}\n", "median of several runs", "unit",
                    "better", "kumi", "best", "limit", "to limit", "to peer", peers_.empty() ? "" : "peers");
    for (const RowKind& row : rows_) {
        const auto mine = summary("kumi", row);
        const auto limit = median("limit", row);
        const auto value = mine ? std::optional(mine->median) : std::nullopt;
        text += fmt::format("{:<34} {:>6} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9}", row.id, row.unit,
                            row.lower_is_better ? "lower" : "higher", number(value),
                            number(mine ? std::optional(mine->best) : std::nullopt), number(limit), ratio(value, limit),
                            ratio(value, best_peer(row)));
        for (const std::string& peer : peers_)
            if (const auto measured = median(peer, row)) text += fmt::format("  {} {}", peer, number(measured));
        text += '\n';
    }
    for (const RowKind& row : rows_) text += fmt::format("  {}: {}\n", row.id, row.what);
    for (const std::string& line : notes_) text += fmt::format("  note: {}\n", line);
    return text;
}

std::string Table::json() const {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    const auto value = [](std::optional<double> number_or_none) {
        return number_or_none ? nlohmann::ordered_json(*number_or_none) : nlohmann::ordered_json(nullptr);
    };
    for (const RowKind& row : rows_) {
        nlohmann::ordered_json peers = nlohmann::ordered_json::object();
        for (const std::string& peer : peers_) peers[peer] = value(median(peer, row));
        const auto mine = summary("kumi", row);
        rows.push_back({{"id", row.id},
                        {"unit", row.unit},
                        {"better", row.lower_is_better ? "lower" : "higher"},
                        {"kumi", value(median("kumi", row))},
                        {"limit", value(median("limit", row))},
                        {"peers", peers},
                        {"runs", mine ? mine->runs : 0}});
    }
    return rows.dump(2) + "\n";
}

std::optional<double> Table::base_of(const std::string& name, const RowKind& row) const {
    if (name == "value") return 1.0;
    return name == "peer" ? best_peer(row) : median(name, row);
}

std::string Table::check_goal(const RowKind& row, const std::string& key, double wanted, bool& good) const {
    const bool at_most = key.ends_with("_at_most");
    std::string against = key.substr(0, key.rfind("_at_"));
    const bool is_difference = against.ends_with("_plus");
    if (is_difference) against.erase(against.rfind("_plus"));
    const std::string of_what = is_difference         ? fmt::format("{} above {}", row.unit, against)
                                : against == "value" ? row.unit
                                : against == "peer"  ? "of the best peer"
                                                     : "of " + against;
    const auto mine = median("kumi", row);
    const auto base = base_of(against, row);
    const std::string goal = fmt::format("goal: at {} {:.2f}", at_most ? "most" : "least", wanted);
    if (!mine || !base) {
        good = false;
        return fmt::format("missed   {:<34} not measured {}; {}\n", row.id, of_what, goal);
    }
    const double reached = is_difference ? *mine - *base : *mine / *base;
    good = at_most ? reached <= wanted : reached >= wanted;
    return fmt::format("{:<8} {:<34} {:.2f} {}; {}\n", good ? "reached" : "missed", row.id, reached, of_what, goal);
}

Result<std::string> Table::check(const std::string& goals_path, int& missed) const {
    toml::table goals;
    try {
        goals = toml::parse_file(goals_path);
    } catch (const toml::parse_error& wrong) {
        return error("{}, line {}: {}", goals_path, wrong.source().begin.line, wrong.description());
    }
    std::string report;
    missed = 0;
    for (const RowKind& row : rows_) {
        const toml::table* goal = goals[row.id].as_table();
        if (goal == nullptr) continue;
        for (const auto& [key, value] : *goal) {
            const std::string name(key.str());
            const auto wanted = value.value<double>();
            if (!wanted || !(name.ends_with("_at_most") || name.ends_with("_at_least")))
                return error("{}: {}: {} is no goal; those are NAME_at_most and NAME_at_least, and numbers", goals_path,
                             row.id, name);
            bool good = false;
            report += check_goal(row, name, *wanted, good);
            missed += good ? 0 : 1;
        }
    }
    return report;
}

} // namespace kumi::bench
