#pragma once

#include "kumi/launch/rendezvous.hpp"

#include <string>

namespace kumi::tools {

using launch::StatsReports;

/// Tables in text, for each device: what each node counted, and what it counted about its peers. Counters that are 0
/// everywhere are only named.
std::string draw_stats(const StatsReports& reports);

} // namespace kumi::tools
