#pragma once

#include "kumi/boot/wire.hpp"

#include <optional>
#include <string>
#include <vector>

namespace kumi::launch {

/// What each node counted, by node number; nothing from a node that did not say.
using StatsReports = std::vector<std::optional<std::vector<boot::StatsEntry>>>;

/// Tables in text, for each device: what each node counted, and what it counted about its peers. Counters that are 0
/// everywhere are only named.
std::string draw_stats(const StatsReports& reports);

} // namespace kumi::launch
