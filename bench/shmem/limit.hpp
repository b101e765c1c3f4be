#pragma once

namespace kumi::bench {

/// Measures and reports what this machine can do at best between two processes on two cores: handing over one cache
/// line, copying memory; and passing a wake-up round 16 processes. Nothing of Kumi is in it.
void measure_limits();

} // namespace kumi::bench
