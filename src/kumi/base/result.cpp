#include "kumi/base/result.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace kumi {

Error format_error(fmt::string_view format, fmt::format_args arguments) {
    return Error(fmt::vformat(format, arguments));
}

Error system_error(int error_number, std::string tried) {
    char buffer[128];
    // The GNU strerror_r: returns the text, which may or may not lie in the buffer.
    return error("{}: {}", tried, ::strerror_r(error_number, buffer, sizeof buffer));
}

int fail(const Error& reason) noexcept {
    if (!reason.told()) std::fprintf(stderr, "kumi: %s\n", reason.text().c_str());
    return EXIT_FAILURE;
}

} // namespace kumi
