#pragma once

#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"

namespace kumi::device::composite {

/// Tells when some network interface of this host has come, gone or changed. It does not tell which.
class InterfaceWatch {
public:
    static Result<InterfaceWatch> open();

    /// Readable when something has changed.
    int descriptor() const noexcept { return socket_.get(); }
    /// True if something has changed since the last call.
    bool has_changed() noexcept;

private:
    explicit InterfaceWatch(base::Descriptor socket) noexcept : socket_(std::move(socket)) {}

    base::Descriptor socket_;
};

} // namespace kumi::device::composite
