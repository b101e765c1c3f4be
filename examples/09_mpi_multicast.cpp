// Kumi beside MPI: rank 0 picks other ranks each time and tells only these.      mpirun -n 6 ./09_mpi_multicast
#include <cstdio>
#include <kumi/mpi.hpp>
#include <random>

int main(int argc, char** argv) {
    int threads = 0, exit_code = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    {
        long told = 0, told_in_all = 0;
        kumi::Handlers handlers;
        const auto tell = handlers.add("tell", [&](kumi::Call&, double) { ++told; });
        auto job = kumi::must(kumi::mpi::join(MPI_COMM_WORLD, std::move(handlers)));

        long wanted = 0;
        std::mt19937 random;
        for (int round = 0; job.node() == 0 && round < 1000; ++round) {
            kumi::Set ranks; // no communicator: nobody else hears of it
            for (kumi::Node node = 0; node < job.nodes(); ++node)
                if (random() % 2 == 0) ranks.add(node);
            if (ranks.empty()) continue;
            wanted += ranks.size();
            kumi::must(job.multicast(ranks, tell, 0.5 * round).get()); // waits until they have it
        }
        kumi::must(job.barrier());
        MPI_Reduce(&told, &told_in_all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
        if (job.node() == 0) std::printf("%ld were to be told, and %ld were\n", wanted, told_in_all);
        exit_code = wanted == told_in_all ? 0 : 1;
    } // leaves the job, before MPI ends
    MPI_Finalize();
    return exit_code;
}
