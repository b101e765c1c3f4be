#pragma once

// The log. Each line is one write(2), so lines of several nodes never mix. Kumi logs only what users should know
// without asking (a downgrade, a fault that was worked around). What is returned as an Error is not logged.

#include <fmt/core.h>
#include <string_view>
#include <utility>

namespace kumi::base {

enum class Severity { debug, warning };

/// Writes "kumi: TEXT" to standard error. Debug lines are written only when KUMI_LOG=debug; KUMI_LOG=off disables all.
void log_line(Severity severity, std::string_view text) noexcept;

template <class... Arguments>
void log_warning(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    log_line(Severity::warning, fmt::format(format, std::forward<Arguments>(arguments)...));
}

template <class... Arguments>
void log_debug(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    log_line(Severity::debug, fmt::format(format, std::forward<Arguments>(arguments)...));
}

} // namespace kumi::base
