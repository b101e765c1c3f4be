#include "table.hpp"

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

Table::Table(std::vector<RowKind> rows, std::vector<std::string> peers) : rows_(std::move(rows)), peers_(std::move(peers)) {}

void Table::add(const std::string& who, const std::string& id, double value) { values_[who][id].push_back(value); }

void Table::note(const std::string& text) {
    if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(text);
}

std::optional<Table::Summary> Table::summary(const std::string& who, const RowKind& row) const {
    const auto contestant = values_.find(who);
    if (contestant == values_.end()) return std::nullopt;
    const auto found = contestant->second.find(row.id);
    if (found == contestant->second.end()) return std::nullopt;
    std::vector<double> sorted = found->second;
    std::sort(sorted.begin(), sorted.end());
    return Summary{sorted[sorted.size() / 2], row.lower_is_better ? sorted.front() : sorted.back(), sorted.size()};
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

std::string Table::text() const {
    std::string text = fmt::format("{:<34} {:>6} {:>6} {:>9} {:>9} {:>9}", "median of several runs", "unit", "better", "kumi", "best", "limit");
    for (const std::string& peer : peers_) text += fmt::format(" {:>9}", peer);
    text += fmt::format(" {:>9} {:>9}\n", "to limit", "to peer");
    for (const RowKind& row : rows_) {
        const auto mine = summary("kumi", row);
        const auto limit = median("limit", row);
        const auto value = mine ? std::optional(mine->median) : std::nullopt;
        text += fmt::format("{:<34} {:>6} {:>6} {:>9} {:>9} {:>9}", row.id, row.unit, row.lower_is_better ? "lower" : "higher",
                            number(value), number(mine ? std::optional(mine->best) : std::nullopt), number(limit));
        for (const std::string& peer : peers_) text += fmt::format(" {:>9}", number(median(peer, row)));
        text += fmt::format(" {:>9} {:>9}\n", ratio(value, limit), ratio(value, best_peer(row)));
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
        const auto mine = median("kumi", row);
        const auto hold = [&](const char* key, std::optional<double> base, const char* of_what, bool at_most) {
            const auto wanted = (*goal)[key].value<double>();
            if (!wanted) return;
            if (!mine || !base) {
                ++missed;
                report += fmt::format("missed   {:<34} not measured against the {}\n", row.id, of_what);
                return;
            }
            const double reached = *mine / *base;
            const bool good = at_most ? reached <= *wanted : reached >= *wanted;
            missed += good ? 0 : 1;
            report += fmt::format("{} {:<34} {:.2f} of the {}; goal: at {} {:.2f}\n", good ? "reached " : "missed  ", row.id, reached,
                                  of_what, at_most ? "most" : "least", *wanted);
        };
        hold("limit_at_most", median("limit", row), "limit", true);
        hold("limit_at_least", median("limit", row), "limit", false);
        hold("peer_at_most", best_peer(row), "best peer", true);
        hold("peer_at_least", best_peer(row), "best peer", false);
        hold("value_at_most", 1.0, row.unit.c_str(), true);
    }
    return report;
}

} // namespace kumi::bench
