#pragma once

#include "kumi/base/descriptor.hpp"
#include "kumi/base/result.hpp"

#include <sys/types.h>

namespace kumi::launch::host {

/// A small process that outlives `kumi run` for a moment if that is killed, and kills the nodes' process groups: a
/// node may have children of its own, which no parent-death signal reaches.
class Guardian {
public:
    /// Starts it. Before any node, so that it holds none of their descriptors.
    static Result<Guardian> start();

    Guardian(Guardian&&) noexcept = default;
    Guardian& operator=(Guardian&&) = delete;
    /// Dismisses it: nothing is left to guard.
    ~Guardian();

    /// From now on this process group is killed if we are.
    void guard(pid_t group) noexcept { tell(group); }
    /// This group is gone: its number may soon be somebody else's.
    void forget(pid_t group) noexcept { tell(-group); }

    pid_t pid() const noexcept { return pid_; }

private:
    Guardian(base::Descriptor line, pid_t pid) : line_(std::move(line)), pid_(pid) {}

    void tell(pid_t word) noexcept;

    base::Descriptor line_;
    pid_t pid_;
};

} // namespace kumi::launch::host
