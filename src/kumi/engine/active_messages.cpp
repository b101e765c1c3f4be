#include "kumi/engine/active_messages.hpp"

#include "kumi/base/system/machine.hpp"
#include "kumi/engine/dispatcher.hpp"

#include <exception>
#include <utility>

namespace kumi::engine {

ActiveMessages::ActiveMessages(Dispatcher& dispatcher, Handlers&& handlers) noexcept
    : dispatcher_(dispatcher), handlers_(std::move(handlers)) {}

void ActiveMessages::set_numbers(std::vector<std::uint32_t> numbers) {
    numbers_ = std::move(numbers);
    handler_of_ = inverse_of(numbers_);
}

// ---- to handlers

Result<void> ActiveMessages::send(Node to, std::uint32_t handler, MutableBytes message, Bytes payload) {
    if (auto known = dispatcher_.check_node("sending to", to); !known) return known;
    const std::size_t bytes = message.size() + payload.size() - sizeof(Header);
    if (const std::size_t bytes_max = dispatcher_.message_bytes_max(); bytes > bytes_max)
        return error(ErrorCode::too_large,
                     "sending {} to handler {} on {}: the largest is {}; put the data into a segment",
                     base::readable_bytes(bytes), handlers_.entries()[handler].name, dispatcher_.name_of(to),
                     base::readable_bytes(bytes_max));
    write_header(message, kind_of(handler), true);
    return dispatcher_.request(to, message, payload);
}

void ActiveMessages::reply(Node to, std::uint32_t handler, MutableBytes message, Bytes payload) {
    const Turn turn = dispatcher_.take_turn();
    write_header(message, kind_of(handler), false);
    dispatcher_.outbox(turn).reply(to, message, payload);
}

bool ActiveMessages::on_message(const Turn& turn, Node source, const Header& header, Bytes body) {
    const std::size_t number = header.kind - static_cast<std::size_t>(Kind::first_handler);
    if (number >= handler_of_.size()) return false;
    Call call(dispatcher_, source, header.is_request != 0);
    std::string trouble;
    const bool is_sound = run(handlers_.entries()[handler_of_[number]], call, body, trouble);
    if (!trouble.empty())
        dispatcher_.operations().refuse(turn, source, no_operation, Error(ErrorCode::refused, trouble));
    return is_sound;
}

std::optional<std::string> ActiveMessages::run_here(std::uint32_t number, Node source, Bytes arguments) {
    const Handlers::Entry& entry = handlers_.entries()[handler_of_[number]];
    Call call(dispatcher_, source, false);
    std::string trouble;
    if (!run(entry, call, arguments, trouble))
        return fmt::format("{} bytes came that are no arguments of handler {}", arguments.size(), entry.name);
    if (trouble.empty()) return {};
    return trouble;
}

/// False: these are not the handler's arguments.
inline bool ActiveMessages::run(const Handlers::Entry& entry, Call& call, Bytes body, std::string& trouble) {
    try {
        return entry.run(call, body);
    } catch (const std::exception& thrown) {
        trouble = fmt::format("handler {} threw: {}", entry.name, thrown.what());
    } catch (...) {
        trouble = fmt::format("handler {} threw something that is no std::exception", entry.name);
    }
    return true;
}

// ---- plain messages

void ActiveMessages::set_plain_handler(std::function<void(pm::Message&)> handler) {
    const Turn turn = dispatcher_.take_turn();
    plain_handler_ = std::move(handler);
    for (pm::KeptMessage& kept : std::exchange(early_messages_, {})) {
        pm::Message message(kept.source(), kept.bytes());
        plain_handler_(message);
    }
}

void ActiveMessages::on_plain_message(const Turn&, Node source, Bytes body, pm::Message& message) {
    pm::Message inner(message, source, body);
    if (plain_handler_) plain_handler_(inner);
    else early_messages_.push_back(inner.keep());
    if (inner.was_kept()) message.note_kept();
}

Result<void> ActiveMessages::send_plain(Node to, std::span<const Bytes> pieces) {
    if (auto known = dispatcher_.check_node("sending to", to); !known) return known;
    std::size_t bytes = sizeof(Header);
    for (const Bytes piece : pieces) bytes += piece.size();
    const pm::Traits& traits = dispatcher_.channel().traits();
    if (bytes > traits.message_bytes_max)
        return error(ErrorCode::too_large, "sending {} to node {}: the largest message here is {}; send it in parts{}",
                     base::readable_bytes(bytes - sizeof(Header)), to,
                     base::readable_bytes(traits.message_bytes_max - sizeof(Header)),
                     traits.device == "shmem" ? ", or raise KUMI_SHMEM_MEMORY" : "");
    {
        const Turn turn = dispatcher_.take_turn();
        if (try_send_plain(turn, to, pieces, bytes)) return {};
        if (turn.is_inner())
            return error(ErrorCode::misuse,
                         "sending to {} from a handler: there is no room, and a handler must not wait",
                         dispatcher_.name_of(to));
    }
    bool was_sent = false;
    const auto is_over = [&](const Turn& turn) {
        return was_sent || (was_sent = try_send_plain(turn, to, pieces, bytes)) || dispatcher_.is_lost(to);
    };
    dispatcher_.loop().serve_until(is_over, never);
    if (!was_sent) return error(ErrorCode::node_lost, "sending to node {}: it has left, or is lost", to);
    return {};
}

bool ActiveMessages::try_send_plain(const Turn& turn, Node to, std::span<const Bytes> pieces, std::size_t bytes) {
    Outgoing<0> head(Kind::message, false);
    Outbox& outbox = dispatcher_.outbox(turn);
    if (pieces.size() == 1) return outbox.try_post(to, head.bytes(), pieces[0]);
    pm::Channel& channel = dispatcher_.channel();
    const pm::SendSlot slot = channel.try_reserve(to, bytes);
    if (!slot) return false;
    std::byte* at = slot.bytes().data();
    kumi::copy_bytes(at, head.bytes());
    at += head.bytes().size();
    for (const Bytes piece : pieces) {
        kumi::copy_bytes(at, piece);
        at += piece.size();
    }
    outbox.note_told(to, slot.bytes());
    channel.commit(slot);
    return true;
}

} // namespace kumi::engine
