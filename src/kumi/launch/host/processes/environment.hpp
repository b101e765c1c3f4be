#pragma once

// What nodes find in their environment.

#include <string>
#include <string_view>
#include <vector>

namespace kumi::launch::host {

/// Of "NAME=value".
std::string_view name_of(std::string_view variable) noexcept;

/// This process's own.
std::vector<std::string> own_environment();

/// `variables` and `added`; of several values for one name only the last, as most programs take the first that they
/// find.
std::vector<std::string> with(std::vector<std::string> variables, const std::vector<std::string>& added);

/// Whether a variable says something about the host on which it is set, and means nothing on another: its name, a
/// session, a display, a folder for files that last no longer than that.
bool is_of_host(std::string_view name) noexcept;

} // namespace kumi::launch::host
