#pragma once

#include <sched.h>

namespace kumi::bench {

/// Binds this process to one of the cores that it may run on. `index` counts these from 0, and starts again after the
/// last.
inline void bind_to_core(unsigned index) {
    cpu_set_t allowed;
    if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    index %= static_cast<unsigned>(CPU_COUNT(&allowed));
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &allowed) || index-- != 0) continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        ::sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

/// Lets this thread run on every core, also if its process was bound to one.
inline void unbind() {
    cpu_set_t all;
    CPU_ZERO(&all);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &all);
    ::sched_setaffinity(0, sizeof all, &all);
}

} // namespace kumi::bench
