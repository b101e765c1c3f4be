#pragma once

#include "kumi/base/function_ref.hpp"
#include "kumi/base/result.hpp"

namespace kumi::boot {

/// The launcher that started this process, by its protocol.
enum class Launcher {
    none, // the program was started by hand
    kumi_run,
    pmix, // mpirun, prterun, srun --mpi=pmix
    pmi1, // hydra's mpiexec, srun --mpi=pmi2, flux
};

/// Finds the launcher by the environment variables that launchers set. `variable` is getenv, or a function of a test.
/// The innermost launcher wins. If a launcher is found whose protocol is not available, that is an error: otherwise
/// each of its processes would take itself for a whole job.
Result<Launcher> find_launcher(base::FunctionRef<const char*(const char*)> variable);

} // namespace kumi::boot
