#pragma once

// What the peers of udp.rate share: one side sends 32-byte messages without end, the other counts them and reports.

#include "contestant/measure.hpp"
#include "contestant/work.hpp"

#include <cstdio>
#include <string_view>

namespace kumi::bench {

/// Calls `take(address, row)` or `give(address)`, which return exit codes. The arguments are "take ADDRESS ROW" or
/// "give ADDRESS".
template <class Take, class Give>
int stream_main(int argc, char** argv, Take&& take, Give&& give) {
    const std::string_view what = argc > 1 ? argv[1] : "";
    if (what == "take" && argc == 4) return take(argv[2], argv[3]);
    if (what == "give" && argc == 3) return give(argv[2]);
    std::fprintf(stderr, "take ADDRESS ROW or give ADDRESS is wanted\n");
    return 2;
}

inline constexpr unsigned short stream_port = 7700;

} // namespace kumi::bench
