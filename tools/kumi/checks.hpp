#pragma once

// The checks of `kumi doctor`. Each tries the thing itself where it can, instead of believing a setting.

#include <string>
#include <string_view>
#include <vector>

namespace kumi::tools {

enum class State { good, could_be_better, bad };

struct Finding {
    std::string_view group;
    std::string what;
    State state;
    std::string found;
    std::string remedy = {}; // what to do about it; empty when nothing is to be done
};

std::vector<Finding> examine_machine();

} // namespace kumi::tools
