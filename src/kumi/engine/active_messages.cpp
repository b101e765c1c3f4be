#include "kumi/engine/active_messages.hpp"

#include "kumi/base/system/machine.hpp"
#include "kumi/engine/dispatcher.hpp"
#include "kumi/engine/receiving/run_handler.hpp"
#include "kumi/engine/sending/waiting_send.hpp"

#include <algorithm>
#include <utility>

namespace kumi::engine {

ActiveMessages::ActiveMessages(Dispatcher& dispatcher, Handlers&& handlers, Node nodes)
    : dispatcher_(dispatcher), handlers_(std::move(handlers)), sources_(nodes) {
    holding_.reserve(nodes);
}

void ActiveMessages::set_numbers(std::vector<std::uint32_t> numbers) {
    numbers_ = std::move(numbers);
    handler_of_ = inverse_of(numbers_);
}

// ---- to handlers

Result<void> ActiveMessages::check_handle(std::string_view what, Handle handle) const {
    if (handlers_.has_made(handle)) [[likely]]
        return {};
    return error(ErrorCode::misuse,
                 "{}: made by another Handlers object than the one that this job was joined with, so it means nothing "
                 "here",
                 what);
}

Result<void> ActiveMessages::send(Node to, Handle handler, MutableBytes message, Bytes payload) {
    if (auto known = dispatcher_.check_node("sending to", to); !known) return known;
    if (auto known = check_handle("the handler of a message", handler); !known) return known;
    const std::size_t bytes = message.size() + payload.size() - sizeof(Header);
    if (const std::size_t bytes_max = dispatcher_.message_bytes_max(); bytes > bytes_max)
        return error(ErrorCode::too_large,
                     "sending {} to handler {} on {}: the largest is {}; put the data into a segment",
                     base::readable_bytes_beside(bytes, bytes_max), handlers_.entries()[handler.index].name,
                     dispatcher_.name_of(to), base::readable_bytes(bytes_max));
    write_header(message, kind_of(handler.index), true);
    return dispatcher_.send(to, message, payload);
}

void ActiveMessages::reply(Node to, std::uint32_t handler, MutableBytes message, Bytes payload) {
    const Turn turn = dispatcher_.take_turn();
    write_header(message, kind_of(handler), false);
    dispatcher_.outbox(turn).reply(to, message, payload);
}

std::optional<std::string> ActiveMessages::run_here(const Turn& turn, std::uint32_t number, Node source,
                                                    Bytes arguments) {
    const Handlers::Entry& entry = handlers_.entries()[handler_of_[number]];
    Call call(dispatcher_, source, false);
    std::optional<std::string> trouble;
    if (!run(turn, entry, call, arguments, [&](const Error& why) { trouble = why.text(); }))
        return fmt::format("{} bytes came that are no arguments of handler {}", arguments.size(), entry.name);
    return trouble;
}

// ---- messages that are held

Handled ActiveMessages::hold_request(Node source, const Header& header, const Handlers::Entry& entry, Bytes body) {
    Source& from = sources_[source];
    // A copy: a buffer of the channel that is kept would be missing to what can be handled.
    from.requests.push_back({&entry, header, pm::KeptMessage(source, body)});
    ++held_requests_; // the outbox counts it as kept
    note_holding(source);
    return Handled::later;
}

void ActiveMessages::note_holding(Node source) noexcept {
    if (!std::exchange(sources_[source].is_holding, true)) holding_.push_back(source);
}

bool ActiveMessages::go_on(const Turn& turn) {
    bool any = false;
    std::erase_if(holding_, [&](Node source) {
        any |= go_on_from(turn, source);
        Source& from = sources_[source];
        from.is_holding = !from.requests.empty() || !from.plains.empty();
        return !from.is_holding;
    });
    return any;
}

bool ActiveMessages::go_on_from(const Turn& turn, Node source) {
    Source& from = sources_[source];
    Outbox& outbox = dispatcher_.outbox(turn);
    bool any = false;
    // They go in order, so all count as the largest pressure.
    const auto is_full = [&] { return outbox.backlog().is_full(outbox.credits().pressure_of_kept(source)); };
    for (; !from.requests.empty() && !is_full(); any = true) {
        const HeldRequest next = std::move(from.requests.front());
        from.requests.pop_front();
        --held_requests_;
        dispatcher_.arrivals().set_thread_of_request(turn, thread_of(next.header));
        if (handle(turn, *next.entry, Call(dispatcher_, source, true), next.body.bytes()) == Handled::no)
            dispatcher_.arrivals().refuse_unknown(turn, source, next.header.kind);
        dispatcher_.arrivals().set_thread_of_request(turn, 0);
        outbox.on_kept_handled(source, sizeof(Header) + next.body.bytes().size(), true);
    }
    for (; !from.plains.empty() && may_take_plain(turn, from); any = true) {
        const HeldPlain next = std::move(from.plains.front());
        from.plains.pop_front();
        from.forwarded -= next.was_forwarded ? 1 : 0;
        pm::Message message(source, next.body.bytes());
        run_plain(turn, next.was_forwarded, message);
    }
    return any;
}

// ---- plain messages

void ActiveMessages::set_plain_handler(std::function<void(pm::Message&)> handler) {
    const Turn turn = dispatcher_.take_turn();
    // The function that runs must outlive its own call.
    if (is_in_plain_handler_) next_plain_handler_ = std::move(handler);
    else plain_handler_ = std::move(handler);
    if (has_held(turn)) dispatcher_.loop().call(turn); // not here: this may be a handler
}

/// What was forwarded is not held because much waits, nor what came before it: messages of a source go in order.
inline bool ActiveMessages::may_take_plain(const Turn& turn, const Source& from) const noexcept {
    return plain_handler_ != nullptr && (from.forwarded != 0 || !dispatcher_.outbox(turn).backlog().is_full());
}

void ActiveMessages::on_plain_message(const Turn& turn, Node source, bool was_forwarded, Bytes body,
                                      pm::Message& message) {
    if (!sources_[source].plains.empty() || plain_handler_ == nullptr ||
        (!was_forwarded && dispatcher_.outbox(turn).backlog().is_full())) [[unlikely]]
        return hold_plain(turn, source, was_forwarded, body);
    pm::Message inner(message, source, body);
    run_plain(turn, was_forwarded, inner);
    if (inner.was_kept()) message.note_kept();
}

void ActiveMessages::hold_plain(const Turn& turn, Node source, bool was_forwarded, Bytes body) {
    Source& from = sources_[source];
    try {
        from.plains.push_back({was_forwarded, pm::KeptMessage(source, body)});
    } catch (...) { // no memory: the sender's window does not shrink
        dispatcher_.outbox(turn).on_plain_taken(source, was_forwarded, body.size());
        throw;
    }
    from.forwarded += was_forwarded ? 1 : 0;
    note_holding(source);
}

void ActiveMessages::run_plain(const Turn& turn, bool was_forwarded, pm::Message& message) {
    Outbox& outbox = dispatcher_.outbox(turn);
    const std::size_t bytes = message.bytes().size();
    std::optional<Error> trouble;
    is_in_plain_handler_ = true;
    try {
        const Lending lending(turn);
        plain_handler_(message);
    } catch (...) {
        const Error thrown = error_of_thrown(ErrorCode::refused);
        trouble = error(thrown.code(), "on_message threw at a message of {}: {}",
                        dispatcher_.name_of(message.source()), thrown.text());
    }
    is_in_plain_handler_ = false;
    if (next_plain_handler_) plain_handler_ = *std::exchange(next_plain_handler_, std::nullopt);
    outbox.on_plain_taken(message.source(), was_forwarded, bytes);
    if (trouble) dispatcher_.operations().note_error(turn, *std::move(trouble));
}

Result<void> ActiveMessages::send_plain(Node to, std::span<const Bytes> pieces) {
    if (auto known = dispatcher_.check_node("sending to", to); !known) return known;
    std::size_t bytes = sizeof(Header);
    for (const Bytes piece : pieces) bytes += piece.size();
    const pm::Traits& traits = dispatcher_.channel().traits();
    if (const std::size_t bytes_max = traits.message_bytes_max; bytes > bytes_max)
        return error(ErrorCode::too_large, "sending {} to node {}: the largest message here is {}; send it in parts{}",
                     base::readable_bytes_beside(bytes - sizeof(Header), bytes_max - sizeof(Header)), to,
                     base::readable_bytes(bytes_max - sizeof(Header)),
                     traits.device == "shmem" ? ", or raise KUMI_SHMEM_MEMORY" : "");
    WaitingSend sending(dispatcher_, to);
    const auto is_over = [&](const Turn& turn) {
        return sending.is_over(
            turn, [&] { return try_send_plain(turn, to, pieces, bytes); },
            [&] { return keep_plain(turn, to, pieces, bytes); });
    };
    bool is_over_now = false;
    {
        const Turn turn = dispatcher_.take_turn();
        is_over_now = is_over(turn);
        if (!is_over_now && to == dispatcher_.node() && plain_handler_ == nullptr)
            return error(ErrorCode::misuse,
                         "sending to this node itself, {}: {} wait already; set on_message, which takes them, before",
                         dispatcher_.name_of(to), base::readable_bytes(dispatcher_.outbox(turn).windows().bytes()));
    }
    if (!is_over_now) dispatcher_.loop().wait_for_room(is_over, [&] { return sending.describe(); });
    return sending.result();
}

namespace {

void gather(std::byte* at, Bytes head, std::span<const Bytes> pieces) {
    kumi::copy_bytes(at, head);
    at += head.size();
    for (const Bytes piece : pieces) {
        kumi::copy_bytes(at, piece);
        at += piece.size();
    }
}

} // namespace

bool ActiveMessages::try_send_plain(const Turn& turn, Node to, std::span<const Bytes> pieces, std::size_t bytes) {
    Outbox& outbox = dispatcher_.outbox(turn);
    if (!outbox.has_plain_room(to, turn.is_inner())) return false;
    Outgoing<0> head(turn.is_inner() ? Kind::forwarded : Kind::message, false);
    if (pieces.size() == 1) {
        if (!outbox.try_post(to, head.bytes(), pieces[0])) return false;
    } else {
        pm::Channel& channel = dispatcher_.channel();
        const pm::SendSlot slot = channel.try_reserve(to, bytes);
        if (!slot) return false;
        gather(slot.bytes().data(), head.bytes(), pieces);
        outbox.note_told(to, slot.bytes());
        channel.commit(slot);
    }
    outbox.windows().on_sent(to, turn.is_inner() ? Flow::forwarded : Flow::plain, bytes - sizeof(Header));
    return true;
}

bool ActiveMessages::keep_plain(const Turn& turn, Node to, std::span<const Bytes> pieces, std::size_t bytes) {
    if (dispatcher_.is_lost(to)) return false;
    Outgoing<0> head(Kind::forwarded, false);
    std::vector<std::byte> message(bytes);
    gather(message.data(), head.bytes(), pieces);
    return dispatcher_.outbox(turn).keep_plain(to, std::move(message));
}

} // namespace kumi::engine
