#include "kumi/engine/operation/operation_service.hpp"

#include "kumi/base/log.hpp"
#include "kumi/base/sync/memory_policy.hpp"
#include "kumi/base/sync/thread_number.hpp"
#include "kumi/engine/dispatcher.hpp"
#include "kumi/engine/future/progress_link.hpp"
#include "kumi/engine/memory/flags.hpp"

#include <algorithm>
#include <utility>

namespace kumi::engine {
namespace {

constexpr std::uint16_t done_kind = kind_in_service(Kind::done);
constexpr std::uint16_t failed_kind = kind_in_service(Kind::failed);

/// Part of what a function answered, which a thread of the engine sent.
bool is_part_of_answer(const Header& request) noexcept {
    const auto kind = static_cast<Kind>(request.kind);
    return kind == Kind::answer || kind == Kind::answer_part;
}

/// A put, or a request to a handler: neither an operation nor a layer tells of its loss.
bool is_without_answer(const Header& request) noexcept {
    const auto kind = static_cast<Kind>(request.kind);
    return kind == Kind::put || kind == Kind::put_strided || kind >= Kind::first_handler;
}

} // namespace

OperationService::OperationService(Dispatcher& dispatcher)
    : dispatcher_(dispatcher), port_(dispatcher.add_service(*this)) {}

// ---- answers of other nodes

Handled OperationService::on_message(const Turn& turn, Node source, std::uint16_t kind, Bytes body) {
    switch (kind) {
    case done_kind: return handled_if(on_done(turn, source, body));
    case failed_kind: return handled_if(on_failed(turn, source, body));
    default: return Handled::no;
    }
}

bool OperationService::on_done(const Turn& turn, Node source, Bytes body) {
    Done what;
    if (!read_value(body, what)) return false;
    Operation* const operation = operations_.find(what.operation);
    if (operation == nullptr) return true; // it has failed already
    if (!operation->is_from(source)) return false;
    if (operation->is_done) return true; // the first answer counts
    operation->value = what.value;
    complete(turn, what.operation);
    return true;
}

bool OperationService::on_failed(const Turn& turn, Node source, Bytes body) {
    Failed what;
    if (!read_value(body, what)) return false;
    Error why =
        error(error_code_of(what.code), "{}: {}", dispatcher_.name_of(source), text_of(body.subspan(sizeof what)));
    if (what.operation.generation == no_operation.generation) {
        const std::uint32_t thread = what.operation == no_operation ? 0 : what.operation.index;
        return note_error(turn, std::move(why), thread), true;
    }
    if (const Operation* const operation = operations_.find(what.operation);
        operation != nullptr && !operation->is_from(source))
        return false;
    fail(turn, what.operation, std::move(why));
    return true;
}

void OperationService::reply_done(const Turn& turn, Node to, OperationId operation, std::uint64_t value) {
    port_.reply(turn, to, done_kind, Done{operation, value});
}

void OperationService::refuse(const Turn& turn, Node to, OperationId operation, const Error& why) {
    if (operation == no_operation) operation = request_of_thread(dispatcher_.arrivals().thread_of_request(turn));
    port_.reply(turn, to, failed_kind, Failed{operation, static_cast<std::uint32_t>(why.code()), 0},
                bytes_of(std::string_view(why.text()).substr(0, 1000)));
}

// ---- operations

OperationId OperationService::begin(Operation operation) {
    const Turn turn = dispatcher_.take_turn();
    return operations_.begin(std::move(operation));
}

void OperationService::end(OperationId id) noexcept {
    const Turn turn = dispatcher_.take_turn();
    operations_.end(id);
}

OperationId OperationService::hold(const Turn&, const char* what) {
    return operations_.begin({.peer = dispatcher_.node(), .what = what});
}

void OperationService::complete(const Turn&, OperationId id) {
    Operation& operation = *operations_.find(id);
    if (operation.flag != nullptr) store_flag(*operation.flag, operation.flag_value);
    operation.is_done = true;
    if (operation.is_waited_for) return;
    const auto answered = std::move(operation.answered);
    const std::uint64_t value = operation.value;
    const bool answers_value = operation.answers_value;
    operations_.end(id);
    if (answered) answered(answers_value ? bytes_of(value) : Bytes{});
}

void OperationService::fail(const Turn& turn, OperationId id, Error why) {
    Operation* const operation = operations_.find(id);
    // An operation that is done has not failed, though its node is lost since.
    if (operation == nullptr || operation->is_done) return;
    if (operation->is_waited_for) {
        operation->failure = std::move(why);
        operation->is_done = true;
        return;
    }
    const auto answered = std::move(operation->answered);
    const std::uint32_t thread = operation->thread;
    const Flag* const flag = operation->flag;
    operations_.end(id);
    if (answered) answered(std::move(why));
    else note_error(turn, std::move(why), thread, flag);
}

Result<std::uint64_t> OperationService::wait_for(OperationId id, Instant deadline) {
    const auto describe = [&] {
        const Operation& operation = *operations_.find(id);
        return fmt::format("{} with {}", operation.what, dispatcher_.name_of(operation.peer));
    };
    const bool in_time =
        dispatcher_.loop().serve_until([&] { return operations_.find(id)->is_done; }, deadline, describe);
    const Turn turn = dispatcher_.take_turn();
    Operation& operation = *operations_.find(id);
    const std::uint64_t value = operation.value;
    auto failure = std::move(operation.failure);
    operations_.end(id);
    dispatcher_.loop().wake_waiters(turn); // a thread in sync() may have waited for this operation
    if (failure) return *std::move(failure);
    if (!in_time) return error(ErrorCode::timed_out, "no answer within the time given");
    return value;
}

bool OperationService::forget(OperationId id) {
    const Turn turn = dispatcher_.take_turn();
    if (operations_.find(id) == nullptr) return false;
    operations_.end(id);
    dispatcher_.loop().wake_waiters(turn); // a thread in sync() may have waited for this operation
    return true;
}

void OperationService::on_lost(const Turn& turn, Node lost) noexcept {
    std::vector<OperationId> open;
    operations_.each_of(lost, [&](OperationId id) { open.push_back(id); });
    for (const OperationId id : open)
        if (const Operation* const operation = operations_.find(id))
            fail(
                turn, id,
                error(ErrorCode::node_lost, "{}: {} has left, or is lost", operation->what, dispatcher_.name_of(lost)));
    if (!open.empty()) dispatcher_.loop().wake_waiters(turn);
}

void OperationService::check_silent_peers(const Turn&) noexcept {
    operations_.each([this](const Operation& operation) { dispatcher_.send_keepalive(operation.peer); });
}

void OperationService::close() noexcept {
    operations_.clear();
    // Nodes leave one after the other: that alone is not worth a warning. What a wait has returned is known.
    UnaskedErrors& unasked = dispatcher_.progress().link()->unasked();
    for (const NotedErrors::Noted& noted : errors_.all()) {
        if (noted.is_about_loss || noted.has_ended_wait) continue;
        if (noted.has_asked) base::log_warning("{}", noted.why.text());
        else unasked.add(noted.why);
    }
    unasked.say_rest();
}

// ---- errors

void OperationService::note_error(const Turn&, Error why, std::uint32_t thread, const Flag* flag) {
    const std::string text = why.text();
    if (!errors_.note({std::move(why), thread, flag, false})) base::log_warning("{}", text);
}

std::optional<Error> OperationService::error_of_wait(const Turn&, const Flag& flag) {
    return errors_.empty() ? std::nullopt : errors_.end_wait(base::thread_number(), flag);
}

void OperationService::note_unhandled(const Turn& turn, Node lost, std::span<const Header> requests) {
    const std::uint32_t background = dispatcher_.loop().background_number(turn);
    std::vector<std::uint32_t> threads;
    for (const Header& request : requests) {
        const std::uint32_t thread = thread_of(request);
        if (thread == no_thread || is_part_of_answer(request)) continue;
        // Nothing but sync() tells of the other requests.
        if (thread == background && !is_without_answer(request)) continue;
        threads.push_back(thread);
    }
    std::ranges::sort(threads);
    threads.erase(std::unique(threads.begin(), threads.end()), threads.end());
    for (const std::uint32_t thread : threads) note_lost(turn, lost, thread);
}

void OperationService::note_lost(const Turn& turn, Node lost, std::uint32_t thread) {
    Error why = error(ErrorCode::node_lost, "{} has left, or is lost; what was sent to it last may not have arrived",
                      dispatcher_.name_of(lost));
    (void)errors_.note({std::move(why), thread_to_tell(turn, thread), nullptr, true});
}

std::uint32_t OperationService::thread_to_tell(const Turn& turn, std::uint32_t thread) const noexcept {
    return thread == dispatcher_.loop().background_number(turn) ? 0 : thread;
}

// ---- sync

Result<void> OperationService::sync(Instant deadline) {
    if (dispatcher_.progress().in_handler()) return error(ErrorCode::misuse, "sync: a handler must not wait");
    // What was stored straight into the memory of other nodes is there before whatever this thread does next.
    base::MachineMemory::full_fence();
    std::optional<SyncPoint> point;
    {
        const Turn turn = dispatcher_.take_turn();
        const Outbox& outbox = dispatcher_.outbox(turn);
        const bool has_any = !outbox.credits().all_handled() || operations_.count() != 0;
        if (!has_any && errors_.empty()) [[likely]]
            return {};
        point.emplace(base::thread_number(), operations_, outbox);
    }
    const auto missing = [&] {
        std::string nodes;
        for (const Node node : point->missing_nodes())
            nodes += fmt::format("{} {}", nodes.empty() ? "; not yet at" : ",", dispatcher_.name_of(node));
        return nodes;
    };
    const bool in_time = dispatcher_.loop().serve_until(
        [&](const Turn& turn) { return point->is_reached(operations_, dispatcher_.outbox(turn)); }, deadline,
        [&] { return fmt::format("sync: not all is done{}", missing()); });
    const Turn turn = dispatcher_.take_turn();
    if (auto first = errors_.take_of_thread(base::thread_number())) return *std::move(first);
    if (in_time) return {};
    return error(ErrorCode::timed_out, "sync: not all was done within the time given{}", missing());
}

void OperationService::await_errors() {
    constexpr Duration patience = std::chrono::milliseconds(100);
    std::optional<SyncPoint> requests; // of all threads
    const auto is_over = [&](const Turn& turn) {
        if (operations_.count() != 0) return false;
        if (!requests) requests.emplace(no_thread, operations_, dispatcher_.outbox(turn));
        return requests->is_reached(operations_, dispatcher_.outbox(turn));
    };
    dispatcher_.loop().serve_until(is_over, now() + patience, [] { return std::string("leaving the job"); });
}

Result<void> OperationService::start_sync(Flag& flag) {
    const Turn turn = dispatcher_.take_turn();
    store_flag(flag, 0);
    syncs_.push_back({&flag, SyncPoint(base::thread_number(), operations_, dispatcher_.outbox(turn))});
    check_syncs(turn);
    if (!syncs_.empty()) dispatcher_.loop().on_duty(turn);
    return {};
}

void OperationService::check_syncs(const Turn& turn) {
    std::erase_if(syncs_, [&](StartedSync& sync) {
        const bool is_reached = sync.point.is_reached(operations_, dispatcher_.outbox(turn));
        if (is_reached) store_flag(*sync.flag, 1);
        return is_reached;
    });
}

} // namespace kumi::engine
