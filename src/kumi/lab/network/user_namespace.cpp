#include "kumi/lab/network/user_namespace.hpp"

#include "kumi/base/system/descriptor.hpp"

#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <linux/capability.h>
#include <sched.h>
#include <string>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace kumi::lab {
namespace {

Result<void> write_file(const char* path, const std::string& text) {
    const base::Descriptor file(::open(path, O_WRONLY | O_CLOEXEC));
    if (!file || ::write(file.get(), text.data(), text.size()) < 0)
        return system_error(errno, fmt::format("writing {}", path));
    return {};
}

/// What a system's administrator may have forbidden, and how to allow it.
struct Switch {
    const char* file;
    long forbids;
    const char* remedy;
};
constexpr Switch switches[] = {
    {"/proc/sys/kernel/unprivileged_userns_clone", 0, "sysctl kernel.unprivileged_userns_clone=1"},
    {"/proc/sys/user/max_user_namespaces", 0, "sysctl user.max_user_namespaces=10000"},
    {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1,
     "sysctl kernel.apparmor_restrict_unprivileged_userns=0"},
};

Error refused(int error_number, const char* tried) {
    if (error_number == EINVAL)
        return system_error(error_number, "making a user namespace in a process that has several threads");
    const Error said = system_error(error_number, tried);
    for (const Switch& one : switches) {
        std::ifstream file(one.file);
        if (long value = 0; file >> value && value == one.forbids)
            return error("{}; an administrator allows it by: {}", said.text(), one.remedy);
    }
    if (error_number == ENOSPC || error_number == EUSERS)
        return error("{}; an administrator allows more by: sysctl user.max_user_namespaces=10000", said.text());
    return error("{}; in a container, start that with the right to make user namespaces, or run as root", said.text());
}

/// A program that is not root's loses all rights when it starts, but for those that were made ambient.
Result<void> pass_on_network_rights() {
    constexpr unsigned passed[] = {CAP_NET_ADMIN, CAP_NET_RAW, CAP_NET_BIND_SERVICE};
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2];
    if (::syscall(SYS_capget, &header, data) != 0) return system_error(errno, "asking for this process's rights");
    for (const unsigned right : passed) data[0].inheritable |= 1u << right;
    if (::syscall(SYS_capset, &header, data) != 0) return system_error(errno, "keeping the right to set up networks");
    for (const unsigned right : passed)
        if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, right, 0, 0) != 0)
            return system_error(errno, "passing on the right to set up networks");
    return {};
}

} // namespace

Result<void> make_user_namespace(UserInside inside) {
    const auto uid = ::geteuid();
    const auto gid = ::getegid();
    if (::unshare(CLONE_NEWUSER) != 0) return refused(errno, "making a user namespace, which it takes without root");
    const bool as_root = inside == UserInside::root;
    // apparmor lets anybody make one, and then gives no rights in it.
    if (auto done = write_file("/proc/self/setgroups", "deny"); !done)
        return refused(errno, "using a user namespace, which it takes without root");
    if (auto done = write_file("/proc/self/uid_map", fmt::format("{} {} 1", as_root ? 0 : uid, uid)); !done)
        return done;
    if (auto done = write_file("/proc/self/gid_map", fmt::format("{} {} 1", as_root ? 0 : gid, gid)); !done)
        return done;
    return as_root ? Result<void>() : pass_on_network_rights();
}

} // namespace kumi::lab
