#pragma once

// What becomes of a message that has come: Arrivals reads its header and gives it to the service or the handler that it
// is for. A request is counted as handled afterwards, and its sender is told if nobody here understands it.
//
// Unread messages. A thread that waits for room to send must not run anything of the program's, because the program may
// hold a mutex that a handler takes. Such a thread only reads headers, which bring credits, and keeps the messages.
// Another thread handles them, in the order in which they came.

#include "kumi/base/bytes.hpp"
#include "kumi/engine/progress/progress_loop.hpp"
#include "kumi/engine/service.hpp"
#include "kumi/engine/wire.hpp"
#include "kumi/pm/message.hpp"
#include "kumi/pm/node.hpp"

#include <cstddef>
#include <cstdint>
#include <list>

namespace kumi::engine {

class Dispatcher;
using pm::Node;

class Arrivals {
public:
    explicit Arrivals(Dispatcher& dispatcher) noexcept : dispatcher_(dispatcher) {}

    /// Handles a message that has come. Unread messages are to be read before.
    void on_message(const Turn& turn, pm::Message& message) noexcept;

    /// For a thread that waits for room: keeps the message as unread, and calls another thread to read it.
    void take_in(const Turn& turn, pm::Message& message) noexcept;
    bool has_unread(const Turn&) const noexcept { return !unread_.empty(); }
    /// Handles all unread messages. Returns how many.
    std::size_t read_unread(const Turn& turn) noexcept;

    /// The number of the sender's thread, for the request that is being handled; 0: none is, or it is not known.
    std::uint32_t thread_of_request(const Turn&) const noexcept { return thread_of_request_; }
    /// For a request that was held back, and is handled now; 0 when it has been.
    void set_thread_of_request(const Turn&, std::uint32_t thread) noexcept { thread_of_request_ = thread; }
    /// Tells `source` that nobody here understands a request of that kind.
    void refuse_unknown(const Turn& turn, Node source, std::uint16_t kind);

private:
    void read(const Turn& turn, Node source, const Header& header, pm::Message& message) noexcept;
    Handled handle(const Turn& turn, Node source, const Header& header, Bytes body, pm::Message& message);
    void on_unknown(const Turn& turn, Node source, const Header& header);
    void note_thrown(const Turn& turn, Node source) noexcept;

    Dispatcher& dispatcher_;
    std::uint32_t thread_of_request_ = 0;
    std::list<pm::KeptMessage> unread_;
};

} // namespace kumi::engine
