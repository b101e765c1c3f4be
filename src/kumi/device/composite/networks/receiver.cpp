#include "kumi/device/composite/networks/receiver.hpp"

namespace kumi::device::composite {

bool Receiver::take(Peer& peer, const Envelope& head, pm::Message& message, pm::Handler handler) {
    Inbox& inbox = peer.in.inbox;
    if (head.asks != 0) [[unlikely]] peers_.owe_word(peer);
    if (head.sequence != inbox.expected()) [[unlikely]] {
        if (inbox.has_come(head.sequence)) {
            ++peers_.counters.duplicates;
        } else { // a copy: what the device holds would keep out those that it waits for
            ++peers_.counters.early;
            inbox.keep(head.sequence, pm::KeptMessage(peer.node, message.bytes()));
        }
        return false;
    }
    inbox.advance();
    pm::Message known(message, peer.node, message.bytes().subspan(head_bytes(head.hops)));
    handler(known);
    if (known.was_kept()) message.note_kept();
    if (inbox.has_early() && !std::exchange(peer.in.has_turn, true)) [[unlikely]] early_.push_back(peer.node);
    return true;
}

bool Receiver::take_piece(Peer& peer, const Envelope& head, pm::Message& message, pm::Handler handler) {
    Inbox& inbox = peer.in.inbox;
    peers_.owe_word(peer);
    Joiner::Whole whole;
    auto outcome = Joiner::Outcome::duplicate;
    if (!inbox.has_come(head.sequence))
        outcome = peer.in.joiner.add(head.sequence, message.bytes().subspan(head_bytes(head.hops)), whole);
    switch (outcome) {
    case Joiner::Outcome::waits: return false;
    case Joiner::Outcome::duplicate: ++peers_.counters.duplicates; return false;
    case Joiner::Outcome::unsound: ++peers_.counters.unsound; return false;
    case Joiner::Outcome::complete: break;
    }
    Envelope whole_head = head;
    whole_head.kind = Envelope::Kind::message;
    whole_head.asks = true;
    whole_head.hops = 0;
    std::memcpy(whole.memory.get(), &whole_head, sizeof whole_head);
    std::byte* const memory = whole.memory.release();
    const auto token = reinterpret_cast<std::uintptr_t>(memory);
    pm::Message letter(peer.node, Bytes(memory, whole.bytes), &whole.owner(), token);
    bool is_handed_out = false;
    if (head.sequence == inbox.expected()) {
        is_handed_out = take(peer, whole_head, letter, handler);
    } else {
        ++peers_.counters.early;
        inbox.keep(head.sequence, letter.keep());
    }
    if (!letter.was_kept()) whole.owner().release(token);
    return is_handed_out;
}

std::size_t Receiver::hand_out_early(pm::Handler handler, std::size_t messages_max) {
    std::size_t handed_out = 0;
    while (!early_.empty() && handed_out < messages_max) {
        Peer& peer = peers_[early_.back()];
        const auto kept = peer.in.inbox.take_early();
        if (!kept) {
            peer.in.has_turn = false;
            early_.pop_back();
            continue;
        }
        const Envelope head = head_of(kept->bytes());
        if (head.asks != 0) peers_.owe_word(peer); // the answer was given before its turn
        ++handed_out;
        pm::Message message(peer.node, kept->bytes().subspan(head_bytes(head.hops)));
        handler(message);
    }
    return handed_out;
}

} // namespace kumi::device::composite
