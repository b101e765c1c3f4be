#pragma once

#include "harness/command.hpp"
#include "harness/progress.hpp"
#include "harness/table.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kumi::bench {

/// One contestant in one case.
struct Entry {
    std::string who;
    std::string what; // the case, for messages
    std::vector<std::string> words;
    std::vector<std::string> environment = {};
};

/// The entries in another order in each round, so that no contestant always follows the same one.
std::vector<Entry> in_turn(std::vector<Entry> entries, int round);

/// Runs contestants, one after the other. A contestant that failed is noted under the table and not run again: it would
/// take its whole deadline in each round.
class Stage {
public:
    Stage(Table& table, std::function<void(const Step&)> on_progress)
        : table_(table), on_progress_(std::move(on_progress)) {}

    void begin_round(int number, int count);
    /// `done` of `count` cases of this round are measured; for the estimate of the time that is left.
    void begin_case(std::size_t done, std::size_t count);
    std::optional<Heard> run(const Entry& entry, std::chrono::seconds seconds_max);

private:
    Table& table_;
    std::function<void(const Step&)> on_progress_;
    Step step_;
    std::vector<std::string> failed_;
};

} // namespace kumi::bench
