#pragma once

#include "kumi/base/descriptor.hpp"
#include "kumi/base/result.hpp"

namespace kumi::device::composite {

/// Descriptors as one, which is readable when one of them is ready.
class DescriptorSet {
public:
    /// A place in the set, with what is in it.
    struct Entry {
        int descriptor = -1;
        bool or_writable = false;
    };

    static Result<DescriptorSet> open();

    int descriptor() const noexcept { return epoll_.get(); }
    /// Watches `wanted` in a place, and what was there no more; free of charge where nothing changes. False: the system
    /// refuses. The descriptor must be taken out, by one of -1, before it is closed, or go together with the set.
    bool watch(Entry& entry, const Entry& wanted, unsigned mark) noexcept;
    /// The marks of all that are ready, as one number.
    unsigned ready() const noexcept;

private:
    explicit DescriptorSet(base::Descriptor epoll) noexcept : epoll_(std::move(epoll)) {}

    base::Descriptor epoll_;
};

} // namespace kumi::device::composite
