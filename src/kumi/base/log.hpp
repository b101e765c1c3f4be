#pragma once

// The log. Each line is one write(2), so lines of several nodes never mix. Kumi logs only what users should know
// without asking (a downgrade, a fault that was worked around). What is returned as an Error is not logged.

#include <algorithm>
#include <cstddef>
#include <fmt/core.h>
#include <string_view>
#include <utility>

namespace kumi::base {

enum class Severity { debug, warning };

/// One write(2). Output that cannot be written has nobody to tell.
void write_bytes(int descriptor, const char* bytes, std::size_t count) noexcept;

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

/// Writes one line to `descriptor` without asking for memory, as a signal handler must. Longer lines are cut to `room`.
template <std::size_t room, class... Arguments>
void write_line(int descriptor, fmt::format_string<Arguments...> format, Arguments&&... arguments) noexcept {
    char line[room];
    const auto end = fmt::format_to_n(line, room - 1, format, std::forward<Arguments>(arguments)...);
    const std::size_t length = std::min<std::size_t>(end.size, room - 1);
    line[length] = '\n';
    write_bytes(descriptor, line, length + 1);
}

} // namespace kumi::base
