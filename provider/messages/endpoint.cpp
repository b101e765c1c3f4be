#include "provider/messages/messages.hpp"

#include <algorithm>
#include <cerrno>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

namespace kumi::provider {

bool Endpoint::try_send(const Turn& turn, const SendRequest& request) {
    return messages_.try_send(turn, *this, request);
}

void Endpoint::receive(const Turn& turn, const ReceiveRequest& request) {
    Matching& matching = this->matching(request.is_tagged);
    const std::uint32_t number = posted_.add(request);
    if (request.stays) staying_.emplace(number, Staying{});
    while (const auto message = matching.post(request.wanted, number, request.stays)) {
        const Unexpected found = unexpected_.take(*message);
        if (!request.stays) {
            posted_.drop(number);
            return join(turn, request, found);
        }
        // It takes what waits, one message after the other, until it is used up or waits itself.
        const ReceiveRequest part = part_of(number, found.length);
        const bool is_over = staying_[number].is_over;
        join(turn, part, found, number); // may forget the number
        if (is_over) return;
    }
}

ReceiveRequest Endpoint::part_of(std::uint32_t number, std::uint64_t length) {
    const ReceiveRequest& receive = posted_[number];
    Staying& staying = staying_[number];
    const std::size_t room = receive.content.bytes() - staying.used;
    ReceiveRequest part = receive;
    part.content = receive.content.part(staying.used, static_cast<std::size_t>(std::min<std::uint64_t>(room, length)));
    staying.used += part.content.bytes();
    ++staying.under_way;
    const std::size_t left = room - part.content.bytes();
    if (left == 0 || left < least_left) {
        staying.is_over = true;
        matching(receive.is_tagged).cancel(number); // if it waits there
    }
    return part;
}

void Endpoint::on_message(const Turn& turn, Node from, const Head& head, std::uint64_t length, Bytes content,
                          bool is_offer) {
    const bool tagged = (head.flags & is_tagged) != 0;
    const Envelope envelope{Peer{from, head.from}.number(), tagged ? head.tag : 0};
    const auto posted = matching(tagged).arrive(envelope, unexpected_.next());
    if (!posted) {
        unexpected_.add({from, head, length, {content.begin(), content.end()}, is_offer});
        return;
    }
    if (posted_[*posted].stays)
        return take_in(turn, part_of(*posted, length), from, head, length, content, is_offer, *posted);
    take_in(turn, posted_[*posted], from, head, length, content, is_offer);
    posted_.drop(*posted);
}

/// A receive and a message that waited.
void Endpoint::join(const Turn& turn, const ReceiveRequest& receive, const Unexpected& message, std::uint32_t staying) {
    take_in(turn, receive, message.from, message.head, message.length, message.content, message.is_offer, staying);
}

/// A receive and the message that it matches.
void Endpoint::take_in(const Turn& turn, const ReceiveRequest& receive, Node from, const Head& head,
                       std::uint64_t length, Bytes content, bool is_offer, std::uint32_t staying) {
    const Completion completion = describe(receive, from, head, length);
    if (is_offer)
        return messages_.accept(turn, *this, from, head, receive.content, length, completion, receive.wants_completion,
                                staying);
    receive.content.scatter(0, content);
    finish(staying, receive.wants_completion, completion);
    messages_.tell_delivered(turn, from, head, 0);
}

void Endpoint::finish(std::uint32_t staying, bool wants_completion, Completion completion) {
    if (staying == no_staying) return complete(wants_completion, completion);
    Staying& receive = staying_[staying];
    --receive.under_way;
    const bool is_over = receive.is_over && receive.under_way == 0;
    const int error = receive.error;
    if (is_over && error == 0) completion.flags |= FI_MULTI_RECV; // the program may use the memory again
    complete(wants_completion, completion);
    if (!is_over) return;
    if (error != 0) tell_over(posted_[staying], error);
    staying_.erase(staying);
    posted_.drop(staying);
}

/// A receive that stays takes no more messages.
void Endpoint::end_staying(std::uint32_t number, int error) {
    Staying& staying = staying_[number];
    staying.is_over = true;
    staying.error = error;
    if (staying.under_way != 0) return;
    tell_over(posted_[number], error);
    staying_.erase(number);
    posted_.drop(number);
}

void Endpoint::tell_over(const ReceiveRequest& receive, int error) {
    complete(true, {.context = receive.context,
                    .flags = FI_RECV | (receive.is_tagged ? FI_TAGGED : FI_MSG) |
                             (receive.stays ? FI_MULTI_RECV : std::uint64_t{0}),
                    .tag = receive.wanted.tag,
                    .source = receive.wanted.source,
                    .error = error});
}

Completion Endpoint::describe(const ReceiveRequest& receive, Node from, const Head& head, std::uint64_t length) {
    const std::uint64_t room = receive.content.bytes();
    Completion completion{.context = receive.context,
                          .flags = FI_RECV | (receive.is_tagged ? FI_TAGGED : FI_MSG),
                          .length = static_cast<std::size_t>(std::min(room, length)),
                          .buffer = receive.content.start(),
                          .data = head.data,
                          .tag = head.tag,
                          .source = Peer{from, head.from}.number()};
    if ((head.flags & has_data) != 0) completion.flags |= FI_REMOTE_CQ_DATA;
    if (length > room) {
        completion.error = FI_ETRUNC;
        completion.excess = static_cast<std::size_t>(length - room);
    }
    return completion;
}

void Endpoint::complete(bool wants_completion, Completion completion) {
    const bool is_told = wants_completion || completion.error != 0 || (completion.flags & FI_MULTI_RECV) != 0;
    if (receives == nullptr || !is_told) return;
    if (addresses != nullptr)
        if (const auto found = addresses->find(completion.source); found != addresses->end())
            completion.address = found->second;
    receives->push(completion);
}

std::optional<Completion> Endpoint::peek(const Turn& turn, const ReceiveRequest& request, bool claim, bool discard) {
    Matching& matching = this->matching(request.is_tagged);
    const auto found = matching.peek(request.wanted);
    if (!found) return std::nullopt;
    const Unexpected& message = unexpected_[*found];
    Completion completion = describe(request, message.from, message.head, message.length);
    completion.length = static_cast<std::size_t>(message.length);
    completion.error = 0;
    completion.excess = 0;
    if (!claim && !discard) return completion;
    matching.take(request.wanted);
    Unexpected taken = unexpected_.take(*found);
    if (claim) claimed_.insert_or_assign(request.context, std::move(taken));
    else drop(turn, taken);
    return completion;
}

/// Its sender is told as if it had been received.
void Endpoint::drop(const Turn& turn, const Unexpected& message) {
    if (message.is_offer) messages_.accept(turn, *this, message.from, message.head, {}, message.length, {}, false);
    else messages_.tell_delivered(turn, message.from, message.head, 0);
}

bool Endpoint::receive_claimed(const Turn& turn, const ReceiveRequest& request) {
    const auto found = claimed_.find(request.context);
    if (found == claimed_.end()) return false;
    join(turn, request, claimed_.extract(found).mapped());
    return true;
}

bool Endpoint::drop_claimed(const Turn& turn, void* context) {
    const auto found = claimed_.find(context);
    if (found == claimed_.end()) return false;
    drop(turn, claimed_.extract(found).mapped());
    return true;
}

bool Endpoint::cancel(const Turn&, void* context) {
    std::optional<std::uint32_t> found;
    posted_.for_each([&](std::uint32_t number, const ReceiveRequest& receive) {
        if (!found && receive.context == context) found = number;
    });
    if (!found || !matching(posted_[*found].is_tagged).cancel(*found)) return false;
    if (posted_[*found].stays) return end_staying(*found, FI_ECANCELED), true;
    tell_over(posted_.take(*found), FI_ECANCELED);
    return true;
}

void Endpoint::refuse_unexpected(const Turn& turn) {
    unexpected_.for_each(
        [&](std::uint32_t, const Unexpected& message) { messages_.refuse(turn, message.from, message.head); });
    for (const auto& [context, message] : claimed_) messages_.refuse(turn, message.from, message.head);
}

/// Receives that name an endpoint of the node will not be served.
void Endpoint::on_lost(Node node) {
    std::vector<std::uint32_t> hopeless;
    posted_.for_each([&](std::uint32_t number, const ReceiveRequest& receive) {
        if (receive.wanted.source != any_source && Peer::of_number(receive.wanted.source).node == node)
            hopeless.push_back(number);
    });
    for (const std::uint32_t number : hopeless) {
        if (!matching(posted_[number].is_tagged).cancel(number)) continue; // it takes no more, and its last is coming
        if (posted_[number].stays) end_staying(number, FI_ECONNABORTED);
        else tell_over(posted_.take(number), FI_ECONNABORTED);
    }
}

} // namespace kumi::provider
