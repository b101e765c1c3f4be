#pragma once

#include "kumi/base/function_ref.hpp"
#include "kumi/base/system/descriptor.hpp"
#include "kumi/boot/store/key_values.hpp"

#include <chrono>
#include <memory>

namespace kumi::boot {

/// The store of a launcher that uses PMI-1: hydra's mpiexec, srun --mpi=pmi2, flux. `variable` is getenv, or a function
/// of a test. PMI_FD is the number of a socket that this process inherited, PMI_PORT an address to connect to. Needs no
/// library.
Result<std::unique_ptr<KeyValues>> open_pmi(base::FunctionRef<const char*(const char*)> variable,
                                            std::chrono::milliseconds answer_max);

} // namespace kumi::boot
