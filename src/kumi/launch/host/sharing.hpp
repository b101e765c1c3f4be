#pragma once

#include "kumi/base/bitmap.hpp"
#include "kumi/base/descriptor.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace kumi::launch::host {

/// Passes descriptors of a host's first node on to the others, one after the other: no other host can have them. Pure.
class Sharing {
public:
    explicit Sharing(std::uint32_t nodes) : nodes_(nodes), waiting_(nodes), asked_(nodes) {}

    struct Answer {
        std::uint32_t slot;
        std::shared_ptr<base::Descriptor> descriptor; // none for who gave it
    };
    /// A node gives its next descriptor, if it is in slot 0, and asks for that otherwise. Answers who gets one now.
    std::vector<Answer> on_share(std::uint32_t slot, base::Descriptor descriptor);

private:
    std::uint32_t nodes_;
    base::Bitmap waiting_;
    std::vector<std::uint64_t> asked_; // by slot: how many it has got
    std::deque<std::shared_ptr<base::Descriptor>> given_; // that somebody has not got yet
    std::uint64_t forgotten_ = 0;                         // given before these
};

} // namespace kumi::launch::host
