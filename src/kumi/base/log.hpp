#pragma once

// One line, one write(2): lines of many nodes never mix. Only what a user should know unasked is logged
// (a downgrade, a fault worked around); what is returned as an Error is not.

#include <fmt/core.h>
#include <string_view>
#include <utility>

namespace kumi::base {

enum class Severity { debug, warning };

/// Writes "kumi: TEXT" to standard error; debug lines only when KUMI_LOG=debug, none when it is off.
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
