#pragma once

// The proof that two processes are on one host: one hands a page of its memory to the other, which maps it and reads
// there what it says. Names of hosts repeat, and a descriptor that arrives is not yet memory that may be mapped.

#include "kumi/base/descriptor.hpp"
#include "kumi/base/result.hpp"

#include <array>
#include <cstddef>

namespace kumi::boot {

using PageMark = std::array<std::byte, 16>;

/// One that nobody else has.
Result<PageMark> make_page_mark();

/// Memory that says so, to be handed over.
Result<base::Descriptor> make_shared_page(const PageMark& mark);

/// What the memory that was handed over says.
Result<PageMark> read_shared_page(const base::Descriptor& page);

} // namespace kumi::boot
