#pragma once

// The build that a test program belongs to.

#include "tree/read.hpp"

#include <filesystem>
#include <string>

namespace kumi::tree {

/// This program lies in tests/ of the build.
inline fs::path build_dir() { return fs::read_symlink("/proc/self/exe").parent_path().parent_path(); }

/// How this build was configured.
inline std::string cache_value(const std::string& name) {
    const std::string cache = read(build_dir() / "CMakeCache.txt");
    const std::size_t entry = cache.find("\n" + name + ":"); // NAME:TYPE=value
    if (entry == std::string::npos) return "";
    const std::size_t value = cache.find('=', entry) + 1;
    return cache.substr(value, cache.find('\n', value) - value);
}

inline std::string compiler() { return cache_value("CMAKE_CXX_COMPILER"); }

} // namespace kumi::tree
