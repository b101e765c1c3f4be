#include "kumi/base/system/machine.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <optional>
#include <sched.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace kumi::base {
namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

std::optional<std::uint64_t> read_number(const std::string& path) {
    std::ifstream file(path);
    std::uint64_t number = 0;
    if (file >> number) return number;
    return std::nullopt; // absent, or the word "max"
}

std::uint64_t meminfo_available() {
    std::ifstream file("/proc/meminfo");
    std::string key, unit;
    std::uint64_t kibibytes = 0;
    while (file >> key >> kibibytes) {
        std::getline(file, unit);
        if (key == "MemAvailable:") return kibibytes * 1024;
    }
    return unlimited;
}

/// What one control group leaves; limits of its parents hold too, so the caller walks up.
std::uint64_t left_in_group(const std::string& folder, std::string_view limit_file, std::string_view usage_file) {
    const auto limit = read_number(fmt::format("{}/{}", folder, limit_file));
    const auto usage = read_number(fmt::format("{}/{}", folder, usage_file));
    if (!limit || !usage) return unlimited;
    return *limit > *usage ? *limit - *usage : 0;
}

std::uint64_t left_in_groups(std::string_view root, std::string group, std::string_view limit_file,
                             std::string_view usage_file) {
    std::uint64_t left = unlimited;
    while (true) {
        left = std::min(left, left_in_group(fmt::format("{}{}", root, group), limit_file, usage_file));
        const auto slash = group.rfind('/');
        if (slash == std::string::npos) return left;
        group.resize(slash);
    }
}

std::uint64_t cgroup_available() {
    std::ifstream file("/proc/self/cgroup");
    std::uint64_t left = unlimited;
    for (std::string line; std::getline(file, line);) {
        const auto first = line.find(':');
        const auto second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const std::string group = line.substr(second + 1);
        if (controllers.empty())
            left = std::min(left, left_in_groups("/sys/fs/cgroup", group, "memory.max", "memory.current"));
        else if (controllers == "memory")
            left = std::min(left, left_in_groups("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes",
                                                 "memory.usage_in_bytes"));
    }
    return left;
}

} // namespace

unsigned cores_allowed() noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
    return static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN))); // more than 1024 cores
}

std::vector<std::byte> cores_allowed_bitmap() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return {};
    std::vector<std::byte> bitmap;
    for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
        if (!CPU_ISSET(core, &set)) continue;
        bitmap.resize(core / 8 + 1);
        bitmap[core / 8] |= std::byte{1} << (core % 8);
    }
    return bitmap;
}

std::uint64_t memory_available_bytes() { return std::min(meminfo_available(), cgroup_available()); }

std::string host_name() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
    return name.data();
}

std::optional<HostId> host_id() {
    HostId id;
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    struct stat network {};
    if (!file.read(id.boot_id.data(), static_cast<std::streamsize>(id.boot_id.size())) ||
        ::stat("/proc/self/ns/net", &network) != 0)
        return std::nullopt;
    id.network_device = network.st_dev;
    id.network_inode = network.st_ino;
    return id;
}

std::string readable_bytes(std::uint64_t bytes) {
    constexpr std::array<std::string_view, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
    std::size_t unit = 0;
    auto value = static_cast<double>(bytes);
    while (value >= 1024 && unit + 1 < units.size()) value /= 1024, ++unit;
    const bool whole = value == static_cast<double>(static_cast<std::uint64_t>(value));
    return whole ? fmt::format("{:.0f} {}", value, units[unit]) : fmt::format("{:.1f} {}", value, units[unit]);
}

std::string readable_bytes_beside(std::uint64_t bytes, std::uint64_t limit) {
    // A whole number of units has no decimals.
    const auto rounded = [](std::uint64_t count) {
        std::string text = readable_bytes(count);
        if (const std::size_t at = text.find(".0 "); at != std::string::npos) text.erase(at, 2);
        return text;
    };
    return bytes != limit && rounded(bytes) == rounded(limit) ? fmt::format("{} B", bytes) : readable_bytes(bytes);
}

} // namespace kumi::base
