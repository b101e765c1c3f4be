#include "engine/node.hpp"

#include "contestant/core.hpp"
#include "contestant/partner.hpp"
#include "engine/onesided.hpp"

#include "kumi/base/system/descriptor.hpp"
#include "kumi/kumi.hpp"

#include <cerrno>
#include <sys/mman.h>
#include <unistd.h>

namespace kumi::bench {
namespace {

/// Shared memory, large enough for one put.
std::uint64_t* shared_memory() {
    const base::Descriptor file(::memfd_create("kumi-bench", MFD_CLOEXEC));
    if (!file || ::ftruncate(file.get(), large_bytes) != 0)
        must(Result<void>(system_error(errno, "making shared memory")));
    void* const memory = ::mmap(nullptr, large_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) must(Result<void>(system_error(errno, "mapping shared memory")));
    return static_cast<std::uint64_t*>(memory);
}

double copy_seconds(void* to, const void* from) {
    return seconds_per_call(
        [=] {
            std::memcpy(to, from, large_bytes);
            asm volatile("" ::"r"(to) : "memory");
        },
        engine_window);
}

/// A put is a copy from private to shared memory, a get is a copy from shared to private memory.
void report_copies() {
    std::vector<std::uint64_t> mine(large_words);
    std::uint64_t* const shared = shared_memory();
    fill(mine.data(), large_words, 1);
    report("engine.put.1048576.shmem", large_bytes * 1e-6 / copy_seconds(shared, mine.data()));
    report("engine.get.1048576.shmem", large_bytes * 1e-6 / copy_seconds(mine.data(), shared));
}

/// A stream of messages of PM, with as many at a time as a stream of puts has between two syncs. The receiver copies
/// them to memory of its own.
double bulk_seconds(Partner& partner) {
    constexpr int streams = 20;
    double total = 0;
    for (int i = 0; i < streams; ++i) total += stream_seconds(partner, large_bytes, puts_per_flush);
    return total / streams;
}

} // namespace

int limit_node(const std::string& place) {
    PmJob job = must(PmJob::join());
    const bool in_lab = place != "shmem";
    if (in_lab) bind_to_core(job.node());
    Partner partner(job.channel());
    const int count = in_lab ? 2'000 : 20'000;
    pingpong_seconds(partner, sizeof(std::uint64_t), count / 10);
    const double one_way = pingpong_seconds(partner, sizeof(std::uint64_t), count);
    const double bulk = in_lab ? bulk_seconds(partner) : 0;
    if (job.node() == 0) {
        for (const char* what : {"engine.am.", "engine.put_notify.8."}) report((what + place).c_str(), one_way * 1e9);
        if (in_lab) report(("engine.put.1048576." + place).c_str(), large_bytes * 1e-6 / bulk);
        else report_copies();
    }
    partner.barrier();
    return 0;
}

} // namespace kumi::bench
