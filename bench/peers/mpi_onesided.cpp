// Remote memory of MPI without the target's help (passive target): one epoch for the whole run (lock_all), memory that
// MPI allocates, and a flush when puts must be complete.

#include "peers/mpi_onesided.hpp"

#include "engine/onesided.hpp"

#include <mpi.h>

namespace kumi::bench {
namespace {

constexpr int target = 1;
constexpr MPI_Aint word_at = large_bytes; // after the memory for puts

class Window {
public:
    Window() {
        void* memory = nullptr;
        MPI_Win_allocate(large_bytes + sizeof(std::uint64_t), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window_);
        MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
        *reinterpret_cast<std::uint64_t*>(static_cast<char*>(memory) + word_at) = 0;
        MPI_Win_sync(window_);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    Window(const Window&) = delete;
    ~Window() {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_unlock_all(window_);
        MPI_Win_free(&window_);
    }

    void put(const void* from, std::size_t bytes) {
        const int count = static_cast<int>(bytes);
        MPI_Put(from, count, MPI_BYTE, target, 0, count, MPI_BYTE, window_);
    }
    void get(void* to, std::size_t bytes) {
        const int count = static_cast<int>(bytes);
        MPI_Get(to, count, MPI_BYTE, target, 0, count, MPI_BYTE, window_);
        flush();
    }
    void flush() { MPI_Win_flush(target, window_); }
    std::uint64_t fetch_add() {
        const std::uint64_t one = 1;
        std::uint64_t before = 0;
        MPI_Fetch_and_op(&one, &before, MPI_UINT64_T, target, word_at, MPI_SUM, window_);
        flush();
        return before;
    }

private:
    MPI_Win window_;
};

} // namespace

int mpi_onesided(const std::string& place) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    Window window;
    return rank == 0 ? measure_onesided(window, place) : 0;
}

} // namespace kumi::bench
