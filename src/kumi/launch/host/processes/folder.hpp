#pragma once

#include <string>

namespace kumi::launch::host {

/// The path of a folder for the files of processes that one starter has started; `name` is 32 hexadecimal digits that
/// no other starter has. In memory, which is gone when the system is, or where other temporary files are.
std::string folder_for(const std::string& name);

/// Whether a path is that of such a folder, and it is there and belongs to this user.
bool is_own_folder(const std::string& path);

/// Removes a folder with all in it, if it is there. Processes that are being killed may still make files: it is looked
/// for until it stays away.
void remove_folder(const std::string& path) noexcept;

} // namespace kumi::launch::host
