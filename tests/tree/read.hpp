#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace kumi::tree {

namespace fs = std::filesystem;

/// A whole file; one that is not there is empty.
inline std::string read(const fs::path& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
}

} // namespace kumi::tree
