#include "kumi/device/mpi/mpi.hpp"

#include "kumi/device/mpi/channel.hpp"

namespace kumi::device::mpi {

Result<void> check(MPI_Comm comm) {
    int is_running = 0, is_over = 0, is_inter = 0;
    MPI_Initialized(&is_running);
    if (is_running == 0) return error("joining by MPI: MPI is not initialized; call MPI_Init_thread first");
    MPI_Finalized(&is_over);
    if (is_over != 0) return error("joining by MPI: MPI_Finalize was called already; join before that, and leave too");
    if (comm == MPI_COMM_NULL)
        return error("joining by MPI: this is MPI_COMM_NULL; only members of a communicator join by it");
    MPI_Comm_test_inter(comm, &is_inter);
    if (is_inter != 0)
        return error("joining by MPI: this is an intercommunicator; merge it with MPI_Intercomm_merge first");
    return {};
}

Result<std::unique_ptr<pm::Channel>> open(MPI_Comm comm, const Options& options) {
    if (auto good = check(comm); !good) return good.error();
    MPI_Comm own = MPI_COMM_NULL;
    if (const int code = MPI_Comm_dup(comm, &own); code != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING] = {};
        int length = 0;
        MPI_Error_string(code, text, &length);
        return error("joining by MPI: MPI_Comm_dup says: {}", text);
    }
    MPI_Comm_set_errhandler(own, MPI_ERRORS_ARE_FATAL);
    return std::unique_ptr<pm::Channel>(std::make_unique<MpiChannel>(own, options));
}

} // namespace kumi::device::mpi
