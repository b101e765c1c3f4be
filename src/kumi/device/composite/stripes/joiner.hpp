#pragma once

#include "kumi/device/composite/letters/envelope.hpp"
#include "kumi/pm/message.hpp"

#include <map>
#include <memory>

namespace kumi::device::composite {

/// Puts the messages of one source together out of pieces, which come in any order, by several ways, and maybe twice.
/// Pieces that do not fit together are dropped. Pure.
class Joiner {
public:
    /// `bytes_max`: of all messages that wait for pieces; a source that keeps to its window never gets there.
    Joiner(std::size_t message_bytes_max, std::size_t bytes_max) noexcept
        : message_bytes_max_(message_bytes_max), bytes_max_(bytes_max) {}

    enum class Outcome : std::uint8_t {
        waits, // for other pieces
        complete,
        duplicate,
        unsound,
    };
    /// A message, with room for an envelope in front of it.
    struct Whole {
        std::unique_ptr<std::byte[]> memory;
        std::size_t bytes = 0; // with the envelope

        /// Frees the memory of a message that is kept; the token is its address.
        static pm::BufferOwner& owner() noexcept;
    };
    /// `piece` starts with its PieceHead. When the message is complete `whole` is set, and the joiner forgets it.
    Outcome add(Sequence sequence, Bytes piece, Whole& whole);

    std::size_t waiting() const noexcept { return messages_.size(); }

private:
    struct Partial {
        Whole whole;
        std::size_t missing_bytes = 0;
        std::map<std::uint32_t, std::uint32_t> ends; // of the pieces that are here, by offset
    };

    std::size_t message_bytes_max_;
    std::size_t bytes_max_;
    std::size_t bytes_ = 0;
    std::map<Sequence, Partial> messages_;
};

} // namespace kumi::device::composite
