#include "kumi/engine/receiving/arrivals.hpp"

#include "kumi/engine/dispatcher.hpp"
#include "kumi/engine/receiving/run_handler.hpp"

#include <exception>
#include <utility>

namespace kumi::engine {

[[gnu::always_inline]] inline Handled Arrivals::handle(const Turn& turn, Node source, const Header& header, Bytes body,
                                                       pm::Message& message) {
    if (header.kind >= static_cast<std::uint16_t>(Kind::first_handler))
        return dispatcher_.messages().on_message(turn, source, header, body);
    if (header.kind >= first_of_services) {
        Service* const service = dispatcher_.service_at((header.kind - first_of_services) / Service::kinds_max);
        if (service == nullptr) return Handled::no;
        return service->on_message(turn, source, kind_in_service(static_cast<Kind>(header.kind)), body);
    }
    Outbox& outbox = dispatcher_.outbox(turn);
    switch (static_cast<Kind>(header.kind)) {
    case Kind::credit:
    case Kind::nudge: return Handled::yes;
    case Kind::please: return outbox.on_asked(source), Handled::yes;
    case Kind::message:
        return dispatcher_.messages().on_plain_message(turn, source, false, body, message), Handled::yes;
    case Kind::forwarded:
        return dispatcher_.messages().on_plain_message(turn, source, true, body, message), Handled::yes;
    case Kind::taken: {
        Taken taken;
        return handled_if(read_value(body, taken) && outbox.windows().on_told(source, taken));
    }
    default: return Handled::no;
    }
}

[[gnu::always_inline]] inline void Arrivals::read(const Turn& turn, Node source, const Header& header,
                                                  pm::Message& message) noexcept {
    Handled handled = Handled::yes;
    thread_of_request_ = thread_of(header);
    try {
        handled = handle(turn, source, header, message.bytes().subspan(sizeof header), message);
        if (handled == Handled::no) [[unlikely]]
            on_unknown(turn, source, header);
    } catch (...) {
        note_thrown(turn, source);
    }
    thread_of_request_ = 0;
    if (header.is_request == 0) return;
    Outbox& outbox = dispatcher_.outbox(turn);
    const bool is_for_handler = header.kind >= static_cast<std::uint16_t>(Kind::first_handler);
    if (handled == Handled::later) [[unlikely]]
        outbox.on_kept(source, pressure_of(header), is_for_handler);
    else outbox.on_handled(source, message.bytes().size(), pressure_of(header));
}

void Arrivals::on_message(const Turn& turn, pm::Message& message) noexcept {
    Header header;
    const Node source = message.source();
    if (!read_value(message.bytes(), header)) return dispatcher_.note_unsound(source);
    if (!dispatcher_.outbox(turn).on_header(source, header)) [[unlikely]]
        dispatcher_.note_unsound(source);
    read(turn, source, header, message);
}

void Arrivals::take_in(const Turn& turn, pm::Message& message) noexcept {
    Header header{};
    const bool is_whole = read_value(message.bytes(), header);
    const auto kind = static_cast<Kind>(header.kind);
    const bool is_of_engine = header.kind < first_of_services && kind != Kind::message && kind != Kind::forwarded;
    if (!is_whole || is_of_engine) return on_message(turn, message);
    try {
        unread_.push_back(pm::KeptMessage(message.source(), message.bytes()));
    } catch (const std::exception&) { // no memory: it is handled here after all, behind those that wait
        (void)read_unread(turn);
        return on_message(turn, message);
    }
    if (!dispatcher_.outbox(turn).on_header(message.source(), header)) [[unlikely]]
        dispatcher_.note_unsound(message.source());
    if (unread_.size() == 1) dispatcher_.loop().call(turn);
}

std::size_t Arrivals::read_unread(const Turn& turn) noexcept {
    std::size_t count = 0;
    for (; !unread_.empty(); ++count) {
        const pm::KeptMessage next = std::move(unread_.front());
        unread_.pop_front();
        pm::Message message(next.source(), next.bytes());
        Header header;
        if (read_value(message.bytes(), header)) read(turn, message.source(), header, message);
    }
    return count;
}

void Arrivals::on_unknown(const Turn& turn, Node source, const Header& header) {
    if (header.is_request == 0) dispatcher_.note_unsound(source);
    else refuse_unknown(turn, source, header.kind);
}

/// There was no memory, or a type of the program's threw when it was read.
void Arrivals::note_thrown(const Turn& turn, Node source) noexcept {
    const Error thrown = error_of_thrown(ErrorCode::refused);
    dispatcher_.operations().note_error(
        turn, error(thrown.code(), "handling a message of {}: {}", dispatcher_.name_of(source), thrown.text()));
}

void Arrivals::refuse_unknown(const Turn& turn, Node source, std::uint16_t kind) {
    dispatcher_.operations().refuse(
        turn, source, no_operation,
        error(ErrorCode::misuse,
              "it could make nothing of a message of kind {}: do all nodes run the same program, "
              "with the same version of Kumi?",
              kind));
}

} // namespace kumi::engine
