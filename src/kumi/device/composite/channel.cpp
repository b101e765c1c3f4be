#include "kumi/device/composite/channel.hpp"

#include "kumi/base/assert.hpp"
#include "kumi/base/log.hpp"

#include <algorithm>
#include <limits>

namespace kumi::device::composite {
namespace {

using namespace std::chrono_literals;

/// A part that cannot be slept on together with others is looked at this often.
constexpr Duration look_after = 1ms;
/// How long a channel that closes waits for what it sent to arrive.
constexpr Duration linger_max = 60s;

/// What is true of all parts together: the least that each of them takes, and the best that any of them offers.
void join_traits(pm::Traits& all, const pm::Traits& one) noexcept {
    all.message_bytes_max = std::min(all.message_bytes_max, one.message_bytes_max);
    all.bytes_per_peer_max = std::max(all.bytes_per_peer_max, one.bytes_per_peer_max);
    all.latency_class_ns = std::min(all.latency_class_ns, one.latency_class_ns);
    all.bandwidth_class_mb = std::max(all.bandwidth_class_mb, one.bandwidth_class_mb);
    all.polls_memory = all.polls_memory && one.polls_memory;
}

} // namespace

CompositeChannel::CompositeChannel(Node self, std::vector<Part> parts,
                                   const std::vector<std::vector<ChosenWay>>& ways_to,
                                   std::unique_ptr<SleepSet> sleep, Options options)
    : self_(self), sleep_(std::move(sleep)), routes_(ways_to.size()) {
    KUMI_ASSERT(parts.size() <= parts_max);
    traits_ = {.device = "composite",
               .message_bytes_max = std::numeric_limits<std::size_t>::max(),
               .bytes_per_peer_max = 0,
               .latency_class_ns = std::numeric_limits<std::uint32_t>::max(),
               .bandwidth_class_mb = 0,
               .polls_memory = true};
    std::vector<Link> links;
    ports_.reserve(parts.size());
    for (Part& part : parts) {
        Port& port = ports_.emplace_back(Port{.part = std::move(part)});
        pm::Channel& channel = *port.part.channel;
        pm::Traits traits = channel.traits();
        port.sleep = channel.joint_sleep();
        port.pace = PollPace(traits.polls_memory);
        if (channel.ways() != nullptr) {
            port.network = static_cast<std::uint32_t>(links.size());
            port.ways = channel.ways();
            network_ports_.push_back(&port);
            traits.message_bytes_max -= head_bytes_max;
            links.push_back({&channel, channel.ways(), port.part.network, port.part.name});
        }
        if (channel.remote_memory() != nullptr && !host_memory_) host_memory_.emplace(port.part, nodes());
        join_traits(traits_, traits);
    }
    std::vector<std::vector<PlannedWay>> planned(ways_to.size());
    for (Node to = 0; to < nodes(); ++to) add_route(to, ways_to[to], planned[to]);
    if (!links.empty()) open_networks(std::move(links), planned, std::move(options));
}

void CompositeChannel::add_route(Node to, const std::vector<ChosenWay>& ways, std::vector<PlannedWay>& planned) {
    for (const ChosenWay& way : ways) {
        if (way.is_relayed) {
            planned.push_back({.is_relayed = true, .path = way.path});
            continue;
        }
        Port& port = ports_[way.part];
        const std::vector<Node>& members = port.part.members;
        const auto member = std::find(members.begin(), members.end(), to);
        KUMI_ASSERT(member != members.end());
        const auto number = static_cast<Node>(member - members.begin());
        if (port.network && to != self_) {
            planned.push_back({.link = *port.network, .number = number, .is_silent = way.is_silent});
        } else if (planned.empty()) { // a part that cannot fail needs no others
            routes_[to] = {&port, number};
            return;
        }
    }
}

void CompositeChannel::open_networks(std::vector<Link> links,
                                     const std::vector<std::vector<PlannedWay>>& planned, Options options) {
    networks_.emplace(self_, std::move(links), planned, options.stripes);
    networks_->set_served(options.served);
    networks_->set_names(std::move(options.names));
    networks_->set_silence(options.silence_max);
    auto interfaces = InterfaceWatch::open();
    if (!interfaces)
        return base::log_warning("{}; a network that fails is noticed later", interfaces.error().text());
    interfaces_.emplace(*std::move(interfaces));
    sleep_->watch_interfaces(interfaces_->descriptor());
}

CompositeChannel::~CompositeChannel() {
    if (networks_) linger();
}

void CompositeChannel::linger() noexcept {
    const auto forget = [](pm::Message&) {};
    const Instant deadline = now() + linger_max;
    flush();
    // Nodes of this host see at once that this node takes no more messages, however long it stays for others.
    host_memory_.reset();
    for (Port& port : ports_)
        if (!port.network) close_part(port);
    networks_->begin_close();
    const auto poll_networks = [&] {
        std::size_t handled = 0;
        for (Port* const port : network_ports_) handled += poll_network(*port, forget, pm::all_messages);
        return handled;
    };
    while (networks_->is_relaying() || (!networks_->have_all_arrived() && now() < deadline))
        if (poll_networks() == 0 && arm()) sleep(now() + Networks::tick_time);
    networks_->give_up_unused();
}

void CompositeChannel::close_part(Port& port) noexcept {
    sleep_->watch(port.watched, pm::Watched{});
    port.sleep = nullptr;
    port.part.channel.reset();
}

// ---- sending

inline void CompositeChannel::after_network_send(Node to) noexcept {
    const int link = networks_->link_to(to);
    if (link >= 0) network_ports_[static_cast<std::size_t>(link)]->pace.expect_arrivals();
}

pm::SendSlot CompositeChannel::try_reserve(Node to, std::size_t bytes) noexcept {
    KUMI_ASSERT(to < routes_.size());
    Route& route = routes_[to];
    if (route.port == nullptr) {
        const pm::SendSlot slot = networks_->try_reserve(to, bytes);
        if (is_slept_on_) tell_sleeper();
        return slot;
    }
    if (route.reserved) return route.missed = true, pm::SendSlot{};
    const pm::SendSlot slot = route.port->part.channel->try_reserve(route.number, bytes);
    if (!slot) return {};
    route.reserved = true;
    return {to, slot.bytes(), slot.token()};
}

/// Ends a reservation with a part that cannot fail. A sender that was refused because of it may be asleep: that sleep
/// ends.
template <class End>
inline void CompositeChannel::give_back(const pm::SendSlot& slot, End&& end) noexcept {
    Route& route = routes_[slot.to()];
    end(*route.port->part.channel, pm::SendSlot{route.number, slot.bytes(), slot.token()});
    route.reserved = false;
    if (std::exchange(route.missed, false)) wake();
}

void CompositeChannel::commit(const pm::SendSlot& slot) noexcept {
    if (Port* const port = routes_[slot.to()].port; port != nullptr) {
        give_back(slot, [](pm::Channel& channel, const pm::SendSlot& own) { channel.commit(own); });
        return port->pace.expect_arrivals();
    }
    const bool missed = networks_->commit(slot);
    after_network_send(slot.to());
    if (is_slept_on_) tell_sleeper();
    if (missed) wake();
}

void CompositeChannel::cancel(const pm::SendSlot& slot) noexcept {
    if (routes_[slot.to()].port != nullptr)
        return give_back(slot, [](pm::Channel& channel, const pm::SendSlot& own) { channel.cancel(own); });
    const bool missed = networks_->cancel(slot);
    if (is_slept_on_) tell_sleeper();
    if (missed) wake();
}

bool CompositeChannel::try_send(Node to, Bytes bytes) noexcept { return try_send_pieces(to, bytes); }
bool CompositeChannel::try_send(Node to, Bytes head, Bytes body) noexcept { return try_send_pieces(to, head, body); }

template <class... Pieces>
inline bool CompositeChannel::try_send_pieces(Node to, const Pieces&... pieces) noexcept {
    KUMI_ASSERT(to < routes_.size());
    Route& route = routes_[to];
    if (route.port == nullptr) {
        const bool is_sent = networks_->try_send(to, pieces...);
        if (is_sent) after_network_send(to);
        if (is_slept_on_) tell_sleeper();
        return is_sent;
    }
    if (route.reserved) return route.missed = true, false;
    if (!route.port->part.channel->try_send(route.number, pieces...)) return false;
    route.port->pace.expect_arrivals();
    return true;
}

void CompositeChannel::flush() noexcept {
    for (Port& port : ports_) port.part.channel->flush();
}

// ---- receiving

std::size_t CompositeChannel::poll(pm::Handler handler, std::size_t messages_max) noexcept {
    if (std::exchange(is_polling_, true)) return 0; // from a handler
    const std::size_t handled = poll_ports(handler, messages_max);
    is_polling_ = false;
    if (is_slept_on_) tell_sleeper();
    return handled;
}

inline std::size_t CompositeChannel::poll_ports(pm::Handler handler, std::size_t messages_max) noexcept {
    std::size_t handled = 0;
    std::size_t next = first_port_;
    for (std::size_t i = 0; i < ports_.size(); ++i) {
        Port& port = ports_[next];
        if (++next == ports_.size()) next = 0;
        if (!port.pace.is_due(now)) continue;
        const std::size_t got = poll_port(port, handler, messages_max - handled);
        handled += got;
        port.pace.on_poll(got == 0, now);
        if (handled >= messages_max) [[unlikely]] {
            first_port_ = next; // for the next poll
            break;
        }
    }
    return handled;
}

inline std::size_t CompositeChannel::poll_port(Port& port, pm::Handler handler, std::size_t messages_max) noexcept {
    if (port.network) return poll_network(port, handler, messages_max);
    const auto hand_out = [&](pm::Message& message) {
        pm::Message known(message, port.part.members[message.source()]);
        handler(known);
        if (known.was_kept()) message.note_kept();
    };
    return port.part.channel->poll(hand_out, messages_max);
}

std::size_t CompositeChannel::poll_network(Port& port, pm::Handler handler, std::size_t messages_max) noexcept {
    const Instant time = now();
    std::size_t handed_out = networks_->has_early() ? networks_->hand_out_early(handler, messages_max) : 0;
    if (handed_out == messages_max) return handed_out;
    const auto hand_out = [&](pm::Message& message) {
        if (message.source() != port.part.channel->self()) {
            handed_out += networks_->on_message(*port.network, message, handler, time) ? 1 : 0;
            return;
        }
        pm::Message known(message, self_);
        handler(known);
        if (known.was_kept()) message.note_kept();
        ++handed_out;
    };
    port.part.channel->poll(hand_out, messages_max - handed_out);
    if (const std::uint64_t losses = port.ways->losses(); losses != port.losses) [[unlikely]] {
        port.losses = losses;
        networks_->on_losses(time);
    }
    networks_->go_on(time);
    if (time - watched_ >= Networks::tick_time) [[unlikely]] {
        watch_networks(time);
        if (!std::exchange(has_slept_, false)) stop_watching();
    }
    return handed_out;
}

void CompositeChannel::watch_networks(Instant time) noexcept {
    watched_ = time;
    if (interfaces_ && interfaces_->has_changed()) networks_->on_interfaces_changed(time);
    else networks_->on_time(time);
}

// ---- sleeping

/// Arms all parts, or none.
bool CompositeChannel::arm() noexcept {
    std::size_t armed = 0;
    while (armed < ports_.size() && (ports_[armed].is_closed() || ports_[armed].part.channel->arm())) ++armed;
    const bool all = armed == ports_.size() && !(networks_ && networks_->has_something_to_do());
    for (std::size_t i = 0; !all && i < armed; ++i)
        if (ports_[i].sleep != nullptr) ports_[i].sleep->end_sleep();
    return all;
}

void CompositeChannel::sleep(Instant deadline) noexcept {
    pm::block(begin_sleep(), deadline);
    end_sleep();
}

pm::Watched CompositeChannel::begin_sleep() noexcept {
    sleep_->begin();
    sleep_deadline_ = networks_ ? networks_->next_tick() : never;
    for (Port& port : ports_) {
        if (port.is_closed()) [[unlikely]] continue;
        const pm::Watched what = port.sleep != nullptr ? port.sleep->begin_sleep() : pm::Watched{};
        // A word cannot be watched together with descriptors.
        const bool is_watched = port.sleep != nullptr && what.word == nullptr && sleep_->watch(port.watched, what);
        sleep_deadline_ = std::min(sleep_deadline_, is_watched ? what.deadline : now() + look_after);
    }
    if (sleep_->was_woken()) sleep_deadline_ = Instant::min();
    is_slept_on_ = has_slept_ = true;
    return {.descriptor = sleep_->descriptor(), .deadline = sleep_deadline_};
}

/// For a node that polls and does not sleep. While a descriptor is in the set that the node sleeps on, each packet that
/// arrives there costs the kernel some 100 ns more. The next sleep watches the descriptors again.
void CompositeChannel::stop_watching() noexcept {
    if (is_slept_on_) return;
    for (Port& port : ports_) sleep_->watch(port.watched, pm::Watched{});
}

void CompositeChannel::end_sleep() noexcept {
    is_slept_on_ = false;
    const bool have_interfaces_changed = sleep_->end();
    if (networks_) {
        const Instant time = now();
        if (have_interfaces_changed || time >= networks_->next_tick()) watch_networks(time);
    }
    for (Port& port : ports_) {
        port.pace.expect_arrivals(); // what ended the sleep is looked for
        if (port.sleep != nullptr) port.sleep->end_sleep();
    }
}

/// Ends the sleep that goes on if another thread, which has used the networks, made it last too long: they may have to
/// be told the time sooner, or have something to do. The parts end the sleep themselves.
void CompositeChannel::tell_sleeper() noexcept {
    if (is_polling_ || !networks_) return;
    if (networks_->next_tick() >= sleep_deadline_ && !networks_->has_something_to_do()) return;
    is_slept_on_ = false;
    sleep_->end_early();
}

// ---- state

bool CompositeChannel::lost(Node node) const noexcept {
    const Route& route = routes_[node];
    return route.port == nullptr ? networks_->lost(node) : route.port->part.channel->lost(route.number);
}

pm::Traffic CompositeChannel::sent(Node to) const noexcept {
    const Route& route = routes_[to];
    return route.port == nullptr ? networks_->sent(to) : route.port->part.channel->sent(route.number);
}

std::string_view CompositeChannel::carrier(Node to) const noexcept {
    const Route& route = routes_[to];
    if (route.port == nullptr) return networks_->carrier(to);
    const Part& part = route.port->part;
    return part.name.empty() ? part.channel->carrier(route.number) : std::string_view(part.name);
}

std::vector<pm::Counter> CompositeChannel::counters() const {
    const NetworkCounters counted = networks_ ? networks_->counters() : NetworkCounters{};
    return {{"failovers", counted.failovers},   {"returns", counted.returns},     {"resent", counted.resent},
            {"duplicates", counted.duplicates}, {"early", counted.early},         {"passed_on", counted.passed_on},
            {"not_passed_on", counted.not_passed_on}, {"striped", counted.striped},     {"unsound", counted.unsound}};
}

} // namespace kumi::device::composite
