#pragma once

// Memory that nodes show each other, all of it in this process.

#include "kumi/pm/remote_memory.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

namespace kumi::loopback {

/// As one node sees it: the windows of the nodes that it reaches.
class Windows final : public pm::RemoteMemory {
public:
    Windows(pm::Node nodes, std::size_t window_bytes, const std::set<pm::Node>& reached)
        : window_bytes_(window_bytes), windows_(nodes) {
        for (const pm::Node node : reached) {
            windows_[node].reset(static_cast<std::byte*>(std::aligned_alloc(4096, window_bytes)));
            std::memset(windows_[node].get(), 0, window_bytes);
        }
    }

    struct Range {
        std::uint64_t offset;
        std::size_t bytes;
        friend bool operator==(const Range&, const Range&) = default;
    };
    std::vector<Range> exposed, concealed; // in the order of calls
    bool is_full = false;                  // there is no memory left

    std::size_t window_bytes() const noexcept override { return window_bytes_; }
    Result<MutableBytes> expose(std::uint64_t offset, std::size_t bytes) override {
        if (is_full) return error("the machine is full");
        exposed.push_back({offset, bytes});
        return MutableBytes();
    }
    void conceal(std::uint64_t offset, std::size_t bytes) noexcept override { concealed.push_back({offset, bytes}); }
    Result<void> reach(pm::Node) override { return {}; }
    std::byte* direct(pm::Node node, std::uint64_t offset) noexcept override {
        return windows_[node] == nullptr ? nullptr : windows_[node].get() + offset;
    }

private:
    struct Free {
        void operator()(void* memory) const noexcept { std::free(memory); }
    };
    std::size_t window_bytes_;
    std::vector<std::unique_ptr<std::byte, Free>> windows_; // by node
};

} // namespace kumi::loopback
