#pragma once

#include "kumi/launch/rendezvous.hpp"

#include <string>

namespace kumi::tools {

/// A picture in text of who sent how many messages to whom, over which device: rows send, columns receive.
std::string draw_traffic(const launch::TrafficReports& sent_by_node);

} // namespace kumi::tools
