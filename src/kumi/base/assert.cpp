#include "kumi/base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace kumi::base {

void assertion_failed(const char* condition, const char* file, int line, const char* function) noexcept {
    std::fprintf(stderr, "kumi: bug: \"%s\" does not hold in %s (%s:%d)\n", condition, function, file, line);
    std::abort();
}

} // namespace kumi::base
