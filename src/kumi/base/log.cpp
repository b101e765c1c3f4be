#include "kumi/base/log.hpp"

#include <cstdlib>
#include <string>
#include <unistd.h>

namespace kumi::base {
namespace {

bool is_wanted(Severity severity) noexcept {
    static const std::string_view level = [] {
        const char* const given = std::getenv("KUMI_LOG");
        return std::string_view(given == nullptr ? "" : given);
    }();
    return severity == Severity::debug ? level == "debug" : level != "off";
}

} // namespace

void log_line(Severity severity, std::string_view text) noexcept {
    if (!is_wanted(severity)) return;
    std::string line = "kumi: ";
    if (severity == Severity::warning) line += "warning: ";
    line.append(text);
    line += '\n';
    write_bytes(STDERR_FILENO, line.data(), line.size());
}

void write_bytes(int descriptor, const char* bytes, std::size_t count) noexcept {
    [[maybe_unused]] const auto written = ::write(descriptor, bytes, count);
}

} // namespace kumi::base
