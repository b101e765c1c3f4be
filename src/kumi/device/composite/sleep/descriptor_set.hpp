#pragma once

#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"

namespace kumi::device::composite {

/// A set of descriptors as one descriptor, which is readable when one of them is ready.
class DescriptorSet {
public:
    /// What is watched in one place of the set; -1: nothing.
    struct Entry {
        int descriptor = -1;
        bool or_writable = false;
    };

    static Result<DescriptorSet> open();

    int descriptor() const noexcept { return epoll_.get(); }
    /// Watches `wanted` instead of what `entry` watched; no system call where nothing changes. False: the system
    /// refuses. Before a descriptor is closed its entry must watch another one, or -1, unless the set is closed too.
    bool watch(Entry& entry, const Entry& wanted, unsigned mark) noexcept;
    /// The marks of all descriptors that are ready, combined by "or".
    unsigned ready() const noexcept;

private:
    explicit DescriptorSet(base::Descriptor epoll) noexcept : epoll_(std::move(epoll)) {}

    base::Descriptor epoll_;
};

} // namespace kumi::device::composite
