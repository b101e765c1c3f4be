// Remote memory of OpenSHMEM. Built with the OpenSHMEM of Open MPI.

#include "contestant/core.hpp"
#include "engine/onesided.hpp"

#include <shmem.h>

namespace {

using namespace kumi::bench;

constexpr int target = 1;

class SymmetricMemory {
public:
    SymmetricMemory()
        : bytes_(shmem_malloc(large_bytes)),
          word_(static_cast<unsigned long long*>(shmem_calloc(1, sizeof(unsigned long long)))) {}

    void put(const void* from, std::size_t bytes) { shmem_putmem(bytes_, from, bytes, target); }
    void get(void* to, std::size_t bytes) { shmem_getmem(to, bytes_, bytes, target); }
    void flush() { shmem_quiet(); }
    std::uint64_t fetch_add() { return shmem_ulonglong_atomic_fetch_add(word_, 1, target); }

private:
    void* bytes_;
    unsigned long long* word_;
};

} // namespace

int main(int argc, char** argv) {
    shmem_init();
    const unsigned self = static_cast<unsigned>(shmem_my_pe());
    bind_to_core(self);
    SymmetricMemory memory;
    shmem_barrier_all();
    const int code = self == 0 && argc == 3 ? measure_onesided(memory, argv[2]) : 0; // argv: "onesided", place
    shmem_barrier_all();
    shmem_global_exit(code); // shmem_finalize() of Open MPI 4.1 may crash over UCX, and the results would be lost
}
