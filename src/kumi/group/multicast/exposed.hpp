#pragma once

#include "kumi/engine/core.hpp"

#include <cstdint>
#include <optional>
#include <utility>

namespace kumi::group {

/// A content in this node's heap, where all nodes of its host can read it. The destructor frees it. Only for nodes that
/// cannot be reported lost while they run, as on shared memory: such a node would read memory that has been freed.
class Exposed {
public:
    /// Nothing: there is no memory for it.
    static std::optional<Exposed> make(engine::Core& core, const Pieces& content) {
        const auto offset = core.allocate(content.size(), 1);
        if (!offset) return {};
        content.copy_to(core.local({core.node(), 0, *offset}, content.size()));
        return Exposed(core, *offset, content.size());
    }
    Exposed(Exposed&& other) noexcept
        : core_(std::exchange(other.core_, nullptr)), offset_(other.offset_), bytes_(other.bytes_) {}
    Exposed& operator=(Exposed&& other) noexcept {
        std::swap(core_, other.core_);
        std::swap(offset_, other.offset_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~Exposed() {
        if (core_ != nullptr) (void)core_->release({core_->node(), 0, offset_});
    }

    std::uint64_t offset() const noexcept { return offset_; }
    Bytes bytes() const noexcept { return {core_->local({core_->node(), 0, offset_}, bytes_), bytes_}; }

private:
    Exposed(engine::Core& core, std::uint64_t offset, std::uint64_t bytes) noexcept
        : core_(&core), offset_(offset), bytes_(bytes) {}

    engine::Core* core_;
    std::uint64_t offset_;
    std::uint64_t bytes_;
};

} // namespace kumi::group
