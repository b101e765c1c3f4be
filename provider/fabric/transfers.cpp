// Sends and receives, with tags and without: the calls of libfabric, as requests of Endpoint.
#include "provider/fabric/objects.hpp"

#include <span>

namespace kumi::provider {
namespace {

enum class Tagged : bool { no, yes };

EndpointObject& endpoint_of(fid_ep* fid) noexcept { return object<EndpointObject>(fid); }

/// The places of a send or receive; nothing if they make no sense.
std::optional<Places> places_of(const iovec* places, std::size_t count) noexcept {
    if (count > places_max) return std::nullopt;
    for (const iovec& place : std::span(places, count))
        if (place.iov_base == nullptr && place.iov_len != 0) return std::nullopt;
    return Places(std::span(places, count));
}

/// What a send asks for, in all its forms.
struct SendCall {
    const iovec* places;
    std::size_t count;
    fi_addr_t to;
    std::uint64_t tag = 0;
    std::uint64_t data = 0;
    void* context = nullptr;
    std::uint64_t flags = 0;
    bool is_silent = false; // fi_inject(): there is never a completion
};

ssize_t send(fid_ep* fid, Tagged tagged, const SendCall& call) {
    EndpointObject& mine = endpoint_of(fid);
    const auto places = places_of(call.places, call.count);
    const bool is_injected = (call.flags & FI_INJECT) != 0;
    if (!places || (is_injected && places->bytes() > inject_bytes_max)) return -FI_EINVAL;
    return guarded([&]() -> ssize_t {
        const engine::Turn turn = mine.domain->process->take_turn();
        const Peer* const to = mine.peers == nullptr ? nullptr : mine.peers->find(call.to);
        if (to == nullptr) return -FI_EINVAL;
        if (mine.domain->process->messages().dispatcher().is_lost(to->node)) return -FI_ECONNABORTED;
        SendRequest request{.to = *to,
                            .flags = 0,
                            .tag = call.tag,
                            .data = call.data,
                            .content = *places,
                            .context = call.context,
                            .completion_flags = FI_SEND | (tagged == Tagged::yes ? FI_TAGGED : FI_MSG),
                            .wants_completion =
                                !call.is_silent && (!mine.are_sends_selective || (call.flags & FI_COMPLETION) != 0),
                            .is_copied = is_injected,
                            .is_silent = call.is_silent};
        if (tagged == Tagged::yes) request.flags |= is_tagged;
        if ((call.flags & FI_REMOTE_CQ_DATA) != 0) request.flags |= has_data;
        if ((call.flags & FI_DELIVERY_COMPLETE) != 0 && !call.is_silent) request.flags |= wants_delivered;
        return mine.endpoint.try_send(turn, request) ? 0 : -FI_EAGAIN;
    });
}

/// What a receive asks for, in all its forms.
struct ReceiveCall {
    const iovec* places;
    std::size_t count;
    fi_addr_t from;
    std::uint64_t tag = 0;
    std::uint64_t ignore = 0;
    void* context = nullptr;
    std::uint64_t flags = 0;
};

ssize_t look(EndpointObject& mine, const ReceiveRequest& request, std::uint64_t flags) {
    const engine::Turn turn = mine.domain->process->take_turn();
    mine.domain->process->make_progress(turn);
    if (mine.endpoint.receives == nullptr) return -FI_ENOCQ;
    if ((flags & FI_CLAIM) != 0 && mine.endpoint.has_claimed(request.context)) return -FI_EINVAL;
    const auto found = mine.endpoint.peek(turn, request, (flags & FI_CLAIM) != 0, (flags & FI_DISCARD) != 0);
    const std::uint64_t kind = FI_RECV | (request.is_tagged ? FI_TAGGED : FI_MSG);
    mine.endpoint.receives->push(
        found ? *found
              : Completion{.context = request.context, .flags = kind, .tag = request.wanted.tag, .error = FI_ENOMSG});
    return 0;
}

ssize_t receive(fid_ep* fid, Tagged tagged, const ReceiveCall& call) {
    EndpointObject& mine = endpoint_of(fid);
    const bool is_look = (call.flags & FI_PEEK) != 0;
    const auto places = is_look ? Places() : places_of(call.places, call.count);
    const bool stays = (call.flags & FI_MULTI_RECV) != 0;
    if (!places || (stays && (call.count != 1 || tagged == Tagged::yes))) return -FI_EINVAL;
    return guarded([&]() -> ssize_t {
        ReceiveRequest request{.wanted = {any_source, call.tag, call.ignore},
                               .is_tagged = tagged == Tagged::yes,
                               .stays = stays,
                               .content = *places,
                               .context = call.context,
                               .wants_completion = !mine.are_receives_selective || (call.flags & FI_COMPLETION) != 0};
        if ((mine.caps & FI_DIRECTED_RECV) != 0 && call.from != FI_ADDR_UNSPEC) {
            const engine::Turn turn = mine.domain->process->take_turn();
            const Peer* const from = mine.peers == nullptr ? nullptr : mine.peers->find(call.from);
            const bool is_claimed = (call.flags & FI_CLAIM) != 0 && !is_look; // its message is known
            if (from == nullptr && !is_claimed) return -FI_EINVAL;
            if (from != nullptr) request.wanted.source = from->number();
        }
        if (is_look) return look(mine, request, call.flags);
        const engine::Turn turn = mine.domain->process->take_turn();
        if ((call.flags & FI_CLAIM) == 0) return mine.endpoint.receive(turn, request), 0;
        const bool is_found = (call.flags & FI_DISCARD) != 0 ? mine.endpoint.drop_claimed(turn, call.context)
                                                             : mine.endpoint.receive_claimed(turn, request);
        return is_found ? 0 : -FI_EINVAL;
    });
}

std::uint64_t send_flags(fid_ep* fid, std::uint64_t more = 0) noexcept { return endpoint_of(fid).send_flags | more; }
std::uint64_t receive_flags(fid_ep* fid) noexcept { return endpoint_of(fid).receive_flags; }

iovec place(const void* start, std::size_t bytes) noexcept { return {const_cast<void*>(start), bytes}; }

} // namespace

// ---- without tags

fi_ops_msg message_ops{
    .size = sizeof(fi_ops_msg),
    .recv =
        [](fid_ep* fid, void* to, std::size_t bytes, void*, fi_addr_t from, void* context) {
            const iovec one = place(to, bytes);
            return receive(fid, Tagged::no, {&one, 1, from, 0, 0, context, receive_flags(fid)});
        },
    .recvv =
        [](fid_ep* fid, const iovec* places, void**, std::size_t count, fi_addr_t from, void* context) {
            return receive(fid, Tagged::no, {places, count, from, 0, 0, context, receive_flags(fid)});
        },
    .recvmsg =
        [](fid_ep* fid, const fi_msg* message, std::uint64_t flags) {
            return receive(fid, Tagged::no,
                           {message->msg_iov, message->iov_count, message->addr, 0, 0, message->context, flags});
        },
    .send =
        [](fid_ep* fid, const void* from, std::size_t bytes, void*, fi_addr_t to, void* context) {
            const iovec one = place(from, bytes);
            return send(fid, Tagged::no, {&one, 1, to, 0, 0, context, send_flags(fid)});
        },
    .sendv =
        [](fid_ep* fid, const iovec* places, void**, std::size_t count, fi_addr_t to, void* context) {
            return send(fid, Tagged::no, {places, count, to, 0, 0, context, send_flags(fid)});
        },
    .sendmsg =
        [](fid_ep* fid, const fi_msg* message, std::uint64_t flags) {
            return send(
                fid, Tagged::no,
                {message->msg_iov, message->iov_count, message->addr, 0, message->data, message->context, flags});
        },
    .inject =
        [](fid_ep* fid, const void* from, std::size_t bytes, fi_addr_t to) {
            const iovec one = place(from, bytes);
            return send(fid, Tagged::no, {&one, 1, to, 0, 0, nullptr, FI_INJECT, true});
        },
    .senddata =
        [](fid_ep* fid, const void* from, std::size_t bytes, void*, std::uint64_t data, fi_addr_t to, void* context) {
            const iovec one = place(from, bytes);
            return send(fid, Tagged::no, {&one, 1, to, 0, data, context, send_flags(fid, FI_REMOTE_CQ_DATA)});
        },
    .injectdata =
        [](fid_ep* fid, const void* from, std::size_t bytes, std::uint64_t data, fi_addr_t to) {
            const iovec one = place(from, bytes);
            return send(fid, Tagged::no, {&one, 1, to, 0, data, nullptr, FI_INJECT | FI_REMOTE_CQ_DATA, true});
        },
};

// ---- with tags

fi_ops_tagged tagged_ops{
    .size = sizeof(fi_ops_tagged),
    .recv =
        [](fid_ep* fid, void* to, std::size_t bytes, void*, fi_addr_t from, std::uint64_t tag, std::uint64_t ignore,
           void* context) {
            const iovec one = place(to, bytes);
            return receive(fid, Tagged::yes, {&one, 1, from, tag, ignore, context, receive_flags(fid)});
        },
    .recvv =
        [](fid_ep* fid, const iovec* places, void**, std::size_t count, fi_addr_t from, std::uint64_t tag,
           std::uint64_t ignore, void* context) {
            return receive(fid, Tagged::yes, {places, count, from, tag, ignore, context, receive_flags(fid)});
        },
    .recvmsg =
        [](fid_ep* fid, const fi_msg_tagged* message, std::uint64_t flags) {
            return receive(fid, Tagged::yes,
                           {message->msg_iov, message->iov_count, message->addr, message->tag, message->ignore,
                            message->context, flags});
        },
    .send =
        [](fid_ep* fid, const void* from, std::size_t bytes, void*, fi_addr_t to, std::uint64_t tag, void* context) {
            const iovec one = place(from, bytes);
            return send(fid, Tagged::yes, {&one, 1, to, tag, 0, context, send_flags(fid)});
        },
    .sendv =
        [](fid_ep* fid, const iovec* places, void**, std::size_t count, fi_addr_t to, std::uint64_t tag,
           void* context) {
            return send(fid, Tagged::yes, {places, count, to, tag, 0, context, send_flags(fid)});
        },
    .sendmsg =
        [](fid_ep* fid, const fi_msg_tagged* message, std::uint64_t flags) {
            return send(fid, Tagged::yes,
                        {message->msg_iov, message->iov_count, message->addr, message->tag, message->data,
                         message->context, flags});
        },
    .inject =
        [](fid_ep* fid, const void* from, std::size_t bytes, fi_addr_t to, std::uint64_t tag) {
            const iovec one = place(from, bytes);
            return send(fid, Tagged::yes, {&one, 1, to, tag, 0, nullptr, FI_INJECT, true});
        },
    .senddata =
        [](fid_ep* fid, const void* from, std::size_t bytes, void*, std::uint64_t data, fi_addr_t to, std::uint64_t tag,
           void* context) {
            const iovec one = place(from, bytes);
            return send(fid, Tagged::yes, {&one, 1, to, tag, data, context, send_flags(fid, FI_REMOTE_CQ_DATA)});
        },
    .injectdata =
        [](fid_ep* fid, const void* from, std::size_t bytes, std::uint64_t data, fi_addr_t to, std::uint64_t tag) {
            const iovec one = place(from, bytes);
            return send(fid, Tagged::yes, {&one, 1, to, tag, data, nullptr, FI_INJECT | FI_REMOTE_CQ_DATA, true});
        },
};

} // namespace kumi::provider
