#include "provider/messages/messages.hpp"

#include "kumi/pm/channel.hpp"

#include <algorithm>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <utility>

namespace kumi::provider {
namespace {

/// Longer content is offered first: it is not copied to wait for a receive.
constexpr std::size_t eager_bytes_usual = std::size_t{16} << 10;
/// What may wait for room to one node; then sends are refused until some have left. Offers that have left are not
/// counted: a program may make any number of large sends before it receives.
constexpr std::size_t line_max = 1024;
/// Messages that are kept for endpoints which this process may open later; more are refused.
constexpr std::size_t early_max = 4096;
/// Of a send whose endpoint is closed.
constexpr std::uint8_t no_endpoint = 255;
/// No error of libfabric has a greater number.
constexpr std::int32_t error_max = 1023;

} // namespace

Messages::Messages(engine::Dispatcher& dispatcher)
    : dispatcher_(dispatcher), port_(dispatcher.add_service(*this)),
      piece_bytes_(std::min(pm::piece_bytes, dispatcher.message_bytes_max() - sizeof(Piece))),
      eager_bytes_max_(std::min(eager_bytes_usual, dispatcher.message_bytes_max() - sizeof(Head))),
      lines_(dispatcher.nodes()) {}

bool Messages::add(const Turn& turn, Endpoint& endpoint) {
    const auto free = std::ranges::find(endpoints_, nullptr);
    const auto number = static_cast<std::size_t>(free - endpoints_.begin());
    if (number == endpoints_max) return false;
    if (free == endpoints_.end()) endpoints_.push_back(&endpoint);
    else *free = &endpoint;
    endpoint.number_ = static_cast<std::uint8_t>(number);
    for (std::vector<Early> early = std::exchange(early_, {}); Early & one : early)
        if (one.head.to != number) early_.push_back(std::move(one));
        else endpoint.on_message(turn, one.from, one.head, one.length, one.content, one.is_offer);
    return true;
}

void Messages::remove(const Turn& turn, Endpoint& endpoint) {
    endpoint.refuse_unexpected(turn);
    arrivals_.for_each([&](std::uint32_t, Arrival& arrival) {
        arrival.is_dropped = arrival.is_dropped || arrival.endpoint == endpoint.number();
    });
    std::vector<std::uint32_t> given_up;
    sends_.for_each([&](std::uint32_t number, Send& send) {
        if (send.endpoint != endpoint.number()) return;
        send.endpoint = no_endpoint; // the number may soon be another endpoint's
        if (send.copy.empty() && send.request.content.bytes() != 0) given_up.push_back(number);
    });
    for (const std::uint32_t number : given_up) give_up(turn, number);
    endpoints_[endpoint.number()] = nullptr;
}

/// A send whose content may be gone. Its number is used again when nothing can come for it any more.
void Messages::give_up(const Turn& turn, std::uint32_t number) {
    Send& send = sends_[number];
    Line& line = lines_[send.request.to.node];
    switch (send.state) {
    case State::in_line: std::erase(line.sends, number); break;
    case State::in_pieces:
        std::erase(line.pieces, number);
        port_.reply(turn, send.request.to.node, aborted_kind, Aborted{send.arrival});
        break;
    case State::offered:
        send.state = State::withdrawn;
        ++withdrawn_;
        return;
    default: return; // its content has left
    }
    sends_.drop(number);
}

bool Messages::has_sends(const Turn&, const Endpoint& endpoint) {
    bool has_any = false;
    if (sends_.count() != 0)
        sends_.for_each([&](std::uint32_t, const Send& send) { has_any |= send.endpoint == endpoint.number(); });
    return has_any;
}

// ---- sending

bool Messages::try_send(const Turn& turn, Endpoint& endpoint, const SendRequest& request) {
    const Node to = request.to.node;
    Line& line = lines_[to];
    const bool is_answered = request.content.bytes() > eager_bytes_max_ || (request.flags & wants_delivered) != 0;
    if (!is_answered && line.sends.empty() && try_first(turn, endpoint.number(), request, no_send)) [[likely]]
        return complete(&endpoint, request, 0), true;
    if (line.sends.size() >= line_max) return false;
    const std::uint32_t number =
        sends_.add({.endpoint = endpoint.number(), .from = endpoint.number(), .request = request});
    Send& send = sends_[number];
    if (request.is_copied && request.content.bytes() != 0) {
        send.copy.resize(request.content.bytes());
        request.content.gather(0, send.copy);
        const iovec copy{send.copy.data(), send.copy.size()};
        send.request.content = Places({&copy, 1});
    }
    if (is_answered && line.sends.empty() && try_begin(turn, number)) return true;
    line.sends.push_back(number);
    wait_for_room(turn, to);
    return true;
}

bool Messages::try_first(const Turn& turn, std::uint8_t endpoint, const SendRequest& request, std::uint32_t send) {
    const Head head{request.to.endpoint, endpoint, request.flags, send, request.tag, request.data};
    const std::size_t bytes = request.content.bytes();
    if (bytes > eager_bytes_max_) return port_.try_request(turn, request.to.node, offer_kind, Offer{head, bytes});
    auto content = request.content.whole(0, bytes);
    if (!content) {
        gathered_.resize(bytes);
        request.content.gather(0, gathered_);
        content = gathered_;
    }
    return port_.try_request(turn, request.to.node, message_kind, head, *content);
}

/// The first of a send that has a number.
bool Messages::try_begin(const Turn& turn, std::uint32_t number) {
    Send& send = sends_[number];
    const bool is_offer = send.request.content.bytes() > eager_bytes_max_;
    const bool is_answered = is_offer || (send.request.flags & wants_delivered) != 0;
    if (!try_first(turn, send.from, send.request, is_answered ? number : no_send)) return false;
    send.state = is_offer ? State::offered : State::to_be_delivered;
    if (!is_answered) end(number, 0);
    return true;
}

void Messages::end(std::uint32_t number, int error) {
    const Send send = sends_.take(number);
    complete(endpoint_at(send.endpoint), send.request, error);
}

void Messages::complete(Endpoint* endpoint, const SendRequest& request, int error) {
    const bool is_told = request.wants_completion || (error != 0 && !request.is_silent);
    if (endpoint == nullptr || endpoint->sends == nullptr || !is_told) return;
    endpoint->sends->push(
        {.context = request.context, .flags = request.completion_flags, .tag = request.tag, .error = error});
}

void Messages::wait_for_room(const Turn& turn, Node to) {
    if (std::ranges::find(crowded_, to) == crowded_.end()) crowded_.push_back(to);
    port_.want_progress(turn, true);
}

bool Messages::go_on(const Turn& turn) noexcept {
    bool has_sent = false;
    for (const Node to : crowded_) {
        Line& line = lines_[to];
        while (!line.sends.empty() && try_begin(turn, line.sends.front())) {
            line.sends.pop_front();
            has_sent = true;
        }
        has_sent |= send_pieces(turn, to, line);
    }
    std::erase_if(crowded_, [&](Node to) { return lines_[to].is_empty(); });
    port_.want_progress(turn, !crowded_.empty());
    return has_sent;
}

/// Of each send that was accepted, one piece after the other.
bool Messages::send_pieces(const Turn& turn, Node to, Line& line) {
    bool has_sent = false;
    while (!line.pieces.empty()) {
        const std::uint32_t number = line.pieces.front();
        Send& send = sends_[number];
        if (!try_piece(turn, to, send)) break;
        has_sent = true;
        line.pieces.pop_front();
        if (send.sent < send.wanted) line.pieces.push_back(number);
        else if ((send.request.flags & wants_delivered) != 0) send.state = State::to_be_delivered;
        else end(number, 0);
    }
    return has_sent;
}

bool Messages::try_piece(const Turn& turn, Node to, Send& send) {
    const auto offset = static_cast<std::size_t>(send.sent);
    const std::size_t bytes = std::min(piece_bytes_, static_cast<std::size_t>(send.wanted) - offset);
    auto content = send.request.content.whole(offset, bytes);
    if (!content) {
        gathered_.resize(bytes);
        send.request.content.gather(offset, gathered_);
        content = gathered_;
    }
    if (!port_.try_request(turn, to, piece_kind, Piece{send.arrival, 0, send.sent}, *content)) return false;
    send.sent += bytes;
    return true;
}

// ---- receiving

Handled Messages::on_message(const Turn& turn, Node source, std::uint16_t kind, Bytes body) {
    switch (kind) {
    case message_kind:
    case offer_kind: return on_head(turn, source, kind, body);
    case accept_kind: return on_accept(turn, source, body);
    case piece_kind: return on_piece(turn, source, body);
    case delivered_kind: return on_delivered(source, body);
    case aborted_kind: return on_aborted(source, body);
    default: return Handled::no;
    }
}

Handled Messages::on_head(const Turn& turn, Node source, std::uint16_t kind, Bytes body) {
    Offer offer{};
    const bool is_offer = kind == offer_kind;
    if (is_offer ? !read_value(body, offer) : !read_value(body, offer.head)) return Handled::no;
    const Bytes content = is_offer ? Bytes{} : body.subspan(sizeof(Head));
    Endpoint* const endpoint = endpoint_at(offer.head.to);
    const std::uint64_t length = is_offer ? offer.length : content.size();
    if (endpoint != nullptr) endpoint->on_message(turn, source, offer.head, length, content, is_offer);
    else if (offer.head.to >= endpoints_.size() && early_.size() < early_max)
        early_.push_back({source, offer.head, length, {content.begin(), content.end()}, is_offer});
    else refuse(turn, source, offer.head);
    return Handled::yes;
}

void Messages::accept(const Turn& turn, Endpoint& endpoint, Node from, const Head& head, const Places& content,
                      std::uint64_t length, const Completion& completion, bool wants_completion,
                      std::uint32_t staying) {
    const std::uint64_t wanted = std::min<std::uint64_t>(content.bytes(), length);
    if (wanted != 0) {
        const std::uint32_t arrival = arrivals_.add({.endpoint = endpoint.number(),
                                                     .from = from,
                                                     .head = head,
                                                     .content = content,
                                                     .completion = completion,
                                                     .wants_completion = wants_completion,
                                                     .left = wanted,
                                                     .staying = staying});
        return port_.reply(turn, from, accept_kind, Accept{head.send, arrival, wanted});
    }
    port_.reply(turn, from, accept_kind, Accept{head.send, 0, 0});
    endpoint.finish(staying, wants_completion, completion);
    tell_delivered(turn, from, head, 0);
}

Handled Messages::on_accept(const Turn& turn, Node source, Bytes body) {
    Accept accept{};
    if (!read_value(body, accept)) return Handled::no;
    Send* const send = sends_.find(accept.send);
    if (send != nullptr && send->state == State::withdrawn && send->request.to.node == source) {
        if (accept.bytes != 0) port_.reply(turn, source, aborted_kind, Aborted{accept.arrival});
        sends_.drop(accept.send);
        --withdrawn_;
        return Handled::yes;
    }
    if (send == nullptr || send->state != State::offered || send->request.to.node != source ||
        accept.bytes > send->request.content.bytes())
        return Handled::no;
    send->arrival = accept.arrival;
    send->wanted = accept.bytes;
    send->state = State::in_pieces;
    if (accept.bytes != 0) {
        lines_[source].pieces.push_back(accept.send);
        wait_for_room(turn, source);
    } else if ((send->request.flags & wants_delivered) != 0) {
        send->state = State::to_be_delivered;
    } else {
        end(accept.send, 0);
    }
    return Handled::yes;
}

Handled Messages::on_piece(const Turn& turn, Node source, Bytes body) {
    Piece piece{};
    if (!read_value(body, piece)) return Handled::no;
    const Bytes content = body.subspan(sizeof piece);
    Arrival* const arrival = arrivals_.find(piece.arrival);
    if (arrival == nullptr || arrival->from != source || content.size() > arrival->left ||
        piece.offset > arrival->content.bytes() || content.size() > arrival->content.bytes() - piece.offset)
        return Handled::no;
    if (!arrival->is_dropped) arrival->content.scatter(static_cast<std::size_t>(piece.offset), content);
    arrival->left -= content.size();
    if (arrival->left != 0) return Handled::yes;
    const Head head = arrival->head;
    finish_arrival(piece.arrival, 0);
    tell_delivered(turn, source, head, 0);
    return Handled::yes;
}

/// All pieces are there, or no more will come.
void Messages::finish_arrival(std::uint32_t number, int error) {
    Arrival arrival = arrivals_.take(number);
    if (error != 0) arrival.completion.error = error;
    Endpoint* const endpoint = endpoint_at(arrival.endpoint);
    if (endpoint != nullptr && !arrival.is_dropped)
        endpoint->finish(arrival.staying, arrival.wants_completion, arrival.completion);
}

Handled Messages::on_aborted(Node source, Bytes body) {
    Aborted aborted{};
    if (!read_value(body, aborted)) return Handled::no;
    const Arrival* const arrival = arrivals_.find(aborted.arrival);
    if (arrival == nullptr || arrival->from != source) return Handled::no;
    finish_arrival(aborted.arrival, FI_ECONNABORTED);
    return Handled::yes;
}

void Messages::tell_delivered(const Turn& turn, Node to, const Head& head, int error) {
    if ((head.flags & wants_delivered) != 0) port_.reply(turn, to, delivered_kind, Delivered{head.send, error});
}

/// There is nobody to receive it.
void Messages::refuse(const Turn& turn, Node from, const Head& head) {
    if (head.send != no_send) port_.reply(turn, from, delivered_kind, Delivered{head.send, FI_ECONNREFUSED});
}

Handled Messages::on_delivered(Node source, Bytes body) {
    Delivered delivered{};
    if (!read_value(body, delivered)) return Handled::no;
    Send* const send = sends_.find(delivered.send);
    const bool is_awaited =
        send != nullptr && send->request.to.node == source &&
        (send->state == State::to_be_delivered ||
         (delivered.error != 0 && (send->state == State::offered || send->state == State::withdrawn)));
    if (!is_awaited || delivered.error < 0 || delivered.error > error_max) return Handled::no;
    if (send->state == State::withdrawn) --withdrawn_;
    end(delivered.send, delivered.error);
    return Handled::yes;
}

// ---- losses

void Messages::on_lost(const Turn&, Node node) noexcept {
    lines_[node] = {};
    std::vector<std::uint32_t> sends, arrivals;
    sends_.for_each([&](std::uint32_t number, const Send& send) {
        if (send.request.to.node == node) sends.push_back(number);
    });
    arrivals_.for_each([&](std::uint32_t number, const Arrival& arrival) {
        if (arrival.from == node) arrivals.push_back(number);
    });
    for (const std::uint32_t number : sends) {
        if (sends_[number].state == State::withdrawn) --withdrawn_;
        end(number, FI_ECONNABORTED);
    }
    for (const std::uint32_t number : arrivals) finish_arrival(number, FI_ECONNABORTED);
    std::erase_if(early_, [&](const Early& one) { return one.from == node; });
    for (Endpoint* const endpoint : endpoints_)
        if (endpoint != nullptr) endpoint->on_lost(node);
}

} // namespace kumi::provider
