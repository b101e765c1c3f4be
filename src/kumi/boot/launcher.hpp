#pragma once

#include "kumi/base/function_ref.hpp"
#include "kumi/base/result.hpp"

namespace kumi::boot {

/// Who started this process, by the way in which it can be talked to.
enum class Launcher {
    none, // nobody: a program started by hand
    kumi_run,
    pmix, // mpirun, prterun, srun --mpi=pmix
    pmi1, // hydra's mpiexec, srun --mpi=pmi2, flux
};

/// Looks at the variables that launchers leave: `variable` is getenv, or a test's. The innermost launcher wins. One
/// that is seen but cannot be talked to is an error: each of its processes would take itself for a whole job.
Result<Launcher> find_launcher(base::FunctionRef<const char*(const char*)> variable);

} // namespace kumi::boot
