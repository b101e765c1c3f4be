#include "kumi/launch/host/processes/environment.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <unistd.h>

namespace kumi::launch::host {

std::string_view name_of(std::string_view variable) noexcept { return variable.substr(0, variable.find('=')); }

std::vector<std::string> own_environment() {
    std::vector<std::string> all;
    for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
    return all;
}

std::vector<std::string> with(std::vector<std::string> variables, const std::vector<std::string>& added) {
    for (const std::string& variable : added) {
        std::erase_if(variables, [&](const std::string& old) { return name_of(old) == name_of(variable); });
        variables.push_back(variable);
    }
    return variables;
}

std::vector<std::string> without_other_launchers(std::vector<std::string> variables) {
    std::string set_for_mpi = ",";
    for (const std::string& variable : variables)
        if (name_of(variable) == mpi_names_variable) set_for_mpi += variable.substr(variable.find('=') + 1) + ",";
    std::erase_if(variables, [&](const std::string& variable) {
        const std::string_view name = name_of(variable);
        const bool is_pmix = name.starts_with("PMIX_") && !name.starts_with("PMIX_MCA_");
        return is_pmix || name.starts_with("PMI_") || name == "MPI_LOCALRANKID" || name == "MPI_LOCALNRANKS" ||
               name == mpi_names_variable || set_for_mpi.find(fmt::format(",{},", name)) != std::string::npos;
    });
    return variables;
}

bool is_of_host(std::string_view name) noexcept {
    // clang-format off
    static constexpr std::array names{
        "HOSTNAME", "HOST", "HOSTTYPE", "MACHTYPE", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "GPG_TTY",
        "WINDOWID", "TMUX", "TMUX_PANE", "STY", "TMPDIR", "TMP", "TEMP", "PWD", "OLDPWD", "SHLVL", "_",
        "KUMI_BOOT", "KUMI_STARTER", "KUMI_UDP_ADDRESS", "KUMI_NODE", "KUMI_HOST_SLOT"};
    // clang-format on
    static constexpr std::array beginnings{"SSH_", "XDG_RUNTIME_", "XDG_SESSION_", "XDG_SEAT", "XDG_VTNR", "DBUS_"};
    return std::any_of(names.begin(), names.end(), [&](std::string_view one) { return name == one; }) ||
           std::any_of(beginnings.begin(), beginnings.end(),
                       [&](std::string_view one) { return name.starts_with(one); });
}

} // namespace kumi::launch::host
