#include "kumi/lab/keeper/furnish.hpp"

#include "kumi/base/system/descriptor.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace kumi::lab {
namespace {

/// What belongs to the host and hides something of the machine lies here, in the host's own /run.
constexpr const char* own_files = "/run/kumi-host";
constexpr const char* control_groups = "/sys/fs/cgroup";
constexpr const char* boot_id = "/proc/sys/kernel/random/boot_id";
constexpr unsigned long harmless = MS_NOSUID | MS_NODEV;

bool lies_in(std::string_view path, std::string_view folder) {
    return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

Result<void> mount_new(const char* type, const char* where, unsigned long flags, const char* data = nullptr) {
    if (::mount(type, where, type, flags, data) == 0) return {};
    const Error said = system_error(errno, fmt::format("mounting {} on {}", type, where));
    if (errno != EPERM) return said;
    return error("{}; in a container, start that with all of /proc and /sys visible (docker: --security-opt "
                 "systempaths=unconfined)",
                 said.text());
}

/// A folder as it is now, to be put back after something was mounted over it.
struct Kept {
    std::string path;
    base::Descriptor tree;
};

Result<Kept> keep(const std::string& path) {
    base::Descriptor tree(::open_tree(AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
    if (!tree) return system_error(errno, fmt::format("keeping {} visible", path));
    return Kept{path, std::move(tree)};
}

Result<void> put_back(const Kept& kept) {
    std::error_code ignored; // then the next call fails
    std::filesystem::create_directories(kept.path, ignored);
    if (::move_mount(kept.tree.get(), "", AT_FDCWD, kept.path.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0)
        return system_error(errno, fmt::format("keeping {} visible", kept.path));
    return {};
}

/// Lets the file `where` have that text on this host.
Result<void> replace_file(const std::string& name, const std::string& text, const char* where) {
    const std::string own = fmt::format("{}/{}", own_files, name);
    std::ofstream(own) << text << std::flush;
    ::chmod(own.c_str(), 0444);
    if (::mount(own.c_str(), where, nullptr, MS_BIND, nullptr) != 0)
        return system_error(errno, fmt::format("putting the host's own file on {}", where));
    return {};
}

/// Shows the host's interfaces under /sys/class/net; control groups stay the machine's.
Result<void> mount_sys() {
    const auto groups = keep(control_groups);
    if (::mount("sysfs", "/sys", "sysfs", harmless | MS_NOEXEC, nullptr) != 0)
        if (auto done = mount_new("sysfs", "/sys", harmless | MS_NOEXEC | MS_RDONLY); !done) return done;
    return groups ? put_back(*groups) : Result<void>(); // a system without them has nothing to put back
}

} // namespace

std::vector<std::string> folders_to_keep(std::vector<std::string> folders) {
    std::erase_if(folders, [](const std::string& folder) {
        return std::none_of(std::begin(private_folders), std::end(private_folders),
                            [&](const char* cover) { return lies_in(folder, cover); });
    });
    std::sort(folders.begin(), folders.end());
    folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
    const std::vector<std::string> all = folders;
    std::erase_if(folders, [&](const std::string& folder) {
        return std::any_of(all.begin(), all.end(), [&](const std::string& other) { return lies_in(folder, other); });
    });
    return folders;
}

Result<void> furnish(const std::string& names, const std::vector<std::string>& kept) {
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
        return system_error(errno, "making mounts private");
    std::vector<Kept> visible;
    for (const std::string& folder : folders_to_keep(kept)) {
        auto tree = keep(folder);
        if (!tree) return tree.error();
        visible.push_back(*std::move(tree));
    }
    for (const char* folder : private_folders)
        if (auto done =
                mount_new("tmpfs", folder, harmless, folder == std::string_view("/run") ? "mode=755" : "mode=1777");
            !done)
            return done;
    for (const Kept& folder : visible)
        if (auto done = put_back(folder); !done) return done;
    if (auto done = mount_new("proc", "/proc", harmless | MS_NOEXEC); !done) return done;
    if (auto done = mount_sys(); !done) return done;
    if (::mkdir(own_files, 0755) != 0) return system_error(errno, fmt::format("making the folder {}", own_files));
    if (auto done = replace_file("hosts", names, "/etc/hosts"); !done) return done;
    std::string id;
    std::getline(std::ifstream("/proc/sys/kernel/random/uuid"), id); // a new one each time
    return replace_file("boot_id", id + "\n", boot_id); // some programs find "the same machine" by it
}

} // namespace kumi::lab
