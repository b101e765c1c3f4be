#pragma once

// How processes of one host that share no parent hand over descriptors. Each listens at a door: a Unix socket with a
// random name in the abstract namespace, so nothing is left in any file system. Who knows the name knocks, and says
// something. The host does the answering, not the process: a knock succeeds while the other side is busy elsewhere, and
// waits there. Processes of other users are turned away, on both sides.

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/descriptor.hpp"
#include "kumi/base/result.hpp"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace kumi::boot {

using DoorName = std::array<std::byte, 16>;

struct Door {
    base::Descriptor socket;
    DoorName name{};
};

/// Nobody has this name yet, and nobody guesses it.
Result<Door> open_door();

/// Goes to a door of this host and says `words`. Never waits.
Result<base::Descriptor> knock(const DoorName& name, Bytes words);

struct Visitor {
    base::Descriptor socket;
    std::vector<std::byte> words;
};

/// Who has knocked and spoken by now, if anybody; a visitor of another user has no words. Never waits.
std::optional<Visitor> next_visitor(const Door& door);

/// `whom` and `who` are for the error: "node 3 on vm".
Result<void> hand_over(int socket, int descriptor, const std::string& whom);
Result<base::Descriptor> take_over(int socket, Instant deadline, const std::string& who);

} // namespace kumi::boot
