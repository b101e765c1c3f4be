// An MPI program that knows nothing of Kumi. It does what its arguments say, one after the other:
//   sum          all ranks say hello, and check what MPI_Allreduce and MPI_Alltoall bring
//   say=TEXT     each rank prints TEXT
//   at=RANK      what follows is for this rank only
//   abort=CODE, kill, exit=CODE, spawn, wait
// MPI_Init comes before the first of them, unless that is "before", and MPI_Finalize after the last.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

int rank = 0, ranks = 0;

void check_sum() {
    char host[MPI_MAX_PROCESSOR_NAME];
    int length = 0, sum = 0;
    MPI_Get_processor_name(host, &length);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    std::vector<int> mine(static_cast<std::size_t>(ranks)), theirs(mine);
    for (int i = 0; i < ranks; ++i) mine[static_cast<std::size_t>(i)] = rank * ranks + i;
    MPI_Alltoall(mine.data(), 1, MPI_INT, theirs.data(), 1, MPI_INT, MPI_COMM_WORLD);
    bool right = sum == ranks * (ranks - 1) / 2;
    for (int i = 0; i < ranks; ++i) right = right && theirs[static_cast<std::size_t>(i)] == i * ranks + rank;
    std::printf("rank %d of %d on %s: %s\n", rank, ranks, host, right ? "right" : "wrong");
}

void spawn() {
    MPI_Comm children;
    MPI_Comm_spawn("/bin/true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
}

void wait_for_ever() {
    int never = 0;
    MPI_Recv(&never, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void act(const std::string& what) {
    const std::string word = what.substr(0, what.find('='));
    const std::string value = word.size() == what.size() ? "" : what.substr(word.size() + 1);
    if (word == "sum") check_sum();
    else if (word == "say") std::printf("rank %d: %s\n", rank, value.c_str());
    else if (word == "abort") MPI_Abort(MPI_COMM_WORLD, std::atoi(value.c_str()));
    else if (word == "kill") std::raise(SIGKILL);
    else if (word == "exit") ::_exit(std::atoi(value.c_str()));
    else if (word == "spawn") spawn();
    else if (word == "wait") wait_for_ever();
    else std::fprintf(stderr, "mpi_actor: what is %s?\n", what.c_str()), std::exit(2);
    std::fflush(stdout);
}

} // namespace

int main(int count, char** words) {
    if (count > 1 && std::string(words[1]) == "before") return 0;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int only = rank;
    for (int i = 1; i < count; ++i) {
        const std::string what = words[i];
        if (what.starts_with("at=")) only = std::atoi(what.c_str() + 3);
        else if (only == rank) act(what);
    }
    MPI_Finalize();
    return 0;
}
