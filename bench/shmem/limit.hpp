#pragma once

namespace kumi::bench {

/// Measures and reports the limits of this machine, without Kumi: how long two processes on two cores take to hand over
/// one cache line and to copy memory, and how long a wake-up takes to go round 16 processes.
void measure_limits();

} // namespace kumi::bench
