#pragma once

#include "kumi/base/result.hpp"

#include <string>
#include <vector>

namespace kumi::lab {

/// Folders of which every host has its own.
inline constexpr const char* private_folders[] = {"/tmp", "/run", "/dev/shm"};

/// Those of `folders` that a host would not see because they lie in a private one, without those that lie in another of
/// them. A private folder itself stays private.
std::vector<std::string> folders_to_keep(std::vector<std::string> folders);

/// Makes the mount namespace of this process that of a host: private folders, its own /proc, /sys and boot id, and
/// /etc/hosts with the text `names`. The folders `kept` stay visible. Requires that the process has a mount namespace
/// of its own, and is in the host's process, network and user namespaces.
Result<void> furnish(const std::string& names, const std::vector<std::string>& kept);

} // namespace kumi::lab
