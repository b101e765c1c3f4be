#pragma once

// How a message for a handler is handled. Inlined into Arrivals::on_message(): a call and its frame would cost a
// twentieth of a small message.

#include "kumi/engine/dispatcher.hpp"

namespace kumi::engine {

inline bool ActiveMessages::is_held_back(const Turn& turn, Node source, std::uint32_t pressure) const noexcept {
    return dispatcher_.outbox(turn).backlog().is_full(pressure) ||
           (held_requests_ != 0 && !sources_[source].requests.empty());
}

/// False: these are not the handler's arguments. `on_trouble` is told of what the handler did wrong.
template <class OnTrouble>
[[gnu::always_inline]] inline bool ActiveMessages::run(const Turn& turn, const Handlers::Entry& entry, Call& call,
                                                       Bytes body, OnTrouble&& on_trouble) {
    bool is_sound = true;
    try {
        const Lending lending(turn);
        is_sound = entry.run(call, body);
    } catch (...) {
        return on_trouble(error_of_thrown("handler " + entry.name, ErrorCode::refused)), true;
    }
    if (const Error* const misuse = call.misuse(); misuse != nullptr) [[unlikely]]
        on_trouble(error(misuse->code(), "handler {} {}", entry.name, misuse->text()));
    return is_sound;
}

[[gnu::always_inline]] inline Handled ActiveMessages::handle(const Turn& turn, const Handlers::Entry& entry,
                                                             Call&& call, Bytes body) {
    const auto refuse = [&](const Error& why) __attribute__((always_inline)) {
        dispatcher_.operations().refuse(turn, call.source(), no_operation, why);
    };
    return handled_if(run(turn, entry, call, body, refuse));
}

[[gnu::always_inline]] inline Handled ActiveMessages::on_message(const Turn& turn, Node source, const Header& header,
                                                                 Bytes body) {
    const std::size_t number = header.kind - static_cast<std::size_t>(Kind::first_handler);
    if (number >= handler_of_.size()) [[unlikely]]
        return Handled::no;
    const Handlers::Entry& entry = handlers_.entries()[handler_of_[number]];
    // Replies are not held: there are no more of them than requests of this node, which then sends no more of those.
    if (header.is_request != 0 && is_held_back(turn, source, pressure_of(header))) [[unlikely]]
        return hold_request(source, header, entry, body);
    return handle(turn, entry, Call(dispatcher_, source, header.is_request != 0), body);
}

} // namespace kumi::engine
