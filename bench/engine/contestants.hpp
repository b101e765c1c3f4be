#pragma once

#include "cases.hpp"

#include "../options.hpp"
#include "../own_lab.hpp"
#include "../stage.hpp"

#include <string>
#include <vector>

namespace kumi::bench {

/// The cluster file of the lab that a case is measured in; empty: this machine does.
std::string lab_file(const EngineCase& one);

/// Command lines for Kumi, the limit and the peers, as far as they have a part in it. `lab` is null where none is needed.
std::vector<Entry> contestants(const BenchOptions& options, const EngineCase& one, const OwnLab* lab);

} // namespace kumi::bench
