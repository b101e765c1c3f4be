#pragma once

// The rows of a benchmark: Kumi, the limit and the peers beside each other, as ratios.

#include "kumi/base/result.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kumi::bench {

struct RowKind {
    std::string id;
    std::string unit;
    bool lower_is_better;
    std::string what; // for the table
};

/// Those of cases, each of which has a `row`.
template <class Case>
std::vector<RowKind> rows_of(const std::vector<Case>& cases) {
    std::vector<RowKind> rows;
    for (const Case& one : cases) rows.push_back(one.row);
    return rows;
}

/// Collects what contestants measured, several times each.
class Table {
public:
    Table(std::vector<RowKind> rows, std::vector<std::string> peers);

    /// `who` is "kumi", "limit" or a peer, or a peer in one of several settings, as "openmpi#1": of these the best
    /// counts, row by row. Values for unknown rows are ignored.
    void add(const std::string& who, const std::string& id, double value);
    /// What this contestant measured in this row counts for nothing, for it was wrong once; nor does what follows.
    void strike(const std::string& who, const std::string& id);
    /// A contestant that could not be measured, and why; said once under the table.
    void note(const std::string& text);

    std::string text() const;
    std::string json() const;

    /// Holds the rows against a goals file. A goal is NAME_at_most or NAME_at_least: Kumi's median over that of NAME,
    /// which is "limit", "peer" (the best one) or a peer's name; or "value", Kumi's median itself. What was not
    /// measured is missed. Answers the report; `missed` counts.
    Result<std::string> check(const std::string& goals_path, int& missed) const;

private:
    struct Summary {
        double median;
        double best;
        std::size_t runs;
    };
    /// In its best setting, if it has several.
    std::optional<Summary> summary(const std::string& who, const RowKind& row) const;
    std::optional<double> median(const std::string& who, const RowKind& row) const;
    /// The better of the peers.
    std::optional<double> best_peer(const RowKind& row) const;
    /// What a goal that starts with `name` compares with.
    std::optional<double> base_of(const std::string& name, const RowKind& row) const;
    std::string check_goal(const RowKind& row, const std::string& key, double wanted, bool& good) const;

    std::vector<RowKind> rows_;
    std::vector<std::string> peers_;
    std::map<std::string, std::map<std::string, std::vector<double>>> values_; // by contestant, by row
    std::set<std::pair<std::string, std::string>> struck_; // contestant and row
    std::vector<std::string> notes_;
};

} // namespace kumi::bench
