#include "kumi/group/multicast/deliveries.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace kumi::group {
namespace {

bool has_values(Use use) noexcept { return use == Use::gather || use == Use::reduce; }
/// It is over when the call of Multicasts::run_handler() returns. Others end when the program takes them, or when a
/// function has answered.
bool is_short(Use use) noexcept { return use == Use::handler || use == Use::store; }

} // namespace

const Deliveries::Master* Deliveries::find(Node master) const noexcept {
    const auto found = masters_.find(master);
    return found == masters_.end() ? nullptr : &found->second;
}

bool Deliveries::has_room(Node master) const noexcept {
    const Master* const known = find(master);
    return known == nullptr || known->deliveries.size() < of_one_master_max;
}

bool Deliveries::was_seen(const Name& name) const noexcept {
    const Master* const master = find(name.master);
    return master != nullptr && master->sequences.was_seen(name.sequence);
}

bool Deliveries::was_missed(const Name& name) const noexcept {
    const Master* const master = find(name.master);
    return master != nullptr && master->sequences.was_missed(name.sequence);
}

/// What is to be taken is as good as taken for those that come after it. A function that is in line to run does not
/// keep them waiting either: it may itself wait for them.
bool Deliveries::is_delivered(const Master& master, std::uint64_t sequence) noexcept {
    if (!master.sequences.was_seen(sequence)) return false;
    const auto found = master.deliveries.find(sequence);
    return found == master.deliveries.end() || (found->second.is_ready && !is_short(found->second.purpose.use));
}

Deliveries::Admission Deliveries::admit(const Arrived& arrived, Content& content) {
    const std::uint64_t sequence = arrived.name.sequence;
    Master& master = masters_[arrived.name.master];
    master.quiet_looks = 0;
    if (master.sequences.was_seen(sequence)) {
        if (const auto found = master.deliveries.find(sequence); found != master.deliveries.end()) {
            found->second.relays.push_back(arrived.relay);
            return {Next::waits};
        }
        if (const auto* const value = master.values.find(sequence)) return {Next::is_over, value};
        // values may be forgotten
        return {Next::is_over, nullptr, has_values(arrived.purpose.use) || master.sequences.was_missed(sequence)};
    }
    master.sequences.add(sequence);
    std::vector<std::uint64_t> after;
    for (const Before& other : arrived.before)
        if (other.members.contains(self_) && !is_delivered(master, other.sequence)) after.push_back(other.sequence);
    if (const std::uint64_t last = awaited_before(master, sequence); last != 0) after.push_back(last);
    // In most cases it can be handled where it lies.
    if (after.empty() && is_short(arrived.purpose.use) && ready_.empty() && arrived.may_run_now) {
        master.sequences.begin_at(sequence);
        return {Next::run_now};
    }
    Delivery& delivery = add(master, arrived.name);
    delivery.purpose = arrived.purpose;
    delivery.relays.push_back(arrived.relay);
    delivery.after = std::move(after);
    if (delivery.purpose.use == Use::take) delivery.members = arrived.members;
    delivery.content = arrived.is_lasting ? std::move(content) : Content::copy_of(content.bytes);
    if (delivery.after.empty()) make_ready(master, delivery);
    return {Next::waits};
}

bool Deliveries::try_run_now(const Name& name, const Purpose& purpose) {
    Master& master = masters_[name.master];
    if (!is_short(purpose.use) || !ready_.empty() || master.sequences.was_seen(name.sequence)) return false;
    if (awaited_before(master, name.sequence) != 0) return false;
    master.quiet_looks = 0;
    master.sequences.add(name.sequence);
    master.sequences.begin_at(name.sequence);
    return true;
}

/// Returns the sequence of the last delivery before `sequence` if that delivery still waits here, and 0 otherwise. The
/// master may not have named it, because no answer could reach the master.
std::uint64_t Deliveries::awaited_before(const Master& master, std::uint64_t sequence) noexcept {
    const auto behind = master.deliveries.lower_bound(sequence);
    if (behind == master.deliveries.begin()) return 0;
    const std::uint64_t last = std::prev(behind)->first;
    return is_delivered(master, last) ? 0 : last;
}

/// Adds a delivery, in the memory of the last delivery that ended if there is one.
Delivery& Deliveries::add(Master& master, const Name& name) {
    if (ended_.empty()) {
        Delivery& added = master.deliveries[name.sequence];
        added.name = name;
        return added;
    }
    Delivery& again = ended_.mapped();
    again.name = name;
    again.after.clear();
    again.relays.clear();
    again.is_ready = again.is_given_up = false;
    ended_.key() = name.sequence;
    master.deliveries.insert(std::move(ended_));
    return again;
}

void Deliveries::make_ready(Master& master, Delivery& delivery) {
    delivery.is_ready = true;
    if (delivery.name.sequence < master.sequences.oldest()) { // one that came after it has been delivered
        delivery.is_given_up = true;
        master.sequences.miss(delivery.name.sequence);
    }
    master.sequences.begin_at(delivery.name.sequence);
    (delivery.purpose.use == Use::take && !delivery.is_given_up ? arrivals_ : ready_).push_back(delivery.name);
    if (!is_short(delivery.purpose.use)) release_after(master, delivery.name.sequence); // behind it in ready_
}

void Deliveries::release_after(Master& master, std::uint64_t sequence) {
    for (auto& [number, other] : master.deliveries)
        if (std::erase(other.after, sequence) != 0 && other.after.empty()) make_ready(master, other);
}

const Delivery* Deliveries::pop(std::deque<Name>& names) {
    if (names.empty()) return nullptr;
    const Name name = names.front();
    names.pop_front();
    return &masters_[name.master].deliveries[name.sequence];
}

const Delivery* Deliveries::next_ready() { return pop(ready_); }

const Delivery* Deliveries::next_arrival() { return pop(arrivals_); }

const Delivery* Deliveries::end(const Name& name) {
    Master& master = masters_[name.master];
    const auto found = master.deliveries.find(name.sequence);
    if (found == master.deliveries.end()) return nullptr;
    ended_ = master.deliveries.extract(found);
    ended_.mapped().content = {};
    ended_.mapped().members = {};
    release_after(master, name.sequence);
    return &ended_.mapped();
}

void Deliveries::keep_value(const Name& name, const std::vector<std::byte>& value) {
    masters_[name.master].values.put(name.sequence, value);
}

void Deliveries::give_up(const Name& name, std::uint64_t before) {
    Master& master = masters_[name.master];
    if (master.deliveries.contains(name.sequence)) return;
    if (!master.sequences.was_seen(name.sequence)) {
        master.sequences.add(name.sequence);
        master.sequences.miss(name.sequence);
    }
    const bool has_room = master.deliveries.size() < of_one_master_max;
    if (before == 0 || is_delivered(master, before) || !has_room) return release_after(master, name.sequence);
    Delivery& place = add(master, name);
    place.purpose.use = Use::take; // as good as taken when it is ready
    place.after.push_back(before);
    place.is_given_up = true;
}

void Deliveries::add_awaited(Set& masters) const {
    for (const auto& [master, of] : masters_)
        if (std::ranges::any_of(of.deliveries, [](const auto& delivery) { return !delivery.second.after.empty(); }))
            masters.add(master);
}

void Deliveries::add_absent(Node master, std::set<std::uint64_t>& sequences) const {
    const Master* const known = find(master);
    if (known == nullptr) return;
    for (const auto& [sequence, delivery] : known->deliveries)
        for (const std::uint64_t other : delivery.after)
            if (!known->sequences.was_seen(other)) sequences.insert(other);
}

std::uint64_t Deliveries::last_before(const Name& name) const noexcept {
    const Master* const master = find(name.master);
    if (master == nullptr) return 0;
    const auto behind = master->deliveries.lower_bound(name.sequence);
    return behind == master->deliveries.begin() ? 0 : std::prev(behind)->first;
}

std::size_t Deliveries::size() const noexcept {
    std::size_t count = 0;
    for (const auto& [master, of] : masters_) count += of.deliveries.size();
    return count;
}

} // namespace kumi::group
