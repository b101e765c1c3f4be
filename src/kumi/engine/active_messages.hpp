#pragma once

// Messages of the program: to handlers, which are functions under names that all nodes agree on, and plain messages,
// for which the program sets one function.

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/handlers.hpp"
#include "kumi/engine/progress/progress_loop.hpp"
#include "kumi/engine/wire.hpp"
#include "kumi/pm/message.hpp"
#include "kumi/pm/node.hpp"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kumi::engine {

class Dispatcher;
using pm::Node;

class ActiveMessages {
public:
    ActiveMessages(Dispatcher& dispatcher, Handlers&& handlers) noexcept;

    const Handlers& handlers() const noexcept { return handlers_; }
    /// The number on the wire of each handler, as all nodes have agreed.
    void set_numbers(std::vector<std::uint32_t> numbers);
    std::uint32_t number_of(std::uint32_t handler) const noexcept { return numbers_[handler]; }
    bool has(std::uint32_t number) const noexcept { return number < handler_of_.size(); }

    /// `message` has room for a header, and then the arguments. False: there is no room now, or there never will be;
    /// send() tells which.
    bool try_send(Node to, std::uint32_t handler, MutableBytes message, Bytes payload) noexcept;
    Result<void> send(Node to, std::uint32_t handler, MutableBytes message, Bytes payload);
    /// Answers a request, from within its handler.
    void reply(Node to, std::uint32_t handler, MutableBytes message, Bytes payload);
    /// Runs a handler of this node as if `source` had sent for it. Returns what went wrong, if anything did.
    std::optional<std::string> run_here(std::uint32_t number, Node source, Bytes arguments);
    /// A message for a handler has come. False: there is no such handler, or these are not its arguments.
    bool on_message(const Turn& turn, Node source, const Header& header, Bytes body);

    /// Sends a plain message, as large as the channel takes.
    Result<void> send_plain(Node to, std::span<const Bytes> pieces);
    /// Sets what is called with plain messages. They wait until it is set.
    void set_plain_handler(std::function<void(pm::Message&)> handler);
    void on_plain_message(const Turn& turn, Node source, Bytes body, pm::Message& message);

private:
    Kind kind_of(std::uint32_t handler) const noexcept {
        return static_cast<Kind>(static_cast<std::uint32_t>(Kind::first_handler) + numbers_[handler]);
    }
    static bool run(const Handlers::Entry& entry, Call& call, Bytes body, std::string& trouble);
    bool try_send_plain(const Turn& turn, Node to, std::span<const Bytes> pieces, std::size_t bytes);

    Dispatcher& dispatcher_;
    Handlers handlers_;
    std::vector<std::uint32_t> numbers_;    // on the wire, by handler
    std::vector<std::uint32_t> handler_of_; // by number on the wire
    std::function<void(pm::Message&)> plain_handler_;
    std::vector<pm::KeptMessage> early_messages_; // that came before it was set
};

} // namespace kumi::engine
