#pragma once

#include "kumi/base/data/bitmap.hpp"
#include "kumi/base/system/descriptor.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace kumi::launch::host {

/// Passes descriptors from the first node of a host to the host's other nodes, in the order in which they were given.
/// No node of another host can get them. Pure.
class Sharing {
public:
    explicit Sharing(std::uint32_t nodes) : nodes_(nodes), waiting_(nodes), asked_(nodes) {}

    struct Answer {
        std::uint32_t slot;
        std::shared_ptr<base::Descriptor> descriptor; // none for slot 0, which gave it
    };
    /// The node in slot 0 gives its next descriptor; any other asks for the next one. Answers the nodes that get one
    /// now.
    std::vector<Answer> on_share(std::uint32_t slot, base::Descriptor descriptor);

private:
    std::uint32_t nodes_;
    base::Bitmap waiting_;
    std::vector<std::uint64_t> asked_; // by slot: how many descriptors it has got
    std::deque<std::shared_ptr<base::Descriptor>> given_; // those that some slot has not got yet
    std::uint64_t forgotten_ = 0;                         // how many were given before these
};

} // namespace kumi::launch::host
