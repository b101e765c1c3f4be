#include "harness/lab/own_labs.hpp"

#include <filesystem>
#include <fmt/format.h>

namespace kumi::bench {

const OwnLab* OwnLabs::of(const std::string& file, const std::string& row) {
    auto found = labs_.find(file);
    if (found == labs_.end())
        found = labs_.emplace(file, OwnLab::up(std::filesystem::path(folder_) / file, kumi_path_)).first;
    if (found->second) return &*found->second;
    table_.note(fmt::format("{}: not measured: {}", row, found->second.error().text()));
    return nullptr;
}

} // namespace kumi::bench
