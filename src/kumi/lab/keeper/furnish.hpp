#pragma once

#include "kumi/base/result.hpp"

#include <string>
#include <vector>

namespace kumi::lab {

/// Folders that every host has for itself.
inline constexpr const char* private_folders[] = {"/tmp", "/run", "/dev/shm"};

/// Of `folders` those that a host would not see because they lie in a private one, without those that lie in another
/// of them. A private folder itself stays private.
std::vector<std::string> folders_to_keep(std::vector<std::string> folders);

/// Makes this process's mount namespace, which must be its own, that of a host: private folders, its own /proc and
/// /sys, /etc/hosts as told, a boot id of its own; `kept` stay visible. In the host's own process, network and user
/// namespaces.
Result<void> furnish(const std::string& names, const std::vector<std::string>& kept);

} // namespace kumi::lab
