#include "kumi/device/composite/channel.hpp"

#include "kumi/base/assert.hpp"
#include "kumi/base/log.hpp"
#include "kumi/base/thread_mark.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <poll.h>
#include <thread>

namespace kumi::device::composite {
namespace {

using namespace std::chrono_literals;

/// A link that costs a system call, and brought nothing in so many polls, is polled only every so often.
constexpr unsigned quiet_polls = 128;
constexpr Duration quiet_time = 10us;
/// The clock is looked at after so many polls; if they took longer than this, whoever polls does other things in
/// between, and it does not matter what a poll costs.
constexpr unsigned polls_per_look = 16;
constexpr Duration slow_polls_time = 20us;
/// A channel that cannot be slept on together with others is looked at this often.
constexpr Duration look_after = 1ms;
/// How long a channel that closes waits for what it sent to arrive.
constexpr Duration linger_max = 60s;
/// The longest sleep where there are several threads.
constexpr Duration shared_sleep_max = 1ms;

// Marks of what is slept on.
constexpr unsigned mark_call = 1;
constexpr unsigned mark_interfaces = 2;
constexpr unsigned mark_link = 4;

} // namespace

/// While a thread is in one of the channel's functions.
class CompositeChannel::Call {
public:
    explicit Call(const CompositeChannel& channel) noexcept
        : channel_(channel), is_first_(!channel.is_serialized_ && channel.enter()) {}
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call() {
        if (is_first_) channel_.bias_.unlock_as_owner_once();
    }

    /// No locks are needed: others wait until it is over.
    bool is_alone() const noexcept { return is_first_ || channel_.is_serialized_; }

private:
    const CompositeChannel& channel_;
    bool is_first_; // the first thread, and the only one
};

/// The right to use a link for sending: because this thread is alone, or polls it right now and has its lock; or else
/// by the lock.
class CompositeChannel::Sending {
public:
    explicit Sending(Guard& guard, bool is_alone = false) noexcept
        // Relaxed: only this thread writes its own mark.
        : lock_(guard.lock), locks_(!is_alone && guard.poller.load(std::memory_order_relaxed) != base::thread_mark()) {
        if (locks_) lock_.lock();
    }
    Sending(const Sending&) = delete;
    Sending& operator=(const Sending&) = delete;
    ~Sending() {
        if (locks_) lock_.unlock();
    }

private:
    SpinLock& lock_;
    bool locks_;
};

CompositeChannel::CompositeChannel(Node self, std::vector<Part> parts, const std::vector<std::vector<Way>>& ways_to,
                                   std::unique_ptr<WakeSocket> wakes, const StripeOptions& stripes,
                                   std::optional<DescriptorSet> sleep_set)
    : self_(self), is_serialized_(sleep_set.has_value()), wakes_(std::move(wakes)),
      link_memory_(std::make_unique<Link[]>(parts.size())), links_(link_memory_.get(), parts.size()),
      routes_(ways_to.size()), networks_(self, {}, std::vector<std::vector<PlannedWay>>(ways_to.size())),
      sleep_set_(std::move(sleep_set)) {
    KUMI_ASSERT(parts.size() <= parts_max);
    traits_ = {.device = "composite",
               .message_bytes_max = std::numeric_limits<std::size_t>::max(),
               .bytes_per_peer_max = 0,
               .latency_class_ns = std::numeric_limits<std::uint32_t>::max(),
               .bandwidth_class_mb = 0,
               .polls_memory = true};
    std::vector<NetworkLink> networks;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        Link& link = links_[i];
        link.part = std::move(parts[i]);
        pm::Channel& channel = *link.part.channel;
        pm::Traits traits = channel.traits();
        link.sleep = channel.joint_sleep();
        link.is_apart = traits.sends_apart;
        link.is_light = traits.polls_memory;
        if (channel.ways() != nullptr) {
            link.network = static_cast<std::uint32_t>(networks.size());
            network_links_.push_back(&link);
            link.guard = &networks_guard_;
            link.is_apart = false;
            traits.message_bytes_max -= head_bytes_max;
            networks.push_back({&channel, channel.ways(), link.part.network, link.part.name});
        }
        if (channel.remote_memory() != nullptr && !host_memory_)
            host_memory_.emplace(link.part, static_cast<Node>(ways_to.size()));
        traits_.message_bytes_max = std::min(traits_.message_bytes_max, traits.message_bytes_max);
        traits_.bytes_per_peer_max = std::max(traits_.bytes_per_peer_max, traits.bytes_per_peer_max);
        traits_.latency_class_ns = std::min(traits_.latency_class_ns, traits.latency_class_ns);
        traits_.bandwidth_class_mb = std::max(traits_.bandwidth_class_mb, traits.bandwidth_class_mb);
        traits_.polls_memory = traits_.polls_memory && traits.polls_memory;
    }
    if (!base::register_for_heavy_fence()) bias_.disable();
    std::vector<std::vector<PlannedWay>> planned(ways_to.size());
    for (Node to = 0; to < routes_.size(); ++to)
        for (const Way& way : ways_to[to]) {
            if (way.is_relayed) {
                planned[to].push_back({.is_relayed = true, .path = way.path});
                continue;
            }
            Link& link = links_[way.part];
            const auto place = std::find(link.part.members.begin(), link.part.members.end(), to);
            KUMI_ASSERT(place != link.part.members.end());
            const auto number = static_cast<Node>(place - link.part.members.begin());
            if (link.network && to != self) {
                planned[to].push_back({.link = *link.network, .number = number, .is_silent = way.is_silent});
            } else if (planned[to].empty()) { // what cannot fail needs no others
                routes_[to] = {&link, number};
                break;
            }
        }
    if (networks.empty()) return;
    networks_ = Networks(self, std::move(networks), planned, stripes);
    auto interfaces = InterfaceWatch::open();
    if (interfaces) interfaces_.emplace(*std::move(interfaces));
    else base::log_warning("{}; a network that fails is noticed later", interfaces.error().text());
    DescriptorSet::Place place; // for good
    if (sleep_set_ && interfaces_) sleep_set_->watch(place, {.descriptor = interfaces_->descriptor()}, mark_interfaces);
}

Result<std::optional<DescriptorSet>> CompositeChannel::open_sleep_set(bool is_serialized, const WakeSocket& wakes) {
    if (!is_serialized) return std::optional<DescriptorSet>{};
    auto set = DescriptorSet::open();
    if (!set) return set.error();
    DescriptorSet::Place place; // for good
    if (!set->watch(place, {.descriptor = wakes.descriptor()}, mark_call))
        return system_error(errno, "watching a socket (epoll)");
    return std::optional(*std::move(set));
}

CompositeChannel::~CompositeChannel() {
    if (!networks_.empty()) linger();
}

void CompositeChannel::linger() noexcept {
    const auto forget = [](pm::Message&) {};
    const Instant deadline = now() + linger_max;
    flush();
    networks_.begin_close();
    while (networks_.is_relaying() || (!networks_.have_all_arrived() && now() < deadline))
        if (poll(forget, pm::all_messages) == 0 && arm()) sleep(now() + Networks::tick_time);
    networks_.give_up_unused();
}

// ---- sending

inline void CompositeChannel::after_send(Link& link) noexcept {
    if (link.is_light) return;
    // an answer may come
    if (link.quiet.load(std::memory_order_relaxed) != 0) link.quiet.store(0, std::memory_order_relaxed);
}

/// With the networks' lock.
inline void CompositeChannel::after_network_send(Node to) noexcept {
    const int link = networks_.link_to(to);
    if (link >= 0) after_send(*network_links_[static_cast<std::size_t>(link)]);
}

pm::SendSlot CompositeChannel::try_reserve(Node to, std::size_t bytes) noexcept {
    KUMI_ASSERT(to < routes_.size());
    const Call call(*this);
    Route& route = routes_[to];
    if (route.link == nullptr) {
        const Sending sending(networks_guard_, call.is_alone());
        const pm::SendSlot slot = networks_.try_reserve(to, bytes);
        if (is_slept_on_) tell_sleeper();
        return slot;
    }
    const Sending sending(*route.link->guard, call.is_alone());
    if (route.reserved) return route.missed = true, pm::SendSlot{};
    const pm::SendSlot slot = route.link->part.channel->try_reserve(route.number, bytes);
    if (!slot) return {};
    route.reserved = true;
    return {to, slot.bytes(), slot.token()};
}

/// Ends a reservation, one way or the other.
template <class End>
inline void CompositeChannel::give_back(const pm::SendSlot& slot, End&& end) noexcept {
    const Call call(*this);
    Route& route = routes_[slot.to()];
    bool missed = false;
    {
        const Sending sending(*route.link->guard, call.is_alone());
        end(*route.link->part.channel, pm::SendSlot{route.number, slot.bytes(), slot.token()});
        route.reserved = false;
        missed = std::exchange(route.missed, false);
    }
    if (missed) wake();
}

template <class End>
inline void CompositeChannel::give_back_to_networks(End&& end) noexcept {
    const Call call(*this);
    bool missed = false;
    {
        const Sending sending(networks_guard_, call.is_alone());
        missed = end(networks_);
        if (is_slept_on_) tell_sleeper();
    }
    if (missed) wake();
}

void CompositeChannel::commit(const pm::SendSlot& slot) noexcept {
    if (routes_[slot.to()].link == nullptr) return give_back_to_networks([&](Networks& networks) {
        const bool missed = networks.commit(slot);
        after_network_send(slot.to());
        return missed;
    });
    give_back(slot, [](pm::Channel& channel, const pm::SendSlot& own) { channel.commit(own); });
    after_send(*routes_[slot.to()].link);
}

void CompositeChannel::cancel(const pm::SendSlot& slot) noexcept {
    if (routes_[slot.to()].link == nullptr)
        return give_back_to_networks([&](Networks& networks) { return networks.cancel(slot); });
    give_back(slot, [](pm::Channel& channel, const pm::SendSlot& own) { channel.cancel(own); });
}

bool CompositeChannel::try_send(Node to, Bytes bytes) noexcept { return try_send_pieces(to, bytes); }
bool CompositeChannel::try_send(Node to, Bytes head, Bytes body) noexcept { return try_send_pieces(to, head, body); }

template <class... Pieces>
inline bool CompositeChannel::try_send_pieces(Node to, const Pieces&... pieces) noexcept {
    KUMI_ASSERT(to < routes_.size());
    const Call call(*this);
    Route& route = routes_[to];
    if (route.link == nullptr) {
        const Sending sending(networks_guard_, call.is_alone());
        const bool is_sent = networks_.try_send(to, pieces...);
        if (is_sent) after_network_send(to);
        if (is_slept_on_) tell_sleeper();
        return is_sent;
    }
    {
        const Sending sending(*route.link->guard, call.is_alone());
        if (route.reserved) return route.missed = true, false;
        if (!route.link->part.channel->try_send(route.number, pieces...)) return false;
    }
    after_send(*route.link);
    return true;
}

void CompositeChannel::flush() noexcept {
    const Call call(*this);
    for (Link& link : links_) {
        const Sending sending(*link.guard, call.is_alone());
        link.part.channel->flush();
    }
}

// ---- receiving

/// A link that costs a system call and has been quiet is not asked every time: those who wait for memory would wait for
/// it too.
inline bool CompositeChannel::is_due(Link& link) noexcept {
    if (link.is_light || link.quiet.load(std::memory_order_relaxed) < quiet_polls) return true;
    if (++link.passed_over < polls_per_look) return false;
    link.passed_over = 0;
    const Instant time = now();
    const bool are_slow = time - std::exchange(link.thought_of, time) > slow_polls_time;
    if (are_slow) link.quiet.store(0, std::memory_order_relaxed);
    else if (time - link.polled < quiet_time) return false;
    link.polled = time;
    return true;
}

inline void CompositeChannel::note_quiet(Link& link, bool is_quiet) noexcept {
    const unsigned quiet = is_quiet ? link.quiet.load(std::memory_order_relaxed) + 1 : 0;
    link.quiet.store(quiet, std::memory_order_relaxed);
    if (quiet == quiet_polls) link.thought_of = link.polled = now();
}

std::size_t CompositeChannel::poll(pm::Handler handler, std::size_t messages_max) noexcept {
    if (is_serialized_) {
        if (std::exchange(is_polling_, true)) return 0; // from a handler
        const std::size_t handled = poll_links(handler, messages_max, true);
        is_polling_ = false;
        if (is_slept_on_) tell_sleeper();
        return handled;
    }
    const Call call(*this);
    // Relaxed: only this thread writes its own mark.
    if (receiver_.load(std::memory_order_relaxed) == base::thread_mark()) return 0; // from a handler
    if (!call.is_alone() && !receiving_.try_lock()) return 0;
    receiver_.store(base::thread_mark(), std::memory_order_relaxed);
    const std::size_t handled = poll_links(handler, messages_max, call.is_alone());
    receiver_.store(nullptr, std::memory_order_relaxed);
    if (!call.is_alone()) receiving_.unlock();
    return handled;
}

inline std::size_t CompositeChannel::poll_links(pm::Handler handler, std::size_t messages_max, bool is_alone) noexcept {
    std::size_t handled = 0;
    std::size_t next = first_link_;
    for (std::size_t i = 0; i < links_.size(); ++i) {
        Link& link = links_[next];
        if (++next == links_.size()) next = 0;
        if (!is_due(link)) continue;
        const std::size_t got = poll_link(link, handler, messages_max - handled, is_alone);
        handled += got;
        if (!link.is_light) note_quiet(link, got == 0);
        if (handled >= messages_max) [[unlikely]] {
            first_link_ = next; // for the next poll
            break;
        }
    }
    return handled;
}

inline std::size_t CompositeChannel::poll_link(Link& link, pm::Handler handler, std::size_t messages_max,
                                               bool is_alone) noexcept {
    const auto hand_out = [&](pm::Message& message) {
        pm::Message known(message, link.part.members[message.source()]);
        handler(known);
        if (known.was_kept()) message.note_kept();
    };
    const auto poll = [&] {
        return link.network ? poll_network(link, handler, messages_max)
                            : link.part.channel->poll(hand_out, messages_max);
    };
    if (is_alone || link.is_apart) return poll();
    link.guard->lock.lock();
    // only this thread compares it with its own mark
    link.guard->poller.store(base::thread_mark(), std::memory_order_relaxed);
    const std::size_t handled = poll();
    link.guard->poller.store(nullptr, std::memory_order_relaxed);
    link.guard->lock.unlock();
    return handled;
}

/// With the networks' lock.
std::size_t CompositeChannel::poll_network(Link& link, pm::Handler handler, std::size_t messages_max) noexcept {
    const Instant time = now();
    std::size_t handed_out = networks_.has_early() ? networks_.hand_out_early(handler, messages_max) : 0;
    if (handed_out == messages_max) return handed_out;
    const auto hand_out = [&](pm::Message& message) {
        if (message.source() != link.part.channel->self()) {
            handed_out += networks_.on_message(*link.network, message, handler, time) ? 1 : 0;
            return;
        }
        pm::Message known(message, self_);
        handler(known);
        if (known.was_kept()) message.note_kept();
        ++handed_out;
    };
    link.part.channel->poll(hand_out, messages_max - handed_out);
    networks_.go_on(time);
    if (time - watched_ >= Networks::tick_time) watch_networks(time);
    return handed_out;
}

/// With the networks' lock.
void CompositeChannel::watch_networks(Instant time) noexcept {
    watched_ = time;
    if (interfaces_ && interfaces_->has_changed()) networks_.on_interfaces_changed(time);
    else networks_.on_time(time);
}

// ---- threads

/// True: this thread is alone until it leaves.
inline bool CompositeChannel::enter() const noexcept {
    // Relaxed: a thread always sees its own mark.
    if (first_thread_.load(std::memory_order_relaxed) == base::thread_mark()) [[likely]]
        return bias_.try_lock_as_owner_again();
    return enter_first();
}

/// A thread that is not known as the first one.
bool CompositeChannel::enter_first() const noexcept {
    if (shared_.load()) return false;
    const void* nobody = nullptr;
    if (first_thread_.compare_exchange_strong(nobody, base::thread_mark())) return bias_.try_lock_as_owner_again();
    bias_.begin_visit();
    while (!bias_.is_owner_outside()) ::sched_yield();
    shared_.store(true);
    call_sleeper(); // if the first one sleeps, it did not know that others would come
    return false;
}

// ---- sleeping

bool CompositeChannel::arm() noexcept {
    if (is_serialized_) return arm_links(true);
    const Call call(*this);
    const void* nobody = nullptr;
    const bool is_sleeper =
        sleeper_.compare_exchange_strong(nobody, base::thread_mark()) || nobody == base::thread_mark();
    if (!is_sleeper) return true; // it naps
    if (arm_links(false)) return true;
    sleeper_.store(nullptr);
    return false;
}

/// Arms all links, or none.
bool CompositeChannel::arm_links(bool is_alone) noexcept {
    if (!is_alone && !receiving_.try_lock()) return false; // somebody receives: there may be something to do
    std::size_t armed = 0;
    for (; armed < links_.size(); ++armed) {
        const Sending sending(*links_[armed].guard, is_alone);
        if (!links_[armed].part.channel->arm()) break;
    }
    bool all = armed == links_.size();
    if (all && !networks_.empty()) {
        const Sending sending(networks_guard_, is_alone);
        all = !networks_.has_something_to_do();
    }
    for (std::size_t i = 0; !all && i < armed; ++i) {
        const Sending sending(*links_[i].guard, is_alone);
        if (links_[i].sleep != nullptr) links_[i].sleep->end_sleep();
    }
    if (!is_alone) receiving_.unlock();
    return all;
}

void CompositeChannel::sleep(Instant deadline) noexcept {
    if (is_serialized_) {
        pm::block(begin_sleep(), deadline);
        return end_sleep();
    }
    const bool is_sleeper = sleeper_.load() == base::thread_mark();
    if (!is_sleeper || shared_.load()) deadline = std::min(deadline, now() + shared_sleep_max);
    if (!is_sleeper) {
        flush(); // as arming would have
        return std::this_thread::sleep_until(deadline);
    }
    sleep_on_links(deadline);
    sleeper_.store(nullptr);
}

void CompositeChannel::sleep_on_links(Instant deadline) noexcept {
    std::array<pollfd, 2 * parts_max + 2> watched;
    std::size_t count = 0;
    // Sequentially consistent, as in wake(): either it sees that we sleep, or we see that it was called.
    asleep_.store(true);
    watched[count++] = {wakes_->descriptor(), POLLIN, 0};
    watched[count++] = {interfaces_ ? interfaces_->descriptor() : -1, POLLIN, 0};
    const auto watch = [&](Link&, const pm::Watched& what) {
        if (what.descriptor >= 0)
            watched[count++] = {what.descriptor, static_cast<short>(what.or_writable ? POLLIN | POLLOUT : POLLIN), 0};
        if (what.bell >= 0) watched[count++] = {what.bell, POLLIN, 0};
        return true;
    };
    deadline = std::min(deadline, begin_links(false, watch));
    if (!woken_.exchange(false)) {
        const timespec limit = time_until(deadline);
        ::ppoll(watched.data(), count, deadline == never ? nullptr : &limit, nullptr);
    }
    asleep_.store(false);
    if (watched[0].revents != 0) wakes_->drain();
    end_links(false, watched[1].revents != 0);
}

/// Tells all links that somebody sleeps, and has `watch(link, what)` watch them, if it can. Answers the time to wake up
/// at.
template <class Watch>
Instant CompositeChannel::begin_links(bool is_alone, Watch&& watch) noexcept {
    Instant deadline = never;
    if (!networks_.empty()) {
        const Sending sending(networks_guard_, is_alone);
        deadline = networks_.next_tick();
    }
    for (Link& link : links_) {
        const Sending sending(*link.guard, is_alone);
        const pm::Watched what = link.sleep != nullptr ? link.sleep->begin_sleep() : pm::Watched{};
        // a word cannot be, among others
        const bool is_watched = link.sleep != nullptr && what.word == nullptr && watch(link, what);
        deadline = std::min(deadline, is_watched ? what.deadline : now() + look_after);
    }
    return deadline;
}

void CompositeChannel::end_links(bool is_alone, bool have_interfaces_changed) noexcept {
    if (!networks_.empty()) {
        const Sending sending(networks_guard_, is_alone);
        const Instant time = now();
        if (have_interfaces_changed || time >= networks_.next_tick()) watch_networks(time);
    }
    for (Link& link : links_) {
        const Sending sending(*link.guard, is_alone);
        link.quiet.store(0, std::memory_order_relaxed); // what woke us is looked for
        if (link.sleep != nullptr) link.sleep->end_sleep();
    }
}

pm::Watched CompositeChannel::begin_sleep() noexcept {
    asleep_.store(true); // as in sleep_on_links()
    const auto watch = [&](Link& link, const pm::Watched& what) {
        const bool has_bell = sleep_set_->watch(link.bell, {.descriptor = what.bell}, mark_link);
        return sleep_set_->watch(link.watched, {what.descriptor, what.or_writable}, mark_link) && has_bell;
    };
    sleep_deadline_ = begin_links(true, watch);
    if (woken_.exchange(false)) sleep_deadline_ = Instant::min();
    is_slept_on_ = true;
    return {.descriptor = sleep_set_->descriptor(), .deadline = sleep_deadline_};
}

void CompositeChannel::end_sleep() noexcept {
    is_slept_on_ = false;
    asleep_.store(false);
    woken_.exchange(false); // whoever called before this has ended this sleep, and is seen by who was asleep
    const unsigned ready = sleep_set_->ready();
    if ((ready & mark_call) != 0) wakes_->drain();
    end_links(true, (ready & mark_interfaces) != 0);
}

/// Somebody sleeps, and another thread has used the networks: the time to wake up at may be another one now. The links
/// tell of themselves.
void CompositeChannel::tell_sleeper() noexcept {
    if (is_polling_ || networks_.empty()) return;
    if (networks_.next_tick() >= sleep_deadline_ && !networks_.has_something_to_do()) return;
    is_slept_on_ = false;
    wakes_->wake_self();
}

void CompositeChannel::call_sleeper() const noexcept {
    woken_.store(true);
    if (asleep_.load()) wakes_->wake_self();
}

// ---- state

bool CompositeChannel::lost(Node node) const noexcept {
    const Call call(*this);
    const Route& route = routes_[node];
    const Sending sending(guard_of(route), call.is_alone());
    return route.link == nullptr ? networks_.lost(node) : route.link->part.channel->lost(route.number);
}

pm::Traffic CompositeChannel::sent(Node to) const noexcept {
    const Call call(*this);
    const Route& route = routes_[to];
    const Sending sending(guard_of(route), call.is_alone());
    return route.link == nullptr ? networks_.sent(to) : route.link->part.channel->sent(route.number);
}

std::string_view CompositeChannel::carrier(Node to) const noexcept {
    const Call call(*this);
    const Route& route = routes_[to];
    const Sending sending(guard_of(route), call.is_alone());
    if (route.link == nullptr) return networks_.carrier(to);
    const Part& part = route.link->part;
    return part.name.empty() ? part.channel->carrier(route.number) : std::string_view(part.name);
}

std::vector<pm::Counter> CompositeChannel::counters() const {
    const Call call(*this);
    const Sending sending(networks_guard_, call.is_alone());
    const NetworkCounters& counted = networks_.counters();
    return {{"failovers", counted.failovers},   {"returns", counted.returns},     {"resent", counted.resent},
            {"duplicates", counted.duplicates}, {"early", counted.early},         {"passed_on", counted.passed_on},
            {"not_passed_on", counted.not_passed_on}, {"striped", counted.striped},     {"unsound", counted.unsound}};
}

} // namespace kumi::device::composite
