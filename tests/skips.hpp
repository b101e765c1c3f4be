#pragma once

// Why a test does not run. The reasons are few and fixed, so that skipped tests can be counted by reason: the message
// of a skip is a reason of this file and, where the reason alone does not say it, a colon and what is missing.
//
//     if (!probes::has_ipv6()) KUMI_SKIP(skips::no_ipv6);
//     if (!is_installed("srun")) KUMI_SKIP(skips::not_installed("srun"));
//
// A skip is for what this machine or this build cannot do. That is found out by the probes below, which use no code of
// Kumi's: a lab that does not come up on a machine that could have one is a failure.

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <optional>
#include <sched.h>
#include <string>
#include <string_view>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace kumi::skips {

struct Reason {
    std::string_view text;
    std::string what = {};

    std::string message() const { return std::string(text) + (what.empty() ? "" : ": ") + what; }
};

inline const Reason plain_build_only{"plain build only"};
inline const Reason not_under_tsan{"not under ThreadSanitizer"};
/// A world of fibers in one thread: there are no races, and ThreadSanitizer does not follow its stacks.
inline const Reason one_thread{"one thread"};
inline const Reason no_namespaces{"no namespaces on this machine"};
inline const Reason no_ipv6{"no IPv6 on this machine"};
inline const Reason not_root{"not root"};
inline Reason not_installed(std::string program) { return {"not installed", std::move(program)}; }
inline Reason built_without(std::string library) { return {"built without", std::move(library)}; }
inline Reason system_lacks(std::string feature) { return {"system lacks", std::move(feature)}; }

} // namespace kumi::skips

/// Ends the test, or the function that it is in. The only place of GTEST_SKIP in the tree.
#define KUMI_SKIP(reason) GTEST_SKIP() << (reason).message()

namespace kumi::probes {

/// As a shell would find it; and where system commands are, which is not on an ordinary user's PATH.
inline bool has_program(const std::string& name) {
    if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0;
    const char* const path = std::getenv("PATH");
    std::string left = (path == nullptr ? "" : std::string(path)) + ":/usr/sbin:/sbin";
    while (!left.empty()) {
        const std::string folder = left.substr(0, left.find(':'));
        left.erase(0, folder.size() + 1);
        if (!folder.empty() && ::access((folder + "/" + name).c_str(), X_OK) == 0) return true;
    }
    return false;
}

/// Whether a library whose file's name starts so is part of this process.
inline bool has_library(std::string_view name) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (const auto slash = line.rfind('/');
            slash != std::string::npos && std::string_view(line).substr(slash + 1).starts_with(name))
            return true;
    return false;
}

/// Whether this machine's loopback has IPv6.
inline bool has_ipv6() {
    if (::access("/proc/net/if_inet6", R_OK) != 0) return false;
    for (const char* const interface : {"all", "lo"}) {
        std::ifstream file(std::string("/proc/sys/net/ipv6/conf/") + interface + "/disable_ipv6");
        if (int is_disabled = 0; file >> is_disabled && is_disabled != 0) return false;
    }
    return true;
}

/// Namespaces of other kinds than networks, too, which hosts of a lab are made of.
enum class Namespaces { of_networks, of_hosts };

namespace internal {

// Ends of the process that tries.
constexpr int can = 0;
constexpr int cannot = 1;
constexpr int no_such_user = 2;

/// Fails as if it could, when the system gives a reason that is not about rights: then a test shall meet it, and fail.
[[noreturn]] inline void refused() {
    constexpr std::array about_rights{EPERM, EACCES, ENOSYS, EINVAL, ENOSPC, EUSERS, EROFS};
    for (const int reason : about_rights)
        if (errno == reason) ::_exit(cannot);
    ::_exit(can);
}

inline void write_or_end(const char* path, const std::string& text) {
    const int file = ::open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0 || ::write(file, text.data(), text.size()) < 0) refused();
    ::close(file);
}

[[noreturn]] inline void try_namespaces(Namespaces which, int user) {
    if (user >= 0 && (::setresgid(static_cast<gid_t>(user), static_cast<gid_t>(user), static_cast<gid_t>(user)) != 0 ||
                      ::setresuid(static_cast<uid_t>(user), static_cast<uid_t>(user), static_cast<uid_t>(user)) != 0))
        ::_exit(no_such_user);
    ::prctl(PR_SET_DUMPABLE, 1); // a process that was root owns its /proc files again
    const std::string uid = std::to_string(::geteuid()), gid = std::to_string(::getegid());
    if (::unshare(CLONE_NEWNET) != 0) { // not root
        if (::unshare(CLONE_NEWUSER) != 0) refused();
        write_or_end("/proc/self/setgroups", "deny");
        write_or_end("/proc/self/uid_map", "0 " + uid + " 1");
        write_or_end("/proc/self/gid_map", "0 " + gid + " 1");
        if (::unshare(CLONE_NEWNET) != 0) refused();
    }
    if (which == Namespaces::of_networks) ::_exit(can);
    if (::unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID) != 0) refused();
    const pid_t first = ::fork(); // of the new process numbers, which a /proc of its own shows
    if (first == 0) {
        if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) refused();
        if (::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) refused();
        if (::mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, nullptr) != 0) refused();
        ::_exit(can);
    }
    int status = 0;
    if (first < 0 || ::waitpid(first, &status, 0) != first) refused();
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : can);
}

} // namespace internal

/// Whether this process, or one of `user`, may make namespaces; none where there can be no such user.
inline std::optional<bool> has_namespaces(Namespaces which, int user = -1) {
    const pid_t child = ::fork();
    if (child == 0) internal::try_namespaces(which, user);
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return true;
    if (WEXITSTATUS(status) == internal::no_such_user) return std::nullopt;
    return WEXITSTATUS(status) == internal::can;
}

/// Why this machine cannot have what lab::TwoHosts makes, or `kumi lab`, if it cannot. `user` is who makes it.
inline std::optional<skips::Reason> no_lab(Namespaces which, int user) {
    const auto allowed = has_namespaces(which, user);
    if (!allowed) return skips::system_lacks("other users");
    if (!*allowed) return skips::no_namespaces;
    for (const char* const program : {"ip", "ethtool", "nft", "tc", "bridge"})
        if (!has_program(program)) return skips::not_installed(program);
    return std::nullopt;
}
inline std::optional<skips::Reason> no_lab(int user = -1) {
    static const auto for_this_user = no_lab(Namespaces::of_hosts, -1);
    return user < 0 ? for_this_user : no_lab(Namespaces::of_hosts, user);
}
inline std::optional<skips::Reason> no_two_hosts(int user = -1) {
    static const auto for_this_user = no_lab(Namespaces::of_networks, -1);
    return user < 0 ? for_this_user : no_lab(Namespaces::of_networks, user);
}

} // namespace kumi::probes
