#pragma once

#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"
#include "kumi/device/shmem/layout.hpp"

#include <memory>
#include <span>
#include <vector>

namespace kumi::device::shmem {

/// The memory that the nodes of one host share: a sealed memfd without a name, so it vanishes with its last process.
/// All its memory is reserved at open, so using it never faults.
class Segment final {
public:
    /// Creates a segment for `nodes` nodes. Refuses if the machine has not enough free memory.
    static Result<std::shared_ptr<Segment>> create(Node nodes, const Options& options);
    /// Maps a segment made by another process, after checking that it is valid.
    static Result<std::shared_ptr<Segment>> attach(base::Descriptor descriptor, Node nodes);

    Segment(const Segment&) = delete;
    Segment& operator=(const Segment&) = delete;
    ~Segment();

    /// Reserves the memory of one node's part. Each node does so for its own part.
    Result<void> reserve_part(Node node);
    /// Reserves memory in a node's window; memory that is reserved already keeps its content.
    Result<void> reserve_window(Node node, std::size_t offset, std::size_t bytes);
    /// Returns memory to the system. It is zero when it is reserved again.
    void release_window(Node node, std::size_t offset, std::size_t bytes) noexcept;

    base::Descriptor duplicate() const;

    const Layout& layout() const noexcept { return layout_; }
    base::Fencing fencing() const noexcept { return fencing_; }

    Mailbox& mailbox(Node node) const noexcept { return *at<Mailbox>(node, 0); }
    std::span<std::atomic<std::uint64_t>> attention(Node node) const noexcept {
        return {at<std::atomic<std::uint64_t>>(node, layout_.attention_offset()), layout_.attention_words()};
    }
    /// The last of these words: not zero when the node is to look for nodes that have left or died.
    std::atomic<std::uint64_t>& departures(Node node) const noexcept { return attention(node).back(); }
    base::RingControl<Memory>& control(Node reader, Node writer) const noexcept {
        return *at<base::RingControl<Memory>>(reader, layout_.control_offset(writer));
    }
    std::span<base::RingLine> ring(Node reader, Node writer) const noexcept {
        return {at<base::RingLine>(reader, layout_.ring_offset(writer)), layout_.ring_lines};
    }
    /// For each unit of `node`'s buffers: the next returned buffer, as in Mailbox::returned.
    std::span<std::atomic<std::uint32_t>> links(Node node) const noexcept {
        return {at<std::atomic<std::uint32_t>>(node, layout_.links_offset()), layout_.units()};
    }
    std::byte* buffers(Node node) const noexcept { return at<std::byte>(node, layout_.buffers_offset()); }
    /// A node's window, mapped at the first call. Null if there are no addresses left. May be called from any thread.
    std::byte* window(Node node) noexcept;

private:
    Segment(base::Descriptor descriptor, Layout layout, base::Fencing fencing, std::byte* memory) noexcept;

    template <class T>
    T* at(Node node, std::size_t offset) const noexcept {
        return reinterpret_cast<T*>(memory_ + layout_.part_offset(node) + offset);
    }

    base::Descriptor descriptor_;
    Layout layout_;
    base::Fencing fencing_;
    std::byte* memory_;
    std::vector<std::atomic<std::byte*>> windows_; // by node; null: not mapped yet
};

} // namespace kumi::device::shmem
