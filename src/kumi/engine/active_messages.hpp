#pragma once

// Messages of the program: to handlers, which are functions under names that all nodes agree on, and plain messages,
// for which the program sets one function.
//
// Held messages. While too much waits to be sent (Backlog::is_full()), requests and plain messages are held here
// instead of being handled, because handling them would send more. Plain messages are also held until the program has
// set its function. What is held takes credits, or windows (sending/byte_windows.hpp), of its sender; so the sender
// stops, and memory is bounded. Messages of one source are handled in order.

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/handlers.hpp"
#include "kumi/engine/progress/progress_loop.hpp"
#include "kumi/engine/service.hpp"
#include "kumi/engine/wire.hpp"
#include "kumi/pm/message.hpp"
#include "kumi/pm/node.hpp"

#include <functional>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kumi::engine {

class Dispatcher;
using pm::Node;

class ActiveMessages {
public:
    ActiveMessages(Dispatcher& dispatcher, Handlers&& handlers, Node nodes);

    const Handlers& handlers() const noexcept { return handlers_; }
    /// The number on the wire of each handler, as all nodes have agreed.
    void set_numbers(std::vector<std::uint32_t> numbers);
    std::uint32_t number_of(std::uint32_t handler) const noexcept { return numbers_[handler]; }
    /// An error if another Handlers object than that of this job made `handle`. `what` names the use in the error.
    Result<void> check_handle(std::string_view what, Handle handle) const;
    bool has(std::uint32_t number) const noexcept { return number < handler_of_.size(); }

    /// `message` has room for a header, and then the arguments. False: there is no room now, or there never will be;
    /// send() tells which.
    bool try_send(Node to, Handle handler, MutableBytes message, Bytes payload) noexcept;
    Result<void> send(Node to, Handle handler, MutableBytes message, Bytes payload);
    /// Answers a request, from within its handler.
    void reply(Node to, std::uint32_t handler, MutableBytes message, Bytes payload);
    /// Runs a handler of this node as if `source` had sent for it. Returns what went wrong, if anything did.
    std::optional<std::string> run_here(const Turn& turn, std::uint32_t number, Node source, Bytes arguments);
    /// A message for a handler has come.
    Handled on_message(const Turn& turn, Node source, const Header& header, Bytes body);

    /// Sends a plain message, as large as the channel takes. In a handler, what finds no room is sent later.
    Result<void> send_plain(Node to, std::span<const Bytes> pieces);
    /// Sets what is called with plain messages, from the next message on; they wait until it is set. May be called by
    /// that function itself.
    void set_plain_handler(std::function<void(pm::Message&)> handler);
    void on_plain_message(const Turn& turn, Node source, bool was_forwarded, Bytes body, pm::Message& message);

    bool has_held(const Turn&) const noexcept { return !holding_.empty(); }
    bool has_held_requests(const Turn&) const noexcept { return held_requests_ != 0; }
    /// Handles what was held and may be handled now. True if there was something.
    bool go_on(const Turn& turn);

private:
    Kind kind_of(std::uint32_t handler) const noexcept {
        return static_cast<Kind>(static_cast<std::uint32_t>(Kind::first_handler) + numbers_[handler]);
    }
    struct HeldRequest {
        const Handlers::Entry* entry;
        Header header;
        pm::KeptMessage body;
    };
    struct HeldPlain {
        bool was_forwarded;
        pm::KeptMessage body;
    };
    struct Source {
        std::list<HeldRequest> requests;
        std::list<HeldPlain> plains;
        std::size_t forwarded = 0; // of `plains`
        bool is_holding = false;   // among holding_
    };

    template <class OnTrouble>
    bool run(const Turn& turn, const Handlers::Entry& entry, Call& call, Bytes body, OnTrouble&& on_trouble);
    Handled handle(const Turn& turn, const Handlers::Entry& entry, Call&& call, Bytes body);
    bool is_held_back(const Turn& turn, Node source, std::uint32_t pressure) const noexcept;
    Handled hold_request(Node source, const Header& header, const Handlers::Entry& entry, Bytes body);
    void hold_plain(const Turn& turn, Node source, bool was_forwarded, Bytes body);
    void note_holding(Node source) noexcept;
    bool go_on_from(const Turn& turn, Node source);
    bool may_take_plain(const Turn& turn, const Source& from) const noexcept;
    void run_plain(const Turn& turn, bool was_forwarded, pm::Message& message);
    bool try_send_plain(const Turn& turn, Node to, std::span<const Bytes> pieces, std::size_t bytes);
    bool keep_plain(const Turn& turn, Node to, std::span<const Bytes> pieces, std::size_t bytes);

    Dispatcher& dispatcher_;
    Handlers handlers_;
    std::vector<std::uint32_t> numbers_;    // on the wire, by handler
    std::vector<std::uint32_t> handler_of_; // by number on the wire
    std::function<void(pm::Message&)> plain_handler_;
    std::optional<std::function<void(pm::Message&)>> next_plain_handler_; // set while the other one runs
    bool is_in_plain_handler_ = false;
    std::vector<Source> sources_; // by node
    std::vector<Node> holding_;   // of these, those of which something is held
    std::size_t held_requests_ = 0;
};

} // namespace kumi::engine
