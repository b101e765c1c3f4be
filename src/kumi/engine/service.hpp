#pragma once

// A service is a layer on the engine, such as the multicasts and the collectives of groups. A service has a range of
// message kinds of its own on the wire, and is told what the engine does. Adding a layer means: a folder, a class that
// is a Service, and one line in job/ that makes it.
//
//     class Counter final : public engine::Service {
//     public:
//         explicit Counter(engine::Dispatcher& dispatcher) : port_(dispatcher.add_service(*this)) {}
//         Handled on_message(const Turn& turn, Node source, std::uint16_t kind, Bytes body) override { ... }
//         ...
//         port_.send(node, kind, message);
//     };

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/progress/progress_loop.hpp"
#include "kumi/engine/wire.hpp"
#include "kumi/pm/node.hpp"

#include <cstdint>

namespace kumi::engine {

class Dispatcher;
using pm::Node;

/// What became of a message.
enum class Handled : std::uint8_t {
    yes,
    later, // the service keeps it, and calls Port::note_handled(): until then it takes a credit of its sender's
    // The message makes no sense. The sender of a request gets an error by its next sync(); for any other message, the
    // user of this node is warned.
    no,
};

constexpr Handled handled_if(bool is_sound) noexcept { return is_sound ? Handled::yes : Handled::no; }

/// No function may wait: all are called with the turn.
class Service {
public:
    /// Kinds of messages that one service may have.
    static constexpr std::uint16_t kinds_max = 16;

    /// A message of this service has come from `source`.
    virtual Handled on_message(const Turn& turn, Node source, std::uint16_t kind, Bytes body) = 0;
    /// Sends what waits for room. True: some of it was sent. Called whenever the engine makes progress, while
    /// Port::want_progress(true) holds.
    virtual bool go_on(const Turn&) noexcept { return false; }
    /// When go_on() is to be called at the latest, though nothing comes; never: there is no such time.
    virtual Instant next_due(const Turn&) const noexcept { return never; }
    /// About once a second, while threads wait. The service calls Dispatcher::send_keepalive() for nodes that it waits
    /// for, because a network reports a dead host only when something is sent to it; and it gives up what will not
    /// come.
    virtual void check_silent_peers(const Turn&) noexcept {}
    /// `node` has left or is lost, and everything that it sent has been handled. May be told again.
    virtual void on_lost(const Turn&, [[maybe_unused]] Node node) noexcept {}
    /// True when no other node waits for something that this node passes on. Until then, for some seconds at most, the
    /// engine does not end.
    virtual bool is_done(const Turn&) const noexcept { return true; }
    /// The engine ends: threads that wait are to be told that there will be no answer. Nothing can be sent any more.
    virtual void on_end(const Turn&) noexcept {}

protected:
    ~Service() = default;
};

inline constexpr std::size_t first_of_services = static_cast<std::size_t>(Kind::step);

/// The number of a kind within the range of its service: all ranges begin at multiples of their size.
constexpr std::uint16_t kind_in_service(Kind kind) noexcept {
    return static_cast<std::uint16_t>(kind) % Service::kinds_max;
}
static_assert(kind_in_service(Kind::step) == 0 && kind_in_service(Kind::ask) == 0 &&
              kind_in_service(Kind::done) == 0 && kind_in_service(Kind::put) == 0 &&
              kind_in_service(Kind::want) == 0 && kind_in_service(Kind::first_of_layers) == 0);

/// What a service sends by. `message` begins with header_room bytes for the engine; `payload` is sent behind it.
/// Messages of one service from one node to another arrive in order. Every message is a request: it takes one of the
/// requests_max that a node may have under way to another until it was handled there.
class Port {
public:
    /// False: there is no room now. With the turn or without.
    bool try_send(Node to, std::uint16_t kind, MutableBytes message, Bytes payload = {}) noexcept;
    /// Waits for room; with the turn, the message itself waits in the engine. An error: the node is lost, or too much
    /// waits.
    Result<void> send(Node to, std::uint16_t kind, MutableBytes message, Bytes payload = {});
    /// Like send(), for a message that is made of `head` and `body`.
    template <class Head>
    Result<void> request(Node to, std::uint16_t kind, const Head& head, Bytes body = {});
    /// Sends a request if there is room now. For a service that goes on later by Service::go_on().
    template <class Head>
    bool try_request(const Turn& turn, Node to, std::uint16_t kind, const Head& head, Bytes body = {}) noexcept;
    /// The same for another thread, by its number, which is told if the request fails.
    template <class Head>
    bool try_request_for(const Turn& turn, std::uint32_t thread, Node to, std::uint16_t kind, const Head& head,
                         Bytes body = {}) noexcept;
    /// Sends a request now, or keeps a copy of it until there is room. False: the node is lost, or too much waits.
    template <class Head>
    bool queue(const Turn& turn, Node to, std::uint16_t kind, const Head& head, Bytes body = {});
    /// The same for another thread.
    template <class Head>
    bool queue_for(const Turn& turn, std::uint32_t thread, Node to, std::uint16_t kind, const Head& head,
                   Bytes body = {});
    /// Sends now or later: for what answers others, and is bounded by what they ask. No request.
    template <class Head>
    void reply(const Turn& turn, Node to, std::uint16_t kind, const Head& head, Bytes body = {});
    /// The same if there is room now: for an answer that is made again from memory later, and need not be copied.
    template <class Head>
    bool try_reply(const Turn& turn, Node to, std::uint16_t kind, const Head& head, Bytes body = {}) noexcept;
    /// A message of `source` for which Service::on_message() returned Handled::later has been handled now. `bytes` is
    /// the size of the body that on_message() got.
    void note_handled(const Turn& turn, Node source, std::size_t bytes);
    /// Whether Service::go_on() is to be called.
    void want_progress(const Turn& turn, bool wanted) noexcept;

private:
    friend class Dispatcher;
    Port(Dispatcher& dispatcher, std::size_t index) noexcept : dispatcher_(&dispatcher), index_(index) {}
    Kind wire_kind(std::uint16_t kind) const noexcept {
        return static_cast<Kind>(first_of_services + index_ * Service::kinds_max + kind);
    }

    Dispatcher* dispatcher_;
    std::size_t index_;
};

} // namespace kumi::engine
