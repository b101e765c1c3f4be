#include "kumi/boot/launcher.hpp"

#include "kumi/boot/wire.hpp"

#include <cstdlib>

namespace kumi::boot {

Result<Launcher> find_launcher(base::FunctionRef<const char*(const char*)> variable) {
    const auto number = [&](const char* name) {
        const char* const text = variable(name);
        return text == nullptr ? 0 : std::atol(text);
    };
    if (variable(socket_variable) != nullptr) return Launcher::kumi_run;
    if (variable("PMIX_NAMESPACE") != nullptr) return Launcher::pmix;
    if (variable("PMI_FD") != nullptr || variable("PMI_PORT") != nullptr) return Launcher::pmi1;
    if (variable("SLURM_PROCID") != nullptr && number("SLURM_NTASKS") > 1)
        return error("Slurm runs this as one of {} tasks, but without a way to find the others: start it with srun "
                     "--mpi=pmix or srun --mpi=pmi2, or with kumi run",
                     number("SLURM_NTASKS"));
    if (number("OMPI_COMM_WORLD_SIZE") > 1)
        return error(
            "Open MPI runs this as one of {} processes, but without PMIx (PMIX_NAMESPACE), which tells them of each "
            "other: start it with an mpirun that has PMIx, or with kumi run",
            number("OMPI_COMM_WORLD_SIZE"));
    if (number("PMI_SIZE") > 1)
        return error("a launcher runs this as one of {} processes (PMI_SIZE), but without PMI_FD, PMI_PORT or "
                     "PMIX_NAMESPACE, which tell them of each other: start it with mpirun, mpiexec.hydra or srun, or "
                     "with kumi run",
                     number("PMI_SIZE"));
    return Launcher::none;
}

} // namespace kumi::boot
