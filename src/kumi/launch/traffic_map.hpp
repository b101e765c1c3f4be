#pragma once

#include "kumi/boot/wire.hpp"

#include <string>
#include <vector>

namespace kumi::launch {

/// A picture in text of who sent how many messages to whom, over which device: rows send, columns receive.
std::string draw_traffic(const std::vector<std::vector<boot::TrafficEntry>>& sent_by_node);

} // namespace kumi::launch
