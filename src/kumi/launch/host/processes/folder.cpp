#include "kumi/launch/host/processes/folder.hpp"

#include <chrono>
#include <filesystem>
#include <string_view>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace kumi::launch::host {
namespace {

constexpr std::string_view beginning = "kumi-";
constexpr std::size_t name_digits = 32;

} // namespace

std::string folder_for(const std::string& name) {
    std::error_code wrong;
    const bool has_memory = ::access("/dev/shm", W_OK | X_OK) == 0;
    const auto parent = has_memory ? "/dev/shm" : std::filesystem::temp_directory_path(wrong);
    return parent / (std::string(beginning) + name);
}

bool is_own_folder(const std::string& path) {
    const std::string name = std::filesystem::path(path).filename();
    struct stat status {};
    return name.size() == beginning.size() + name_digits && name.starts_with(beginning) &&
           name.find_first_not_of("0123456789abcdef", beginning.size()) == std::string::npos &&
           ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid();
}

void remove_folder(const std::string& path) noexcept {
    std::error_code wrong;
    for (int looks = 0; looks < 5 && std::filesystem::exists(path, wrong); ++looks) {
        std::filesystem::remove_all(path, wrong);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

} // namespace kumi::launch::host
