#pragma once

#include "kumi/engine/dispatcher.hpp"

#include <cstdint>
#include <optional>
#include <utility>

namespace kumi::group {

/// A content in this node's heap, where all nodes of its host can read it. The destructor frees it. Only for nodes that
/// cannot be reported lost while they run, as on shared memory: such a node would read memory that has been freed.
class Exposed {
public:
    /// Nothing: there is no memory for it.
    static std::optional<Exposed> make(engine::Dispatcher& dispatcher, const Pieces& content) {
        const auto offset = dispatcher.segments().allocate(content.size(), 1);
        if (!offset) return {};
        content.copy_to(dispatcher.segments().local({dispatcher.node(), 0, *offset}, content.size()));
        return Exposed(dispatcher, *offset, content.size());
    }
    Exposed(Exposed&& other) noexcept
        : dispatcher_(std::exchange(other.dispatcher_, nullptr)), offset_(other.offset_), bytes_(other.bytes_) {}
    Exposed& operator=(Exposed&& other) noexcept {
        std::swap(dispatcher_, other.dispatcher_);
        std::swap(offset_, other.offset_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~Exposed() {
        if (dispatcher_ != nullptr) (void)dispatcher_->segments().release({dispatcher_->node(), 0, offset_});
    }

    std::uint64_t offset() const noexcept { return offset_; }
    Bytes bytes() const noexcept {
        return {dispatcher_->segments().local({dispatcher_->node(), 0, offset_}, bytes_), bytes_};
    }

private:
    Exposed(engine::Dispatcher& dispatcher, std::uint64_t offset, std::uint64_t bytes) noexcept
        : dispatcher_(&dispatcher), offset_(offset), bytes_(bytes) {}

    engine::Dispatcher* dispatcher_;
    std::uint64_t offset_;
    std::uint64_t bytes_;
};

} // namespace kumi::group
