#pragma once

#include "kumi/boot/store/key_values.hpp"

#include <chrono>
#include <memory>

namespace kumi::boot {

/// The store of a launcher that speaks PMIx: mpirun, prterun, srun --mpi=pmix. Loads the plugin that knows libpmix, and
/// never unloads it: libpmix leaves threads.
Result<std::unique_ptr<KeyValues>> open_pmix(std::chrono::milliseconds answer_max);

} // namespace kumi::boot
