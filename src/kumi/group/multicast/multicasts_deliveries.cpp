// Deliveries: what this node gets itself, once, and after what the same master sent it before.

#include "kumi/group/multicast/multicasts.hpp"

#include "kumi/base/machine.hpp"
#include "kumi/group/wire/message.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

namespace kumi::group {
namespace {

/// What one member answered, on its way to the master.
std::vector<std::byte> value_of(Use use, Node node, Bytes value) {
    std::vector<std::byte> bytes;
    if (use == Use::gather) append(bytes, bytes_of(ValueHead{node, static_cast<std::uint32_t>(value.size())}));
    append(bytes, value);
    return bytes;
}

bool has_values(Use use) noexcept { return use == Use::gather || use == Use::reduce; }

} // namespace

bool Multicasts::is_delivered(const Source& source, std::uint64_t sequence) const noexcept {
    if (!source.sequences.was_seen(sequence)) return false;
    const auto found = source.deliveries.find(sequence);
    return found == source.deliveries.end() || (found->second.is_ready && found->second.purpose.use == Use::take);
}

/// This node's part of a relay, which has 1 open for it.
void Multicasts::deliver(Relay& relay, const Set& members, const std::vector<Before>& before, Content content) {
    const Name name = relay.name;
    Source& source = sources_[name.master];
    if (source.sequences.was_seen(name.sequence)) {
        if (const auto found = source.deliveries.find(name.sequence); found != source.deliveries.end())
            return found->second.relays.push_back(relay.id);
        if (const auto* const value = source.values.find(name.sequence))
            relay.values.emplace_back(core_.node(), *value);
        // forgotten, or given up
        else if (has_values(relay.purpose.use) || source.sequences.was_missed(name.sequence))
            relay.missing.add(core_.node());
        return close_one(relay);
    }
    source.sequences.add(name.sequence);
    std::vector<std::uint64_t> after;
    for (const Before& other : before)
        if (other.members.contains(core_.node()) && !is_delivered(source, other.sequence))
            after.push_back(other.sequence);
    // What the master does not know to be waiting here, because nobody could tell it, comes first all the same.
    if (const auto behind = source.deliveries.lower_bound(name.sequence); behind != source.deliveries.begin())
        if (const std::uint64_t last = std::prev(behind)->first; !is_delivered(source, last)) after.push_back(last);
    // In most cases it can be handled where it lies. Not while another handler runs, nor in the call that sends it.
    if (after.empty() && relay.purpose.use == Use::handler && ready_.empty() && !is_running_ && !relay.is_masters) {
        const RelayId id = relay.id;
        const Purpose purpose = relay.purpose;
        source.sequences.begin_at(name.sequence);
        return close_delivery(name, purpose, {&id, 1}, run_handler(name, purpose, content.bytes));
    }
    Delivery& delivery = source.deliveries[name.sequence];
    delivery.name = name;
    delivery.purpose = relay.purpose;
    delivery.relays.push_back(relay.id);
    delivery.after = std::move(after);
    if (delivery.purpose.use == Use::take) delivery.members = members;
    const bool stays = content.memory || relay.place; // else it goes with the message
    delivery.content = stays ? std::move(content) : Content::copy_of(content.bytes);
    if (delivery.after.empty()) make_ready(delivery);
}

void Multicasts::make_ready(Delivery& delivery) {
    Source& source = sources_[delivery.name.master];
    delivery.is_ready = true;
    if (delivery.name.sequence < source.sequences.oldest()) { // one that came after it has been delivered
        delivery.is_given_up = true;
        source.sequences.miss(delivery.name.sequence);
    }
    source.sequences.begin_at(delivery.name.sequence);
    (delivery.purpose.use == Use::take && !delivery.is_given_up ? arrivals_ : ready_).push_back(delivery.name);
    if (delivery.purpose.use != Use::take) return;
    // To be taken is as good as taken for those that come after it.
    release_after(source, delivery.name.sequence);
}

/// Nothing waits for that one any more.
void Multicasts::release_after(Source& source, std::uint64_t sequence) {
    for (auto& [number, other] : source.deliveries)
        if (std::erase(other.after, sequence) != 0 && other.after.empty()) make_ready(other);
}

void Multicasts::run_ready(const engine::Turn& turn) {
    while (!ready_.empty() && !is_running_) {
        const Name name = ready_.front();
        ready_.pop_front();
        const Delivery& next = sources_[name.master].deliveries[name.sequence];
        if (next.is_given_up) end_given_up(name);
        else run(turn, name, next.content.bytes); // which has it until then
    }
}

/// Its place in the order is reached.
void Multicasts::end_given_up(const Name& name) {
    Source& source = sources_[name.master];
    const auto relays = std::move(source.deliveries[name.sequence].relays);
    source.deliveries.erase(name.sequence);
    release_after(source, name.sequence);
    for (const RelayId id : relays) {
        Relay* const relay = relays_.find(id);
        if (relay == nullptr) continue;
        relay->missing.add(core_.node());
        close_one(*relay);
    }
}

/// It is this node's turn to have it.
void Multicasts::run(const engine::Turn& turn, const Name& name, Bytes content) {
    const Purpose purpose = sources_[name.master].deliveries[name.sequence].purpose;
    if (purpose.use != Use::handler)
        return core_.calls().run_later(turn, purpose.number, content,
                                       [this, name](Result<std::vector<std::byte>> value) {
                                           const Busy busy(*this);
                                           end_delivery(name, std::move(value));
                                       });
    end_delivery(name, run_handler(name, purpose, content));
}

Result<std::vector<std::byte>> Multicasts::run_handler(const Name& name, const Purpose& purpose, Bytes content) {
    is_running_ = true;
    const auto trouble = core_.run_here(purpose.number, name.master, content);
    is_running_ = false;
    if (trouble) return Error(*trouble);
    return std::vector<std::byte>();
}

/// This node has had it.
void Multicasts::end_delivery(const Name& name, Result<std::vector<std::byte>> value) {
    Source& source = sources_[name.master];
    const auto found = source.deliveries.find(name.sequence);
    if (found == source.deliveries.end()) return; // all is over
    const Delivery ended = std::move(found->second);
    source.deliveries.erase(found);
    close_delivery(name, ended.purpose, ended.relays, std::move(value));
}

/// Those that waited for it go on, and relays have one thing less to wait for.
void Multicasts::close_delivery(const Name& name, const Purpose& purpose, std::span<const RelayId> relays,
                                Result<std::vector<std::byte>> value) {
    Source& source = sources_[name.master];
    release_after(source, name.sequence);
    const bool has_value = value && has_values(purpose.use);
    if (has_value) {
        *value = value_of(purpose.use, core_.node(), *value);
        source.values.put(name.sequence, *value); // for those who ask again, because whom it was answered to is lost
    }
    // Where it came more than once, those whom the others would answer are lost.
    for (const RelayId id : relays) {
        Relay* const relay = relays_.find(id);
        if (relay == nullptr) continue;
        if (!value && relay->trouble.empty())
            relay->trouble =
                fmt::format("{}: {}", core_.name_of(core_.node()), value.error().text()).substr(0, trouble_bytes_max);
        if (has_value) relay->values.emplace_back(core_.node(), *value);
        close_one(*relay);
    }
}

Result<Arrival> Multicasts::next(Instant deadline) {
    if (core_.in_handler()) return error("waiting for a multicast: a handler must not wait");
    std::optional<Arrival> taken;
    Content content;
    const auto take_one = [&] {
        if (taken) return true;
        if (arrivals_.empty()) return false;
        const Name name = arrivals_.front();
        const Delivery& delivery = sources_[name.master].deliveries[name.sequence];
        arrivals_.pop_front();
        content = delivery.content;
        taken = Arrival{name.master, delivery.purpose.tag, {}, delivery.members, name.sequence};
        return true;
    };
    if (!core_.wait_until(take_one, deadline)) return error("no multicast came within the time given");
    // Others may go on meanwhile; the content stays until it is answered.
    const Name name{taken->master, taken->sequence};
    bool has_memory = true;
    try {
        taken->content.assign(content.bytes.begin(), content.bytes.end());
    } catch (const std::bad_alloc&) {
        has_memory = false;
    }
    const auto turn = core_.take_turn();
    const Busy busy(*this);
    if (!has_memory) {
        arrivals_.push_front(name); // it stays
        return error("taking a multicast of {}: no memory for {}", core_.name_of(name.master),
                     base::readable_bytes(content.bytes.size()));
    }
    end_delivery(name, std::vector<std::byte>());
    return *std::move(taken);
}

} // namespace kumi::group
