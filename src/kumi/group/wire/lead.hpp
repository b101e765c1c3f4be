#pragma once

// The lead of a multicast: what a member must know before it has any content. A lead is behind every Cast, and behind
// the first Block that one node sends another (multicast.hpp). All fields are little-endian; a lead is filled up to a
// multiple of 8 bytes, so that the content behind it is aligned.

#include "kumi/group/set.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kumi::group {

/// An earlier multicast of the same master. Those `members` must have had it first.
struct Before {
    std::uint64_t sequence;
    Set members;
};

struct Lead {
    Set set; // of a Cast: the receiver and the members that the receiver passes it on to; of a Block: all members
    std::vector<Before> before;
    Set members; // all of them, where the content waits to be taken; otherwise empty
};

/// False: the message is for one member alone, which waits for no earlier multicast and is told no members.
bool needs_lead(const Set& set, const std::vector<Before>& before, const Set& members);

/// Appends a lead to `message`. What concerns no member of `set` is left out of `before`.
void append_lead(std::vector<std::byte>& message, const Set& set, const std::vector<Before>& before,
                 const Set& members);
std::vector<std::byte> lead_of(const Set& set, const std::vector<Before>& before, const Set& members);
/// Nothing: the bytes are no lead of a job with so many nodes.
std::optional<Lead> read_lead(Bytes bytes, Node nodes);

} // namespace kumi::group
