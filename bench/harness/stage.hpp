#pragma once

#include "harness/command.hpp"
#include "harness/table.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kumi::bench {

/// One contestant in one case.
struct Entry {
    std::string who;
    std::string what; // its case, for people
    std::vector<std::string> words;
    std::vector<std::string> environment = {};
};

/// The same in another order each round: nobody always comes behind the same one.
std::vector<Entry> in_turn(std::vector<Entry> entries, int round);

/// Where contestants appear, one after the other. What failed once is noted under the table and not tried again: it
/// would only take its deadline in each round.
class Stage {
public:
    Stage(Table& table, std::function<void(const std::string&)> on_progress)
        : table_(table), on_progress_(std::move(on_progress)) {}

    void begin_round(int number, int count);
    std::optional<Heard> run(const Entry& entry, std::chrono::seconds seconds_max);

private:
    Table& table_;
    std::function<void(const std::string&)> on_progress_;
    std::string round_;
    std::vector<std::string> failed_;
};

} // namespace kumi::bench
