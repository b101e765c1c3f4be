#pragma once

// Proves that two processes are on one host: one sends a page of memory to the other, which maps it and reads the id in
// it. Names of hosts repeat, and a descriptor that arrives does not prove that its memory can be mapped.

#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"

#include <array>
#include <cstddef>

namespace kumi::boot {

using PageId = std::array<std::byte, 16>;

/// A random id that no other page has.
Result<PageId> make_page_id();

/// A page of memory that has the id, to be sent to other processes.
Result<base::Descriptor> make_shared_page(const PageId& id);

/// Maps a page that was received, and returns its id.
Result<PageId> read_shared_page(const base::Descriptor& page);

} // namespace kumi::boot
