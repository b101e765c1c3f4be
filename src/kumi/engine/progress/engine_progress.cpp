#include "kumi/engine/progress/engine_progress.hpp"

#include "kumi/base/system/machine.hpp"
#include "kumi/engine/dispatcher.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kumi::engine {
namespace {

/// Of so many polls that find nothing, one looks for nodes that are lost.
constexpr unsigned polls_per_look = 256;

} // namespace

Work::Done EngineProgress::work(const Turn& turn) noexcept {
    std::size_t done = 0;
    if (dispatcher_.arrivals_.has_unread(turn)) [[unlikely]]
        done += dispatcher_.arrivals_.read_unread(turn);
    done += dispatcher_.channel().poll(
        [this, &turn](pm::Message& message) { dispatcher_.arrivals_.on_message(turn, message); }, pm::all_messages);
    if (dispatcher_.outbox_.has_waiting()) [[unlikely]]
        done += dispatcher_.outbox_.go_on() ? 1 : 0;
    if (dispatcher_.messages_.has_held(turn)) [[unlikely]]
        done += dispatcher_.messages_.go_on(turn) ? 1 : 0;
    if (dispatcher_.services_waiting_ != 0) [[unlikely]]
        done += go_on_services(turn) ? 1 : 0;
    if (dispatcher_.operations_.has_syncs(turn)) [[unlikely]]
        dispatcher_.operations_.check_syncs(turn);
    return {done, dispatcher_.calls_.has_tasks(turn)};
}

std::size_t EngineProgress::take_in(const Turn& turn) noexcept {
    std::size_t done = dispatcher_.channel().poll(
        [this, &turn](pm::Message& message) { dispatcher_.arrivals_.take_in(turn, message); }, pm::all_messages);
    if (dispatcher_.outbox_.has_waiting()) done += dispatcher_.outbox_.go_on() ? 1 : 0;
    return done;
}

bool EngineProgress::prepare_sleep(const Turn& turn, bool is_background) noexcept {
    if (notice_losses(turn)) return false;
    check_silent_peers(turn);
    if (dispatcher_.calls_.has_tasks(turn) || dispatcher_.arrivals_.has_unread(turn)) return false;
    // Threads that wait for a flag watch it themselves; the background only has barriers to go on with.
    if (is_background && !(background_watches_ = dispatcher_.barriers_.wants_completion(turn))) return true;
    dispatcher_.flags_.begin_watch(turn);
    return true;
}

void EngineProgress::end_sleep(const Turn& turn, bool is_background) noexcept {
    if (is_background && !background_watches_) return;
    dispatcher_.flags_.end_watch(turn);
}

/// True: a node was just reported, and what it sent before is to be handled first.
bool EngineProgress::notice_losses(const Turn& turn) {
    const bool is_any_going = dispatcher_.peers_.look(turn, [&](Node node) { on_gone(turn, node, true); });
    // Something may have been begun with a node since it is gone.
    if (dispatcher_.outbox_.credits().all_handled() && !dispatcher_.memory_.transfers().has_any(turn))
        return is_any_going;
    for (const Node node : dispatcher_.peers_.gone(turn))
        if (is_owing(turn, node)) on_gone(turn, node, false);
    return is_any_going;
}

bool EngineProgress::is_owing(const Turn& turn, Node node) const noexcept {
    return !dispatcher_.outbox_.credits().all_handled(node) || dispatcher_.memory_.transfers().has_any_to(turn, node);
}

/// Fails everything that needs `node`, also what was begun since the last time.
void EngineProgress::on_gone(const Turn& turn, Node node, bool is_new) {
    const bool was_owing = is_owing(turn, node);
    const std::vector<Header> unhandled = dispatcher_.outbox_.give_up(node);
    if (is_new || was_owing) dispatcher_.loop_.wake_waiters(turn);
    for (const auto& added : dispatcher_.services_) added.service->on_lost(turn, node);
    dispatcher_.operations_.note_unhandled(turn, node, unhandled);
}

/// Keep-alive: once a second the engine sends an empty message to every node that owes it an answer, because a network
/// reports a dead host only when something is sent to it.
void EngineProgress::check_silent_peers(const Turn& turn) {
    if (!dispatcher_.peers_.is_keepalive_due(turn)) return;
    // What was begun with a node that is gone and sends nothing to it fails now.
    for (const Node node : dispatcher_.peers_.gone(turn)) on_gone(turn, node, false);
    // Services first: what they send is a sign of life, too.
    for (const auto& added : dispatcher_.services_) added.service->check_silent_peers(turn);
    dispatcher_.outbox_.credits().for_each_owing([&](Node peer) { dispatcher_.send_keepalive(peer); });
    dispatcher_.loop_.wake_waiters(turn); // threads send keep-alives to the nodes that they wait for
}

std::size_t EngineProgress::poll() {
    Done worked;
    {
        const Turn turn(dispatcher_.loop_);
        if (turn.is_inner()) return 0;
        worked = work_or_watch(turn);
    }
    while (worked.has_tasks && run_tasks()) ++worked.count;
    return worked.count;
}

void EngineProgress::look(const Turn& turn) noexcept {
    if (turn.is_inner()) return;
    dispatcher_.loop_.note_visit(turn);
    work_or_watch(turn);
}

Work::Done EngineProgress::work_or_watch(const Turn& turn) noexcept {
    const Done worked = work(turn);
    // Other threads may have waited for what was handled.
    if (worked.is_any()) dispatcher_.loop_.wake_waiters(turn);
    // A program that only polls never sleeps.
    else if (++empty_polls_ % polls_per_look == 0 && !notice_losses(turn)) check_silent_peers(turn);
    return worked;
}

void EngineProgress::make_progress(const Turn& turn) noexcept {
    // Other threads may have waited for what was handled.
    if (!turn.is_inner() && work(turn).is_any()) dispatcher_.loop_.wake_waiters(turn);
    if (dispatcher_.calls_.has_tasks(turn)) dispatcher_.loop_.on_duty(turn);
}

void EngineProgress::wake() noexcept {
    const Turn turn(dispatcher_.loop_);
    dispatcher_.loop_.wake_waiters(turn);
}

void EngineProgress::flush() {
    const Turn turn(dispatcher_.loop_);
    dispatcher_.channel().flush();
}

bool EngineProgress::forget(std::uint64_t asked) {
    return dispatcher_.operations_.forget({static_cast<std::uint32_t>(asked), static_cast<std::uint32_t>(asked >> 32)});
}

bool EngineProgress::go_on_services(const Turn& turn) noexcept {
    bool any = false;
    for (const auto& added : dispatcher_.services_)
        if (added.wants_progress) any |= added.service->go_on(turn);
    return any;
}

bool EngineProgress::wait_until(base::FunctionRef<bool()> done, Instant deadline, const char* what) {
    return dispatcher_.loop_.serve_until(done, deadline, [&] { return std::string(what); });
}

std::string EngineProgress::under_way(const Turn& turn) const {
    constexpr std::size_t named_max = 4;
    std::vector<std::string> parts;
    const Credits& credits = dispatcher_.outbox(turn).credits();
    credits.for_each_owing([&](Node node) {
        if (parts.size() <= named_max)
            parts.push_back(
                fmt::format("requests not handled by {}: {}", dispatcher_.name_of(node), credits.under_way(node)));
    });
    std::map<std::pair<std::string_view, Node>, std::size_t> operations;
    dispatcher_.operations().each_open(turn, [&](const Operation& operation) {
        ++operations[{operation.what, operation.peer}];
    });
    for (const auto& [kind, count] : operations)
        parts.push_back(fmt::format("{} with {}{}", kind.first, dispatcher_.name_of(kind.second),
                                    count == 1 ? "" : fmt::format(" ({} times)", count)));
    if (dispatcher_.outbox(turn).has_waiting())
        parts.push_back(fmt::format("{} to be sent", base::readable_bytes(dispatcher_.outbox(turn).backlog().bytes())));
    if (parts.size() > named_max) {
        parts.resize(named_max);
        parts.push_back("and more");
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

bool EngineProgress::in_handler() const noexcept { return dispatcher_.loop_.has_turn(); }
bool EngineProgress::lend() noexcept { return dispatcher_.loop_.turn_lock().lend(); }
void EngineProgress::reclaim() noexcept { dispatcher_.loop_.turn_lock().reclaim(); }

Duration EngineProgress::sleep_max() const noexcept {
    Duration longest = dispatcher_.peers_.sleep_max();
    if (dispatcher_.services_waiting_ == 0) return longest;
    const Turn turn(dispatcher_.loop_);
    for (const auto& added : dispatcher_.services_) {
        const Instant due = added.wants_progress ? added.service->next_due(turn) : never;
        if (due != never) longest = std::clamp(Duration(due - now()), Duration{0}, longest);
    }
    return longest;
}

bool EngineProgress::run_tasks() noexcept { return dispatcher_.calls_.run_task(); }

} // namespace kumi::engine
