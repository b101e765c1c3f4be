#pragma once

#include <filesystem>
#include <string>

namespace kumi::bench {

/// Where the parts of Kumi are, installed or in a build. All paths are relative to this program, which is
/// PREFIX/libexec/kumi/kumi-bench.
struct Places {
    std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe");
    std::filesystem::path peers_folder = own.parent_path(); // the programs of peers are beside this one
    std::filesystem::path prefix = peers_folder.parent_path().parent_path();
    std::filesystem::path kumi = prefix / "bin/kumi";
    std::filesystem::path labs_folder = prefix / "share/kumi/labs";
    std::filesystem::path goals = prefix / "share/kumi/goals.toml";
};

} // namespace kumi::bench
