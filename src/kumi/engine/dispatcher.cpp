#include "kumi/engine/dispatcher.hpp"

#include "kumi/base/log.hpp"
#include "kumi/base/system/machine.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace kumi::engine {
namespace {

/// Of so many polls that find nothing, one looks for nodes that are lost.
constexpr unsigned polls_per_look = 256;

constexpr std::size_t services_max =
    (static_cast<std::size_t>(Kind::first_handler) - first_of_services) / Service::kinds_max;

} // namespace

Dispatcher::Dispatcher(pm::Channel& channel, Handlers&& handlers, const Options& options,
                       std::unique_ptr<MemoryMap> map)
    : channel_(channel), nodes_(channel.nodes()),
      message_bytes_max_(std::min(std::size_t{256} << 10, channel.traits().message_bytes_max - head_bytes_max)),
      map_(std::move(map)), outbox_(channel), peers_(channel, options.keepalive_every, options.clock),
      messages_(*this, std::move(handlers)), loop_(channel, *this, options.patience, options.progress) {
    Agreed own;
    for (std::uint32_t i = 0; i < messages_.handlers().entries().size(); ++i) own.handlers.push_back(i);
    for (std::uint32_t i = 0; i < messages_.handlers().functions().size(); ++i) own.functions.push_back(i);
    set_agreement(std::move(own));
}

Dispatcher::~Dispatcher() {
    constexpr Duration patience = std::chrono::seconds(3); // other nodes may have left, and take nothing any more
    const auto is_done = [&](const Turn& turn) {
        return !outbox_.has_waiting() && std::ranges::all_of(services_, [&](const Added& added) {
            return !added.wants_progress && added.service->is_done(turn);
        });
    };
    loop_.serve_until(is_done, now() + patience);
    loop_.stop();
    {
        const Turn turn(loop_);
        outbox_.tell_all_handled();
    }
    loop_.serve_until([&] { return !outbox_.has_waiting(); }, now() + patience);
    {
        const Turn turn(loop_);
        for (const Added& added : services_) added.service->on_end(turn);
    }
    operations_.close(); // while all else is still there
}

Result<std::unique_ptr<Dispatcher>> Dispatcher::open(pm::Channel& channel, Handlers&& handlers,
                                                     const Options& options) {
    auto map = MemoryMap::open(channel);
    if (!map) return map.error();
    return std::unique_ptr<Dispatcher>(new Dispatcher(channel, std::move(handlers), options, *std::move(map)));
}

void Dispatcher::set_agreement(Agreed agreed) {
    agreed_ = std::move(agreed);
    messages_.set_numbers(agreed_.handlers);
    calls_.set_numbers(agreed_.functions);
    barriers_.set_firsts(agreed_.firsts);
}

std::string Dispatcher::name_of(Node node) const {
    if (node < agreed_.hosts.size()) return fmt::format("node {} on {}", node, agreed_.hosts[node]);
    return fmt::format("node {}", node);
}

Result<void> Dispatcher::check_node(const char* what, Node node) const {
    if (node >= nodes()) return error("{} node {}: this job has nodes 0 to {}", what, node, nodes() - 1);
    return {};
}

// ---- arrivals

void Dispatcher::on_arrival(const Turn& turn, pm::Message& message) noexcept {
    Header header;
    const Node source = message.source();
    if (!read_value(message.bytes(), header)) return note_unsound(source);
    if (!outbox_.on_header(source, header)) [[unlikely]]
        note_unsound(source);
    Handled handled = Handled::yes;
    try {
        handled = handle(turn, source, header, message.bytes().subspan(sizeof header), message);
        if (handled == Handled::no) {
            if (header.is_request == 0) note_unsound(source);
            else
                operations_.refuse(turn, source, no_operation,
                                   fmt::format("it could make nothing of a message of kind {}", header.kind));
        }
    } catch (const std::exception& failure) { // no memory
        operations_.note_error(turn, error("handling a message of {}: {}", name_of(source), failure.what()));
    }
    if (header.is_request != 0 && handled != Handled::later) outbox_.on_handled(source);
}

inline Handled Dispatcher::handle(const Turn& turn, Node source, const Header& header, Bytes body,
                                  pm::Message& message) {
    if (header.kind >= static_cast<std::uint16_t>(Kind::first_handler))
        return handled_if(messages_.on_message(turn, source, header, body));
    if (header.kind >= first_of_services) {
        const std::size_t index = (header.kind - first_of_services) / Service::kinds_max;
        if (index >= services_.size()) return Handled::no;
        return services_[index].service->on_message(turn, source, kind_in_service(static_cast<Kind>(header.kind)),
                                                    body);
    }
    switch (static_cast<Kind>(header.kind)) {
    case Kind::credit:
    case Kind::nudge: return Handled::yes;
    case Kind::please: return outbox_.on_asked(source), Handled::yes;
    case Kind::message: return messages_.on_plain_message(turn, source, body, message), Handled::yes;
    default: return Handled::no;
    }
}

void Dispatcher::note_unsound(Node source) noexcept {
    if (std::exchange(has_told_unsound_, true)) return;
    base::log_warning(
        "{} can make nothing of a message of {}: do all nodes run the same program, with the same version of Kumi?",
        name_of(node()), name_of(source));
}

// ---- services

Port Dispatcher::add_service(Service& service) {
    KUMI_ASSERT(services_.size() < services_max);
    services_.push_back({&service});
    return Port(*this, services_.size() - 1);
}

bool Dispatcher::go_on_services(const Turn& turn) noexcept {
    bool any = false;
    for (const Added& added : services_)
        if (added.wants_progress) any |= added.service->go_on(turn);
    return any;
}

Result<void> Port::send(Node to, std::uint16_t kind, MutableBytes message, Bytes payload) {
    if (auto known = dispatcher_->check_node("sending to", to); !known) return known;
    write_header(message, wire_kind(kind), true);
    return dispatcher_->request(to, message, payload);
}

void Port::note_handled(const Turn& turn, Node source) { dispatcher_->outbox(turn).on_handled(source); }

void Port::want_progress(const Turn&, bool wanted) noexcept {
    if (std::exchange(dispatcher_->services_[index_].wants_progress, wanted) == wanted) return;
    dispatcher_->services_waiting_ += wanted ? 1u : ~0u;
}

// ---- sending

Result<void> Dispatcher::request(Node to, MutableBytes head, Bytes body) {
    {
        const Turn turn(loop_);
        if (outbox_.try_request(to, head, body)) [[likely]]
            return {};
        if (turn.is_inner()) {
            if (outbox_.request(to, head, body)) return {};
            if (channel_.lost(to)) return error("sending to {}: it has left, or is lost", name_of(to));
            return error("sending to {} from a handler: {} wait to be sent already, which is the most there may be",
                         name_of(to), base::readable_bytes(Outbox::waiting_bytes_max));
        }
    }
    bool was_sent = false;
    loop_.serve_until([&] { return was_sent || (was_sent = outbox_.try_request(to, head, body)) || channel_.lost(to); },
                      never);
    if (!was_sent) return error("sending to {}: it has left, or is lost", name_of(to));
    return {};
}

void Dispatcher::send_keepalive(Node node) noexcept {
    if (node == this->node() || channel_.lost(node)) return;
    Outgoing<0> nothing(Kind::nudge, false);
    (void)outbox_.try_post(node, nothing.bytes()); // where there is no room, something is under way
}

void Dispatcher::send_nudge(const Turn&, Node node) noexcept {
    Outgoing<0> nothing(Kind::nudge, false);
    outbox_.reply(node, nothing.bytes());
}

// ---- progress

std::size_t Dispatcher::work(const Turn& turn) noexcept {
    std::size_t done =
        channel_.poll([this, &turn](pm::Message& message) { on_arrival(turn, message); }, pm::all_messages);
    if (outbox_.has_waiting()) [[unlikely]]
        done += outbox_.go_on() ? 1 : 0;
    if (services_waiting_ != 0) [[unlikely]]
        done += go_on_services(turn) ? 1 : 0;
    if (operations_.has_syncs(turn)) [[unlikely]]
        operations_.check_syncs(turn);
    if (has_tasks(turn)) [[unlikely]]
        ++done; // they are to be run
    return done;
}

bool Dispatcher::prepare_sleep(const Turn& turn, bool is_background) noexcept {
    if (notice_losses(turn)) return false;
    check_silent_peers(turn);
    if (has_tasks(turn)) return false;
    // Threads that wait for a flag watch it themselves; the background only has barriers to go on with.
    if (is_background && !(background_watches_ = barriers_.has_uncounted(turn))) return true;
    flags_.begin_watch(turn);
    return true;
}

void Dispatcher::end_sleep(const Turn& turn, bool is_background) noexcept {
    if (is_background && !background_watches_) return;
    flags_.end_watch(turn);
}

/// True: a node was just reported, and what it sent before is to be handled first.
bool Dispatcher::notice_losses(const Turn& turn) {
    return peers_.look(turn, [&](Node node, bool is_new) { on_gone(turn, node, is_new); });
}

/// Fails everything that needs `node`, also what was begun since the last time.
void Dispatcher::on_gone(const Turn& turn, Node node, bool is_new) {
    const bool was_owing = !outbox_.all_handled(node) || memory_.transfers().has_any_to(turn, node);
    outbox_.give_up(node);
    const bool has_failed_any = operations_.fail_operations_of(turn, node);
    if (is_new || was_owing || has_failed_any) loop_.wake_waiters(turn);
    for (const Added& added : services_) added.service->on_lost(turn, node);
    if (was_owing) operations_.note_unhandled(turn, node);
}

/// Keep-alive: once a second the engine sends an empty message to every node that owes it an answer, because a network
/// reports a dead node only when something is sent to it.
void Dispatcher::check_silent_peers(const Turn& turn) {
    if (!peers_.is_keepalive_due(turn)) return;
    for (const Added& added : services_) added.service->check_silent_peers(turn); // first: what they send counts too
    for (Node peer = 0; peer < nodes(); ++peer)
        if (!outbox_.all_handled(peer)) send_keepalive(peer);
    loop_.wake_waiters(turn); // threads send keep-alives to the nodes that they wait for
}

std::size_t Dispatcher::poll() {
    std::size_t done = 0;
    bool has_any = false;
    {
        const Turn turn(loop_);
        if (turn.is_inner()) return 0;
        done = work(turn);
        if (done != 0) loop_.wake_waiters(turn); // other threads may have waited for it
        // A program that only polls never sleeps.
        else if (++empty_polls_ % polls_per_look == 0 && !notice_losses(turn)) check_silent_peers(turn);
        has_any = has_tasks(turn);
    }
    while (has_any && run_tasks()) ++done;
    return done;
}

void Dispatcher::make_progress(const Turn& turn) noexcept {
    if (!turn.is_inner() && work(turn) != 0) loop_.wake_waiters(turn); // other threads may have waited for it
    if (has_tasks(turn)) loop_.on_duty(turn);
}

void Dispatcher::wake() noexcept {
    const Turn turn(loop_);
    loop_.wake_waiters(turn);
}

void Dispatcher::flush() {
    const Turn turn(loop_);
    channel_.flush();
}

bool Dispatcher::forget(std::uint64_t asked) {
    return operations_.forget({static_cast<std::uint32_t>(asked), static_cast<std::uint32_t>(asked >> 32)});
}

} // namespace kumi::engine
