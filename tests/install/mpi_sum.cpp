// Every rank sends its number to all others by Kumi, and adds them up by MPI: that must be the same.
#include <cstdio>
#include <kumi/mpi.hpp>

int main(int argc, char** argv) {
    int threads = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    {
        int by_kumi = 0, by_mpi = 0;
        kumi::Handlers handlers;
        const auto add = handlers.add("add", [&](kumi::Call&, int number) { by_kumi += number; });
        auto job = kumi::must(kumi::mpi::join(MPI_COMM_WORLD, std::move(handlers)));

        const int mine = static_cast<int>(job.node()) + 1;
        for (kumi::Node to = 0; to < job.nodes(); ++to) kumi::must(job.send(to, add, mine));
        kumi::must(job.sync());
        kumi::must(job.barrier());
        MPI_Allreduce(&mine, &by_mpi, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        std::printf("node %u of %u: %d by Kumi, %d by MPI\n", job.node(), job.nodes(), by_kumi, by_mpi);
    } // leaves the job, before MPI ends
    MPI_Finalize();
}
