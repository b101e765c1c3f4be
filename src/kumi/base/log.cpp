#include "kumi/base/log.hpp"

#include <cstdlib>
#include <string>
#include <unistd.h>

namespace kumi::base {
namespace {

bool debug_wanted() noexcept {
    static const bool wanted = [] {
        const char* level = std::getenv("KUMI_LOG");
        return level != nullptr && std::string_view(level) == "debug";
    }();
    return wanted;
}

} // namespace

void log_line(Severity severity, std::string_view text) noexcept {
    if (severity == Severity::debug && !debug_wanted()) return;
    std::string line = "kumi: ";
    if (severity == Severity::warning) line += "warning: ";
    line.append(text);
    line += '\n';
    // A log that cannot be written has nobody to tell.
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

} // namespace kumi::base
