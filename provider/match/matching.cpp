#include "provider/match/matching.hpp"

#include <algorithm>

namespace kumi::provider {

/// The shape of a receive; a new one knows the messages that wait. Null: there are too many shapes.
Matching::Shape* Matching::shape_of(const Wanted& wanted) {
    const bool names_source = wanted.source != any_source;
    for (Shape& shape : shapes_)
        if (shape.names_source == names_source && shape.ignore == wanted.ignore) return &shape;
    if (shapes_.size() == shapes_max) return nullptr;
    Shape& shape = shapes_.emplace_back(Shape{names_source, wanted.ignore, {}, {}});
    for (Number message = oldest_; message != Bins::none; message = come_[message].next)
        shape.messages.push_back(shape.key(come_[message].envelope.source, come_[message].envelope.tag), message);
    return &shape;
}

std::optional<Matching::Number> Matching::arrive(const Envelope& envelope, Number message) {
    Number best = Bins::none;
    for (const Shape& shape : shapes_) {
        const Number one = shape.receives.front(shape.key(envelope.source, envelope.tag));
        if (one != Bins::none && (best == Bins::none || waiting_[one].age < waiting_[best].age)) best = one;
    }
    const auto odd = std::ranges::find_if(odd_, [&](Number one) { return waiting_[one].wanted.matches(envelope); });
    if (odd != odd_.end() && (best == Bins::none || waiting_[*odd].age < waiting_[best].age)) best = *odd;
    if (best != Bins::none) {
        if (!waiting_[best].stays) remove_receive(best);
        return best;
    }
    if (message >= come_.size()) come_.resize(message + std::size_t{1});
    come_[message] = {envelope, newest_, Bins::none};
    (newest_ == Bins::none ? oldest_ : come_[newest_].next) = message;
    newest_ = message;
    for (Shape& shape : shapes_) shape.messages.push_back(shape.key(envelope.source, envelope.tag), message);
    ++messages_count_;
    return std::nullopt;
}

std::optional<Matching::Number> Matching::post(const Wanted& wanted, Number receive, bool stays) {
    if (const auto message = take(wanted)) return message;
    if (receive >= waiting_.size()) waiting_.resize(receive + std::size_t{1});
    Shape* const shape = shape_of(wanted);
    waiting_[receive] = {wanted, next_age_++, shape, true, stays};
    if (shape == nullptr) odd_.push_back(receive);
    else shape->receives.push_back(shape->key(wanted.source, wanted.tag), receive);
    ++receives_count_;
    return std::nullopt;
}

std::optional<Matching::Number> Matching::peek(const Wanted& wanted) {
    if (messages_count_ == 0) return std::nullopt;
    if (const Shape* const shape = shape_of(wanted)) {
        const Number message = shape->messages.front(shape->key(wanted.source, wanted.tag));
        return message == Bins::none ? std::nullopt : std::optional(message);
    }
    for (Number message = oldest_; message != Bins::none; message = come_[message].next)
        if (wanted.matches(come_[message].envelope)) return message;
    return std::nullopt;
}

std::optional<Matching::Number> Matching::take(const Wanted& wanted) {
    const auto message = peek(wanted);
    if (message) remove_message(*message);
    return message;
}

bool Matching::cancel(Number receive) {
    if (receive >= waiting_.size() || !waiting_[receive].waits) return false;
    remove_receive(receive);
    return true;
}

void Matching::remove_receive(Number receive) {
    Receive& one = waiting_[receive];
    if (one.shape == nullptr) odd_.erase(std::ranges::find(odd_, receive));
    else one.shape->receives.remove(one.shape->key(one.wanted.source, one.wanted.tag), receive);
    one.waits = false;
    --receives_count_;
}

void Matching::remove_message(Number message) {
    const Message one = come_[message];
    (one.before == Bins::none ? oldest_ : come_[one.before].next) = one.next;
    (one.next == Bins::none ? newest_ : come_[one.next].before) = one.before;
    for (Shape& shape : shapes_) shape.messages.remove(shape.key(one.envelope.source, one.envelope.tag), message);
    --messages_count_;
}

} // namespace kumi::provider
