#pragma once

// Matching: which message goes to which receive.
//
// A message matches a receive if the receive names its source or any, and if their tags agree in all bits that the
// receive does not ignore. A message goes to the oldest receive that it matches, and a receive takes the oldest message
// that it matches. That is what MPI asks for.
//
// Receives that ignore the same bits, and all name a source or all name none, have one shape. Programs use few shapes:
// MPI over libfabric has four. For each shape there is a table by what its receives look at. So a message looks once
// into the table of each shape, and a receive into one table, however many messages and receives wait. Shapes beyond
// `shapes_max` share a list that is looked through.
//
// Pure: the caller has the receives and the messages, and knows them here by numbers of its own, which are small.

#include "provider/match/bins.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace kumi::provider {

using Source = std::uint32_t;
inline constexpr Source any_source = ~Source{0};

/// What a message says of itself.
struct Envelope {
    Source source;
    std::uint64_t tag;
};

/// What a receive asks for.
struct Wanted {
    Source source = any_source;
    std::uint64_t tag = 0;
    std::uint64_t ignore = 0; // bits of the tag

    bool matches(const Envelope& message) const noexcept {
        return (source == any_source || source == message.source) && ((tag ^ message.tag) & ~ignore) == 0;
    }
};

class Matching {
public:
    using Number = Bins::Entry;
    /// More shapes than these are slow.
    static constexpr std::size_t shapes_max = 16;

    /// A message has come. Returns the oldest receive that it matches; that receive is gone, unless it stays. Nothing:
    /// the message waits.
    std::optional<Number> arrive(const Envelope& envelope, Number message);
    /// Returns the oldest message that the receive matches; the message is gone. Nothing: the receive waits. One that
    /// stays takes many messages, until it is cancelled.
    std::optional<Number> post(const Wanted& wanted, Number receive, bool stays = false);

    /// The oldest message that waits and matches. It goes on waiting.
    std::optional<Number> peek(const Wanted& wanted);
    /// Takes such a message without a receive.
    std::optional<Number> take(const Wanted& wanted);
    /// False: the receive does not wait.
    bool cancel(Number receive);

    std::size_t receives() const noexcept { return receives_count_; }
    std::size_t messages() const noexcept { return messages_count_; }

private:
    struct Shape {
        bool names_source;
        std::uint64_t ignore;
        Bins receives;
        Bins messages; // all that wait

        Bins::Key key(Source source, std::uint64_t tag) const noexcept {
            return {tag & ~ignore, names_source ? source : any_source};
        }
    };
    struct Receive {
        Wanted wanted;
        std::uint64_t age = 0;  // the lower, the older
        Shape* shape = nullptr; // null: it is among the odd ones
        bool waits = false;
        bool stays = false;
    };
    struct Message {
        Envelope envelope{};
        Number before = Bins::none; // in the order of arrival
        Number next = Bins::none;
    };

    Shape* shape_of(const Wanted& wanted);
    void remove_receive(Number receive);
    void remove_message(Number message);

    std::deque<Shape> shapes_;                         // stay where they are
    std::vector<Receive> waiting_;                     // by number
    std::vector<Number> odd_;                          // receives of other shapes, oldest first
    std::vector<Message> come_;                        // by number
    Number oldest_ = Bins::none, newest_ = Bins::none; // messages
    std::uint64_t next_age_ = 0;
    std::size_t receives_count_ = 0;
    std::size_t messages_count_ = 0;
};

} // namespace kumi::provider
