#include "kumi/lab/keeper/state.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace kumi::lab {
namespace {

constexpr std::size_t name_bytes_max = 32;
constexpr int connections_waiting_max = 1024;

/// What the folders of all labs of this user are in.
std::string base_folder() {
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    if (runtime != nullptr && runtime[0] == '/') return fmt::format("{}/kumi-lab", runtime);
    return fmt::format("/tmp/kumi-lab-{}", ::geteuid());
}

/// In /tmp another user may have made it, to see what is sent to the keeper.
Result<void> check_base(const std::string& base) {
    struct stat found {};
    if (::lstat(base.c_str(), &found) != 0) return system_error(errno, base);
    if (!S_ISDIR(found.st_mode) || found.st_uid != ::geteuid() || (found.st_mode & 077) != 0)
        return error(
            "{} is not a folder that only you can use; remove it, or set XDG_RUNTIME_DIR to a folder of your own",
            base);
    return {};
}

Result<void> make_base(const std::string& base) {
    if (::mkdir(base.c_str(), 0700) != 0 && errno != EEXIST)
        return error("{}; set XDG_RUNTIME_DIR to a folder of your own, or unset it",
                     system_error(errno, fmt::format("making the folder {}", base)).text());
    return check_base(base);
}

bool is_the_same(int descriptor, const std::string& path) {
    struct stat held {}, found {};
    return ::fstat(descriptor, &held) == 0 && ::lstat(path.c_str(), &found) == 0 && held.st_dev == found.st_dev &&
           held.st_ino == found.st_ino;
}

Result<sockaddr_un> socket_address(const std::string& folder) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = socket_path(folder);
    if (path.size() >= sizeof address.sun_path)
        return error("{} is too long a name for a socket; set XDG_RUNTIME_DIR to a shorter one", path);
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return address;
}

} // namespace

Result<std::string> state_folder(const std::string& name) {
    const bool good = !name.empty() && name.size() <= name_bytes_max && name.front() != '.' &&
                      std::all_of(name.begin(), name.end(),
                                  [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; });
    if (!good)
        return error("\"{}\" is no name for a lab; use letters, digits, - and _, {} at most", name, name_bytes_max);
    return fmt::format("{}/{}", base_folder(), name);
}

std::string socket_path(const std::string& folder) { return folder + "/socket"; }

Result<StateFolder> StateFolder::claim(const std::string& name) {
    const auto path = state_folder(name);
    if (!path) return path.error();
    for (int attempt = 0; attempt < 100; ++attempt) { // another process that ends a lab may remove the folder meanwhile
        if (auto done = make_base(base_folder()); !done) return done.error();
        if (::mkdir(path->c_str(), 0700) != 0 && errno == ENOENT) continue;
        base::Descriptor lock(::open(path->c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (!lock && errno == ENOENT) continue;
        if (!lock) return system_error(errno, fmt::format("making the folder {}", *path));
        if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
            if (errno == EWOULDBLOCK)
                return error("the lab \"{}\" is up already; end it with: kumi lab down, or choose another --name",
                             name);
            return system_error(errno, fmt::format("locking {}", *path));
        }
        if (!is_the_same(lock.get(), *path)) continue;
        for (const auto& leftover : {socket_path(*path), *path + "/pid"}) ::unlink(leftover.c_str());
        return StateFolder(*path, std::move(lock));
    }
    return error("the folder {} vanishes as soon as it is made; is another lab of that name just ending?", *path);
}

void StateFolder::remove() noexcept {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
    ::rmdir(parent().c_str()); // if this was the last lab
}

Result<base::Descriptor> connect_to_keeper(const std::string& name) {
    const auto folder = state_folder(name);
    if (!folder) return folder.error();
    const auto address = socket_address(*folder);
    if (!address) return address.error();
    if (::access(folder->c_str(), F_OK) == 0)
        if (auto done = check_base(base_folder()); !done) return done.error();
    base::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket) return system_error(errno, "making a socket");
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) == 0) return socket;
    if (errno == ECONNREFUSED) return error("the lab \"{}\" has died; start it again: kumi lab up FILE", name);
    if (errno == ENOENT) return error("no lab \"{}\" is up; start it: kumi lab up FILE", name);
    return system_error(errno, fmt::format("asking the lab \"{}\" at {}", name, address->sun_path));
}

Result<base::Descriptor> listen_in(const std::string& folder) {
    const auto address = socket_address(folder);
    if (!address) return address.error();
    base::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 ||
        ::listen(socket.get(), connections_waiting_max) != 0)
        return system_error(errno, fmt::format("listening at {}", address->sun_path));
    return socket;
}

} // namespace kumi::lab
