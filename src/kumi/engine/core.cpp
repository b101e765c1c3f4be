#include "kumi/engine/core.hpp"

#include "kumi/base/log.hpp"
#include "kumi/base/memory_policy.hpp"
#include "kumi/base/machine.hpp"
#include "kumi/engine/engine.hpp"
#include "kumi/engine/outgoing.hpp"

#include <algorithm>
#include <exception>

namespace kumi::engine {
namespace {

/// Polls that find nothing, of which one looks for nodes that are gone.
constexpr unsigned polls_per_look = 256;

} // namespace

Core::Core(pm::Channel& channel, Handlers&& handlers, const Options& options, std::unique_ptr<MemoryMap> memory)
    : channel_(channel), nodes_(channel.nodes()),
      message_bytes_max_(std::min(std::size_t{256} << 10, channel.traits().message_bytes_max - head_bytes_max)),
      chunk_bytes_(std::min(chunk_bytes, message_bytes_max_)), handlers_(std::move(handlers)),
      memory_(std::move(memory)), outbox_(channel), lost_(channel.nodes()), keepalive_every_(options.keepalive_every),
      clock_(options.clock), look_at_(channel.traits().ignores_deadlines ? never : clock_() + keepalive_every_),
      loop_(channel, *this, options.patience, options.progress) {
    Agreed own;
    for (std::uint32_t i = 0; i < handlers_.entries().size(); ++i) own.handlers.push_back(i);
    for (std::uint32_t i = 0; i < handlers_.functions().size(); ++i) own.functions.push_back(i);
    set_agreement(std::move(own));
}

Core::~Core() {
    constexpr Duration patience = std::chrono::seconds(3); // some may have left, and take nothing any more
    const auto is_done = [&](const Turn& turn) {
        return std::ranges::all_of(
            services_, [&](const Added& added) { return !added.wants_progress && added.service->is_done(turn); });
    };
    loop_.serve_until(
        [&](const Turn& turn) { return !outbox_.has_waiting() && is_done(turn) && transfers_.empty(); },
        now() + patience);
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
    operations_.clear(); // those who wait for an answer are told that there will be none, while all else is still there
    // Nodes leave one after the other: that alone is nothing to be told of.
    if (first_error_ && !is_about_loss_) base::log_warning("{}", first_error_->text());
}

Result<std::unique_ptr<Core>> Core::open(pm::Channel& channel, Handlers&& handlers, const Options& options) {
    auto memory = MemoryMap::open(channel);
    if (!memory) return memory.error();
    return std::unique_ptr<Core>(new Core(channel, std::move(handlers), options, *std::move(memory)));
}

Node Core::first_on_host() const noexcept {
    Node first = 0;
    while (!memory_->reaches(first)) ++first;
    return first;
}

void Core::set_agreement(Agreed agreed) {
    agreed_ = std::move(agreed);
    handler_of_ = inverse_of(agreed_.handlers);
    calls_.set_numbers(agreed_.functions);
    barriers_.set_firsts(agreed_.firsts);
}

std::string Core::name_of(Node node) const {
    if (node < agreed_.hosts.size()) return fmt::format("node {} on {}", node, agreed_.hosts[node]);
    return fmt::format("node {}", node);
}

// ---- arrivals

void Core::on_arrival(const Turn& turn, pm::Message& message) noexcept {
    Header header;
    const Node source = message.source();
    if (!read_value(message.bytes(), header)) return note_unsound(source);
    if (!outbox_.on_header(source, header)) [[unlikely]] note_unsound(source);
    Handled handled = Handled::yes;
    try {
        handled = handle(turn, source, header, message.bytes().subspan(sizeof header), message);
        if (handled == Handled::no) {
            if (header.is_request != 0)
                refuse(source, no_operation, fmt::format("it could make nothing of a message of kind {}", header.kind));
            else note_unsound(source);
        }
    } catch (const std::exception& failure) { // no memory
        note_error(error("handling a message of {}: {}", name_of(source), failure.what()));
    }
    if (header.is_request != 0 && handled != Handled::later) outbox_.on_handled(source);
}

void Core::note_unsound(Node source) noexcept {
    if (std::exchange(has_told_unsound_, true)) return;
    base::log_warning(
        "{} can make nothing of a message of {}: do all nodes run the same program, with the same version of Kumi?",
        name_of(node()), name_of(source));
}

inline Handled Core::handle(const Turn& turn, Node source, const Header& header, Bytes rest, pm::Message& message) {
    const bool is_handler = header.kind >= static_cast<std::uint16_t>(Kind::first_handler);
    if (!is_handler && header.kind >= first_of_services)
        return on_service_message(turn, source, header.kind - first_of_services, rest);
    const bool is_sound = is_handler ? run_handler(source, header, rest)
                                     : handle_own(source, static_cast<Kind>(header.kind), rest, message);
    return is_sound ? Handled::yes : Handled::no;
}

inline bool Core::handle_own(Node source, Kind kind, Bytes rest, pm::Message& message) {
    switch (kind) {
    case Kind::credit:
    case Kind::nudge: return true;
    case Kind::please: return outbox_.on_asked(source), true;
    case Kind::message: return on_plain_message(source, rest, message), true;
    case Kind::put: return on_put(source, rest);
    case Kind::put_strided: return on_put_strided(source, rest);
    case Kind::get: return on_get(source, rest);
    case Kind::got: return on_got(source, rest);
    case Kind::atomic: return on_atomic(source, rest);
    case Kind::copy: return on_copy(source, rest);
    case Kind::done: return on_done(source, rest);
    case Kind::failed: return on_failed(source, rest);
    case Kind::want: return on_want(source, rest);
    case Kind::broadcast: return on_broadcast(source, rest);
    default: return false;
    }
}

// ---- services

Port Core::add_service(Service& service) {
    KUMI_ASSERT(services_.size() < services_max);
    services_.push_back({&service});
    return Port(*this, services_.size() - 1);
}

Handled Core::on_service_message(const Turn& turn, Node source, std::size_t kind, Bytes rest) {
    const std::size_t index = kind / Service::kinds_max;
    if (index >= services_.size()) return Handled::no;
    return services_[index].service->on_message(turn, source, static_cast<std::uint16_t>(kind % Service::kinds_max),
                                                rest);
}

bool Core::go_on_services(const Turn& turn) noexcept {
    bool any = false;
    for (const Added& added : services_)
        if (added.wants_progress) any |= added.service->go_on(turn);
    return any;
}

Result<void> Port::send(Node to, std::uint16_t kind, MutableBytes message, Bytes payload) {
    if (auto known = core_->check_node("sending to", to); !known) return known;
    Core::write_header(message, Core::kind_of(index_, kind), true);
    return core_->request_bytes(to, message, payload);
}

void Port::note_handled(const Turn&, Node source) { core_->outbox_.on_handled(source); }

void Port::want_progress(const Turn&, bool wanted) noexcept {
    if (std::exchange(core_->services_[index_].wants_progress, wanted) == wanted) return;
    core_->services_waiting_ += wanted ? 1u : ~0u;
}

inline bool Core::run_handler(Node source, const Header& header, Bytes rest) {
    const std::size_t number = header.kind - static_cast<std::size_t>(Kind::first_handler);
    if (number >= handler_of_.size()) return false;
    Call call(*this, source, header.is_request != 0);
    std::string trouble;
    const bool is_sound = run_entry(handlers_.entries()[handler_of_[number]], call, rest, trouble);
    if (!trouble.empty()) refuse(source, no_operation, trouble);
    return is_sound;
}

/// False: these are not its arguments.
inline bool Core::run_entry(const Handlers::Entry& entry, Call& call, Bytes rest, std::string& trouble) {
    try {
        return entry.run(call, rest);
    } catch (const std::exception& thrown) {
        trouble = fmt::format("handler {} threw: {}", entry.name, thrown.what());
    } catch (...) {
        trouble = fmt::format("handler {} threw something that is no std::exception", entry.name);
    }
    return true;
}

std::optional<std::string> Core::run_here(std::uint32_t number, Node source, Bytes arguments) {
    const Handlers::Entry& entry = handlers_.entries()[handler_of_[number]];
    Call call(*this, source, false);
    std::string trouble;
    if (!run_entry(entry, call, arguments, trouble))
        return fmt::format("{} bytes came that are no arguments of handler {}", arguments.size(), entry.name);
    if (trouble.empty()) return {};
    return trouble;
}

void Core::on_plain_message(Node source, Bytes rest, pm::Message& message) {
    pm::Message inner(message, source, rest);
    if (on_message_) on_message_(inner);
    else early_messages_.push_back(inner.keep());
    if (inner.was_kept()) message.note_kept();
}

void Core::on_message(std::function<void(pm::Message&)> handler) {
    const Turn turn(loop_);
    on_message_ = std::move(handler);
    for (pm::KeptMessage& kept : std::exchange(early_messages_, {})) {
        pm::Message message(kept.source(), kept.bytes());
        on_message_(message);
    }
}

// ---- messages

Result<void> Core::check_node(const char* what, Node node) const {
    if (node >= nodes()) return error("{} node {}: this job has nodes 0 to {}", what, node, nodes() - 1);
    return {};
}

Result<void> Core::send(Node to, std::uint32_t handler, MutableBytes message, Bytes payload) {
    if (auto known = check_node("sending to", to); !known) return known;
    if (const std::size_t bytes = message.size() + payload.size(); bytes - sizeof(Header) > message_bytes_max_)
        return error("sending {} to handler {} on {}: the largest is {}; put the data into a segment",
                     base::readable_bytes(bytes - sizeof(Header)), handlers_.entries()[handler].name, name_of(to),
                     base::readable_bytes(message_bytes_max_));
    write_header(message, kind_of(handler), true);
    return request_bytes(to, message, payload);
}

void Core::reply(Node to, std::uint32_t handler, MutableBytes message, Bytes payload) {
    write_header(message, kind_of(handler), false);
    outbox_.reply(to, message, payload);
}

Result<void> Core::request_bytes(Node to, MutableBytes head, Bytes body) {
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

Result<void> Core::send_message(Node to, std::span<const Bytes> pieces) {
    if (auto known = check_node("sending to", to); !known) return known;
    std::size_t bytes = sizeof(Header);
    for (const Bytes piece : pieces) bytes += piece.size();
    if (const std::size_t bytes_max = channel_.traits().message_bytes_max; bytes > bytes_max)
        return error("sending {} to node {}: the largest message here is {}; send it in parts{}",
                     base::readable_bytes(bytes - sizeof(Header)), to, base::readable_bytes(bytes_max - sizeof(Header)),
                     channel_.traits().device == "shmem" ? ", or raise KUMI_SHMEM_MEMORY" : "");
    Outgoing<0> head(Kind::message, false);
    const auto try_once = [&] {
        if (pieces.size() == 1) return outbox_.try_post(to, head.bytes(), pieces[0]);
        const pm::SendSlot slot = channel_.try_reserve(to, bytes);
        if (!slot) return false;
        std::byte* at = slot.bytes().data();
        kumi::copy_bytes(at, head.bytes());
        at += head.bytes().size();
        for (const Bytes piece : pieces) {
            kumi::copy_bytes(at, piece);
            at += piece.size();
        }
        outbox_.note_told(to, slot.bytes());
        channel_.commit(slot);
        return true;
    };
    {
        const Turn turn(loop_);
        if (try_once()) return {};
        if (turn.is_inner())
            return error("sending to {} from a handler: there is no room, and a handler must not wait", name_of(to));
    }
    bool was_sent = false;
    loop_.serve_until([&] { return was_sent || (was_sent = try_once()) || channel_.lost(to); }, never);
    if (!was_sent) return error("sending to node {}: it has left, or is lost", to);
    return {};
}

// ---- being done

bool Core::forget(std::uint64_t asked) {
    const Turn turn(loop_);
    const OperationId id{static_cast<std::uint32_t>(asked), static_cast<std::uint32_t>(asked >> 32)};
    if (operations_.find(id) == nullptr) return false;
    operations_.end(id);
    loop_.wake_waiters(turn); // who syncs may have waited for this
    return true;
}

void Core::refuse(Node to, OperationId operation, const std::string& why) {
    auto head = outgoing(Kind::failed, false, Failed{operation});
    outbox_.reply(to, head.bytes(), bytes_of(std::string_view(why).substr(0, 1000)));
}

bool Core::on_failed(Node source, Bytes rest) {
    Failed what;
    if (!read_value(rest, what)) return false;
    Error why = error("{}: {}", name_of(source), text_of(rest.subspan(sizeof what)));
    if (what.operation == no_operation) return note_error(std::move(why)), true;
    if (const Operation* const operation = operations_.find(what.operation);
        operation != nullptr && !operation->is_from(source))
        return false;
    fail(what.operation, std::move(why));
    return true;
}

void Core::reply_done(Node to, OperationId operation, std::uint64_t value) {
    auto head = outgoing(Kind::done, false, Done{operation, value});
    outbox_.reply(to, head.bytes());
}

bool Core::on_done(Node source, Bytes rest) {
    Done what;
    if (!read_value(rest, what)) return false;
    Operation* const operation = operations_.find(what.operation);
    if (operation == nullptr) return true; // it has failed already
    if (!operation->is_from(source)) return false;
    if (operation->is_done) return true; // the first answer counts
    operation->value = what.value;
    if (operation->left > 1) --operation->left;
    else complete(what.operation);
    return true;
}

void Core::complete(OperationId id) {
    Operation& operation = *operations_.find(id);
    if (operation.flag != nullptr) set_flag_here(*operation.flag, operation.flag_value);
    operation.is_done = true;
    if (operation.is_waited_for) return;
    const auto answered = std::move(operation.answered);
    operations_.end(id);
    if (answered) answered(Bytes{});
}

void Core::fail(OperationId id, Error why) {
    Operation* const operation = operations_.find(id);
    // what is done has not failed, though its node is lost since
    if (operation == nullptr || operation->is_done) return;
    if (operation->is_waited_for) {
        operation->failure = std::move(why);
        operation->is_done = true;
        return;
    }
    const auto answered = std::move(operation->answered);
    operations_.end(id);
    if (answered) answered(std::move(why));
    else note_error(std::move(why));
}

/// For operations that somebody waits for.
Result<std::uint64_t> Core::wait_for(OperationId id, Instant deadline) {
    const bool in_time = loop_.serve_until([&] { return operations_.find(id)->is_done; }, deadline);
    const Turn turn(loop_);
    Operation& operation = *operations_.find(id);
    const std::uint64_t value = operation.value;
    auto failure = std::move(operation.failure);
    operations_.end(id);
    loop_.wake_waiters(turn); // who syncs may have waited for this
    if (failure) return *std::move(failure);
    if (!in_time) return error("no answer within the time given");
    return value;
}

void Core::note_error(Error why) {
    if (first_error_ && !is_about_loss_) return base::log_warning("{}", why.text());
    first_error_ = std::move(why);
    is_about_loss_ = false;
}

Error Core::take_error() {
    Error first = *std::move(first_error_);
    first_error_.reset();
    is_about_loss_ = false;
    return first;
}

// ---- sync

bool Core::all_done() const noexcept { return outbox_.all_handled() && operations_.count() == 0 && transfers_.empty(); }

Result<void> Core::sync(Instant deadline) {
    if (in_handler()) return error("sync: a handler must not wait");
    // What was stored straight into the memory of other nodes is there before whatever this thread does next.
    base::MachineMemory::full_fence();
    const auto done = [&] {
        if (all_done()) return true;
        outbox_.ask_for_credits();
        return false;
    };
    const bool in_time = loop_.serve_until(done, deadline);
    const Turn turn(loop_);
    if (first_error_) return take_error();
    if (!in_time) return error("sync: not all was done within the time given{}", outbox_.describe_unhandled());
    return {};
}

Result<void> Core::start_sync(Flag& flag) {
    const Turn turn(loop_);
    set_flag_here(flag, 0);
    syncs_.push_back(&flag);
    check_syncs();
    if (!syncs_.empty()) loop_.on_duty(turn);
    return {};
}

void Core::check_syncs() {
    if (!all_done()) return outbox_.ask_for_credits();
    for (Flag* const flag : std::exchange(syncs_, {})) set_flag_here(*flag, 1);
}

// ---- progress

std::size_t Core::work(const Turn& turn) noexcept {
    std::size_t done =
        channel_.poll([this, &turn](pm::Message& message) { on_arrival(turn, message); }, pm::all_messages);
    if (outbox_.has_waiting()) [[unlikely]] done += outbox_.go_on() ? 1 : 0;
    if (!transfers_.empty()) [[unlikely]] done += go_on_transfers() ? 1 : 0;
    if (services_waiting_ != 0) [[unlikely]] done += go_on_services(turn) ? 1 : 0;
    if (!syncs_.empty()) [[unlikely]] check_syncs();
    if (has_tasks(turn)) [[unlikely]] ++done; // they are to be run
    return done;
}

bool Core::prepare_sleep(const Turn& turn, bool is_background) noexcept {
    if (notice_losses(turn)) return false;
    check_silent_peers(turn);
    if (has_tasks(turn)) return false;
    // Flags are watched by who waits for them; the background only has barriers to go on with.
    if (is_background && !(background_watches_ = barriers_.has_uncounted(turn))) return true;
    ++watchers_;
    memory_->page(node()).watching.store(1);
    base::MachineMemory::full_fence(); // partner: the fence in nudge()
    return true;
}

void Core::end_sleep(const Turn&, bool is_background) noexcept {
    if (is_background && !background_watches_) return;
    if (--watchers_ == 0) memory_->page(node()).watching.store(0);
}

/// Looks for nodes that are lost, and fails what needs them. True: a node was just lost; what it sent before is to be
/// handled first.
bool Core::notice_losses(const Turn& turn) {
    bool is_any_going = false;
    for (Node peer = 0; peer < nodes(); ++peer) {
        if (!channel_.lost(peer)) continue;
        // What it sent before comes first: it is lost when there was nothing to do once more.
        if (lost_[peer] == Fate::here) {
            lost_[peer] = Fate::going;
            is_any_going = true;
            continue;
        }
        if (std::exchange(lost_[peer], Fate::lost) != Fate::lost) loop_.wake_waiters(turn); // they may wait for it
        has_losses_ = true;
        fail_operations_of(turn, peer); // also what was begun since
        for (const Added& added : services_) added.service->on_lost(turn, peer);
    }
    return is_any_going;
}

/// Fails all operations that need node `lost`.
void Core::fail_operations_of(const Turn& turn, Node lost) {
    const auto why = [&](std::string_view what) { return error("{}: {} has left, or is lost", what, name_of(lost)); };
    const bool was_owing = !outbox_.all_handled(lost) || transfers_.contains(lost);
    outbox_.give_up(lost);
    std::vector<OperationId> open;
    operations_.each_of(lost, [&](OperationId id) { open.push_back(id); });
    for (const OperationId id : open)
        if (const Operation* const operation = operations_.find(id)) fail(id, why(operation->what));
    if (was_owing || !open.empty()) loop_.wake_waiters(turn);
    transfers_.erase(lost);
    if (std::erase_if(offers_, [&](const auto& offer) { return offer.first.second == lost; }) != 0)
        note_error(why("offer"));
    std::erase_if(wants_, [&](const auto& want) {
        if (want.first.second != lost) return false;
        wants_waiting_ -= want.second.size();
        return true;
    });
    if (was_owing && !first_error_) {
        first_error_ = error("{} has left, or is lost; what was sent to it last may not have arrived", name_of(lost));
        is_about_loss_ = true;
    }
}

/// Keep-alive: once a second the engine sends an empty message to every node that owes it an answer, because a network
/// reports a dead node only when something is sent to it.
void Core::check_silent_peers(const Turn& turn) {
    const Instant time = clock_();
    if (time < look_at_) return;
    look_at_ = time + keepalive_every_;
    ++looks_;
    for (const Added& added : services_) added.service->check_silent_peers(turn); // first: what they ask says something
    for (Node peer = 0; peer < nodes(); ++peer)
        if (!outbox_.all_handled(peer)) send_keepalive(peer);
    operations_.each([this](const Operation& operation) { send_keepalive(operation.peer); });
    loop_.wake_waiters(turn); // they know best whom they wait for
}

void Core::send_keepalive(Node node) noexcept {
    if (node == this->node() || channel_.lost(node)) return;
    Outgoing<0> nothing(Kind::nudge, false);
    (void)outbox_.try_post(node, nothing.bytes()); // where there is no room, something is under way
}

std::size_t Core::poll() {
    std::size_t done = 0;
    bool has_any = false;
    {
        const Turn turn(loop_);
        if (turn.is_inner()) return 0;
        done = work(turn);
        if (done != 0) loop_.wake_waiters(turn); // others may have waited for it
        // who only polls never sleeps
        else if (++empty_polls_ % polls_per_look == 0 && !notice_losses(turn)) check_silent_peers(turn);
        has_any = has_tasks(turn);
    }
    while (has_any && run_tasks()) ++done;
    return done;
}

void Core::make_progress(const Turn& turn) noexcept {
    if (!turn.is_inner() && work(turn) != 0) loop_.wake_waiters(turn); // others may have waited for it
    if (has_tasks(turn)) loop_.on_duty(turn);
}

void Core::wake() noexcept {
    const Turn turn(loop_);
    loop_.wake_waiters(turn);
}

void Core::flush() {
    const Turn turn(loop_);
    channel_.flush();
}

} // namespace kumi::engine
