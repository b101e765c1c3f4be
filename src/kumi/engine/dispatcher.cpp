#include "kumi/engine/dispatcher.hpp"

#include "kumi/base/log.hpp"
#include "kumi/engine/engine.hpp"
#include "kumi/engine/sending/waiting_send.hpp"

#include <algorithm>
#include <utility>

namespace kumi::engine {
namespace {

constexpr std::size_t services_max =
    (static_cast<std::size_t>(Kind::first_handler) - first_of_services) / Service::kinds_max;

} // namespace

Dispatcher::Dispatcher(pm::Channel& channel, Handlers&& handlers, const Options& options,
                       std::unique_ptr<MemoryMap> map)
    : channel_(channel), nodes_(channel.nodes()),
      message_bytes_max_(std::min(request_bytes_max, channel.traits().message_bytes_max - head_bytes_max)),
      map_(std::move(map)), outbox_(channel, options.waiting_bytes_max, options.kept_bytes_max),
      peers_(channel, options.keepalive_every, options.clock),
      messages_(*this, std::move(handlers), nodes_), loop_(channel, progress_, options.patience, options.progress) {
    Agreed own;
    for (std::uint32_t i = 0; i < messages_.handlers().entries().size(); ++i) own.handlers.push_back(i);
    for (std::uint32_t i = 0; i < messages_.handlers().functions().size(); ++i) own.functions.push_back(i);
    set_agreement(std::move(own));
}

Dispatcher::~Dispatcher() {
    constexpr Duration patience = std::chrono::seconds(3); // other nodes may have left, and take nothing any more
    const auto is_done = [&](const Turn& turn) {
        if (outbox_.has_waiting() || messages_.has_held_requests(turn)) return false;
        return std::ranges::all_of(services_, [&](const Added& added) {
            return !added.wants_progress && added.service->is_done(turn);
        });
    };
    const auto describe = [] { return std::string("leaving the job"); };
    {
        const Turn turn(loop_);
        loop_.end_late_reports(turn);
        barriers_.forget_flags(turn);
    }
    loop_.serve_until(is_done, now() + patience, describe);
    operations_.await_errors();
    progress_.end(); // futures may live on; functions that wait for one return
    calls_.stop();
    loop_.stop();
    {
        const Turn turn(loop_);
        outbox_.tell_all_handled();
    }
    loop_.serve_until([&] { return !outbox_.has_waiting(); }, now() + patience, describe);
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
    if (node >= nodes())
        return error(ErrorCode::not_found, "{} node {}: this job has nodes 0 to {}", what, node, nodes() - 1);
    return {};
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

Result<void> Port::send(Node to, std::uint16_t kind, MutableBytes message, Bytes payload) {
    if (auto known = dispatcher_->check_node("sending to", to); !known) return known;
    write_header(message, wire_kind(kind), true);
    return dispatcher_->request(to, message, payload);
}

void Port::note_handled(const Turn& turn, Node source, std::size_t bytes) {
    dispatcher_->outbox(turn).on_kept_handled(source, sizeof(Header) + bytes, false);
}

void Port::want_progress(const Turn&, bool wanted) noexcept {
    if (std::exchange(dispatcher_->services_[index_].wants_progress, wanted) == wanted) return;
    dispatcher_->services_waiting_ += wanted ? 1u : ~0u;
}

// ---- sending

template <class TrySend>
inline Result<void> Dispatcher::send_or_wait(Node to, MutableBytes head, Bytes body, TrySend&& try_send) {
    WaitingSend sending(*this, to);
    const auto is_over = [&](const Turn& turn) {
        return sending.is_over(turn, try_send, [&] { return outbox_.request(to, head, body); });
    };
    bool is_over_now = false;
    {
        const Turn turn(loop_);
        if (try_send()) [[likely]]
            return {};
        is_over_now = is_over(turn);
    }
    if (!is_over_now) loop_.wait_for_room(is_over, [&] { return sending.describe(); });
    return sending.result();
}

Result<void> Dispatcher::request(Node to, MutableBytes head, Bytes body) {
    return send_or_wait(to, head, body, [&] { return outbox_.try_request(to, head, body); });
}

Result<void> Dispatcher::send(Node to, MutableBytes head, Bytes body) {
    return send_or_wait(to, head, body, [&] { return outbox_.try_send(to, head, body); });
}

void Dispatcher::send_keepalive(Node node) noexcept {
    if (node == this->node() || channel_.lost(node)) return;
    Outgoing<0> nothing(Kind::nudge, false);
    (void)outbox_.try_post(node, nothing.bytes()); // where there is no room, something is under way
}

} // namespace kumi::engine
