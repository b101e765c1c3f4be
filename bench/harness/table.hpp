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

/// The rows of cases. Each case has a member `row`.
template <class Case>
std::vector<RowKind> rows_of(const std::vector<Case>& cases) {
    std::vector<RowKind> rows;
    for (const Case& one : cases) rows.push_back(one.row);
    return rows;
}

/// Collects the results of contestants, several of each for a row.
class Table {
public:
    Table(std::vector<RowKind> rows, std::vector<std::string> peers);

    /// `who` is "kumi", "limit" or a peer; or a peer in one of several settings, as "openmpi#1": in each row the best
    /// setting counts. Values for unknown rows are ignored.
    void add(const std::string& who, const std::string& id, double value);
    /// Discards all values of this contestant in this row, those to come included, because one of its runs was wrong.
    void strike(const std::string& who, const std::string& id);
    /// Adds a line under the table, once: a contestant that could not be measured, and why.
    void note(const std::string& text);

    /// The median of a contestant in a row; nothing if it was not measured.
    std::optional<double> median(const std::string& who, const std::string& id) const;

    std::string text() const;
    std::string json() const;

    /// Compares the rows with a goals file. A goal is NAME_at_most or NAME_at_least: Kumi's median over that of NAME,
    /// which is "limit", "peer" (the best one) or a peer's name; or "value", Kumi's median itself. A goal of a row that
    /// was not measured is missed. Returns the report; `missed` is the number of missed goals.
    Result<std::string> check(const std::string& goals_path, int& missed) const;

private:
    struct Summary {
        double median;
        double best;
        std::size_t runs;
    };
    /// Of a contestant in its best setting, if it has several.
    std::optional<Summary> summary(const std::string& who, const RowKind& row) const;
    std::optional<double> median(const std::string& who, const RowKind& row) const;
    /// The median of the best peer.
    std::optional<double> best_peer(const RowKind& row) const;
    /// The value that a goal which starts with `name` compares with.
    std::optional<double> base_of(const std::string& name, const RowKind& row) const;
    std::string check_goal(const RowKind& row, const std::string& key, double wanted, bool& good) const;

    std::vector<RowKind> rows_;
    std::vector<std::string> peers_;
    std::map<std::string, std::map<std::string, std::vector<double>>> values_; // by contestant, by row
    std::set<std::pair<std::string, std::string>> struck_; // contestant and row
    std::vector<std::string> notes_;
};

} // namespace kumi::bench
