#include "kumi/base/sync/memory_policy.hpp"

#include "kumi/base/assert.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace kumi::base {
namespace {

bool membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

} // namespace

void MachineMemory::heavy_fence() noexcept {
    const bool done = membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
    KUMI_ASSERT(done); // register_for_heavy_fence() has found it to work
}

bool register_for_heavy_fence() noexcept {
    return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) && membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

} // namespace kumi::base
