#pragma once

// The environment variables of nodes.

#include <string>
#include <string_view>
#include <vector>

namespace kumi::launch::host {

/// The name in "NAME=value".
std::string_view name_of(std::string_view variable) noexcept;

/// The variables of this process.
std::vector<std::string> own_environment();

/// `variables` and `added`; of several values for one name only the last, as most programs take the first that they
/// find.
std::vector<std::string> with(std::vector<std::string> variables, const std::vector<std::string>& added);

/// The variable with the names of those that a launcher of Kumi has set for MPI, between commas. A launcher that is
/// started by such a process takes them back.
inline constexpr const char* mpi_names_variable = "KUMI_MPI_VARIABLES";

/// `variables` without those by which MPI processes find a launcher: it does not know the nodes that this one starts.
/// What a user may have set stays.
std::vector<std::string> without_other_launchers(std::vector<std::string> variables);

/// Whether a variable is about the host on which it is set, and means nothing on another: the host's name, a session, a
/// display, a folder for files that last no longer than these.
bool is_of_host(std::string_view name) noexcept;

} // namespace kumi::launch::host
