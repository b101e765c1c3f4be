#pragma once

// The folder by which a lab that is up is found. It belongs to the user, and has the keeper's socket and, for people,
// the keeper's process id.
//
// The keeper holds a lock on the folder for as long as it lives, and the system releases the lock even when the keeper
// is killed. So a folder whose lock is free is a leftover. Nothing depends on process ids, which are used again.

#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"

#include <string>

namespace kumi::lab {

/// The folder of the lab with that name, there or not: in $XDG_RUNTIME_DIR, else in /tmp. The error says what is
/// wrong with the name.
Result<std::string> state_folder(const std::string& name);
std::string socket_path(const std::string& folder);

/// A folder whose lock this process holds: made by claim(), gone with remove().
class StateFolder {
public:
    /// Makes the folder, or takes over that of a keeper which was killed. The error says that the lab is up, or why the
    /// folder cannot be used.
    static Result<StateFolder> claim(const std::string& name);

    const std::string& path() const noexcept { return path_; }
    /// The folder that has the folders of all labs of this user.
    std::string parent() const { return path_.substr(0, path_.rfind('/')); }
    int lock() const noexcept { return lock_.get(); }
    void remove() noexcept;

private:
    StateFolder(std::string path, base::Descriptor lock) : path_(std::move(path)), lock_(std::move(lock)) {}

    std::string path_;
    base::Descriptor lock_;
};

/// Connects to the keeper of a lab. If the lab is not up, the error says so, and how to start it.
Result<base::Descriptor> connect_to_keeper(const std::string& name);

/// Makes the socket at which the kumi command connects to the keeper.
Result<base::Descriptor> listen_in(const std::string& folder);

} // namespace kumi::lab
