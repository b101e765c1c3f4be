#pragma once

#include "kumi/launch/rendezvous.hpp"

#include <string>

namespace kumi::tools {

/// Draws in text how many messages each node sent to each other, over which device: rows send, columns receive.
std::string draw_traffic(const launch::TrafficReports& sent_by_node);

} // namespace kumi::tools
