#include "kumi/engine/memory/flags.hpp"

#include "kumi/base/sync/memory_policy.hpp"
#include "kumi/engine/dispatcher.hpp"
#include "kumi/engine/memory/memory_map.hpp"

#include <optional>

namespace kumi::engine {

bool Flags::apply_some(Node node, const Notice& notice) noexcept {
    const std::size_t bytes = notice.kind == Notice::Kind::set ? sizeof(Flag) : sizeof(Counter);
    std::byte* const where = map_.find(node, notice.segment, notice.offset, bytes);
    if (where == nullptr || reinterpret_cast<std::uintptr_t>(where) % alignof(Flag) != 0) return false;
    if (notice.kind == Notice::Kind::set) {
        store_flag(*reinterpret_cast<Flag*>(where), notice.value);
    } else {
        Counter& counter = *reinterpret_cast<Counter*>(where);
        // Release and acquire: the last notice shows the data of all.
        if (std::atomic_ref(counter.missing).fetch_sub(1, std::memory_order_acq_rel) != 1) return true;
        store_flag(counter.flag, 1);
    }
    nudge(node);
    return true;
}

Result<void> Flags::check(const char* what, Node node, const Notice& notice) const {
    if (notice.kind == Notice::Kind::none) return {};
    const std::size_t bytes = notice.kind == Notice::Kind::set ? sizeof(Flag) : sizeof(Counter);
    if (notice.offset % alignof(Flag) == 0 && map_.contains(node, notice.segment, notice.offset, bytes)) return {};
    return error(ErrorCode::not_found, "{} at {}: there is no flag or counter at {} of segment {}", what,
                 dispatcher_.name_of(node), notice.offset, notice.segment);
}

Error Flags::explain(const char* what, Node node, const Notice& notice) const {
    return error(ErrorCode::not_found, "{} at {}: there is no flag or counter at {} of segment {}; the data is there",
                 what, dispatcher_.name_of(node), notice.offset, notice.segment);
}

void Flags::expect(Counter& counter, std::int64_t arrivals) {
    store_flag(counter.flag, 0);
    if (std::atomic_ref(counter.missing).fetch_add(arrivals, std::memory_order_acq_rel) != -arrivals) return;
    store_flag(counter.flag, 1);
    nudge(dispatcher_.node());
}

Result<void> Flags::wait(const Flag& flag, Flag value, Instant deadline, Test test) {
    if (value == 0) test = Test::equal; // every flag is 0 or more
    const auto has_come = [&] { return test == Test::equal ? load_flag(flag) == value : load_flag(flag) >= value; };
    if (has_come()) return {};
    if (dispatcher_.progress().in_handler())
        return error(ErrorCode::misuse, "waiting for a flag: a handler must not wait");
    bool is_set = false;          // its next value may come before this thread looks again
    std::optional<Error> failure; // ends the wait of one thread; the others go on
    const auto is_over = [&](const Turn& turn) {
        if (is_set || (is_set = has_come())) return true;
        if (!failure) failure = dispatcher_.operations().error_of_wait(turn, flag);
        return failure.has_value();
    };
    const auto describe = [&] {
        return fmt::format("waiting for a flag: it is {} and not {}{}", load_flag(flag), value,
                           test == Test::at_least ? " or more" : "");
    };
    dispatcher_.loop().serve_until(is_over, deadline, describe);
    if (is_set) return {};
    if (failure) return error(failure->code(), "waiting for a flag: {}", failure->text());
    return error(ErrorCode::timed_out, "{} after the time given", describe());
}

// ---- sleepers

void Flags::nudge(Node node) noexcept {
    base::MachineMemory::full_fence(); // partner: the fence in begin_watch()
    nudge_after_fence(node);
}

void Flags::nudge_after_fence(Node node) noexcept {
    SharedPage& page = map_.page(node);
    if (page.watching.load(std::memory_order_relaxed) == 0) return; // ordered by the fence
    if (page.watching.exchange(0) == 0) return;                     // another thread or node does it
    const Turn turn = dispatcher_.take_turn();
    if (node == dispatcher_.node()) return dispatcher_.loop().wake_waiters(turn);
    Outgoing<0> nothing(Kind::nudge, false);
    dispatcher_.outbox(turn).reply(node, nothing.bytes());
}

void Flags::begin_watch(const Turn&) noexcept {
    ++watchers_;
    map_.page(dispatcher_.node()).watching.store(1);
    base::MachineMemory::full_fence(); // partner: the fence in nudge()
}

void Flags::end_watch(const Turn&) noexcept {
    if (--watchers_ == 0) map_.page(dispatcher_.node()).watching.store(0);
}

} // namespace kumi::engine
