#pragma once

#include "kumi/base/bitmap.hpp"
#include "kumi/base/descriptor.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kumi::launch::host {

/// Passes a descriptor of a host's first node on to the others: no other host can have it. Pure.
class Sharing {
public:
    explicit Sharing(std::uint32_t nodes) : nodes_(nodes), waiting_(nodes) {}

    struct Answer {
        std::uint32_t slot;
        std::shared_ptr<base::Descriptor> descriptor; // none for who gave it
    };
    /// A node gives its descriptor, if it is in slot 0, and asks for one otherwise. Answers who gets it now.
    std::vector<Answer> on_share(std::uint32_t slot, base::Descriptor descriptor);

private:
    std::uint32_t nodes_;
    base::Bitmap waiting_;
    std::shared_ptr<base::Descriptor> shared_;
};

} // namespace kumi::launch::host
