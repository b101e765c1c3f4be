#pragma once

#include "kumi/boot/store/key_values.hpp"

#include <chrono>
#include <memory>

namespace kumi::boot {

/// The store of a launcher that uses PMIx: mpirun, prterun, srun --mpi=pmix. Loads the plugin that links libpmix, and
/// never unloads it, because libpmix leaves threads running.
Result<std::unique_ptr<KeyValues>> open_pmix(std::chrono::milliseconds answer_max);

} // namespace kumi::boot
