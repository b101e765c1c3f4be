#pragma once

namespace kumi::lab {

/// Closes all descriptors of this process but standard input, output and error, `one` and `other`.
void close_others(int one, int other) noexcept;

} // namespace kumi::lab
