#include "kumi/group/source/remote_sources.hpp"

#include "kumi/base/system/machine.hpp"
#include "kumi/engine/memory/memory_map.hpp"
#include "kumi/engine/progress/borrowed_time.hpp"
#include "kumi/group/wire/message.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <new>
#include <utility>

namespace kumi::group {
namespace {

constexpr std::size_t text_bytes_max = 1024;

} // namespace

RemoteSources::RemoteSources(engine::Dispatcher& dispatcher, Multicasts& multicasts)
    : dispatcher_(dispatcher), port_(dispatcher.add_service(*this)), multicasts_(multicasts) {}

// ---- the node that asks

void RemoteSources::ask(global_ptr<std::byte> from, std::size_t bytes, const Set& to, std::uint32_t places,
                        Bytes arguments, Ended ended) {
    const auto number = note_asked(from.node(), ended);
    if (!number) return ended(number.error());
    std::vector<std::byte> body;
    append(body, arguments);
    to.encode(body);
    const SourceAsk head{*number, engine::place_of(from), bytes, places, 0};
    const auto sent = port_.request(from.node(), source_ask_kind, head, body);
    if (sent) return;
    const auto turn = dispatcher_.take_turn();
    end(turn, *number, sent.error());
}

/// Its number. `ended` stays as it is where there is none.
Result<std::uint64_t> RemoteSources::note_asked(Node source, Ended& ended) {
    std::uint64_t number = 0;
    bool is_stuck = false;
    engine::BorrowedTime borrowed;
    const auto note = [&](const engine::Turn& turn) {
        if (number != 0 || has_ended_) return true;
        if (asked_.size() >= asked_max)
            return is_stuck = borrowed.is_over(turn, dispatcher_.loop().stuck_after());
        number = ++last_number_;
        const auto held = dispatcher_.operations().hold(turn, "multicast from memory");
        asked_.emplace(number, Asked{source, held, std::move(ended)});
        return true;
    };
    const auto describe = [&] {
        return fmt::format("multicast from memory: {} are under way, which must end first", asked_max);
    };
    if (dispatcher_.progress().in_handler()) {
        if (!note(dispatcher_.take_turn()))
            return error(ErrorCode::misuse, "{}, and a handler must not wait", describe());
    } else {
        dispatcher_.loop().wait_for_room(note, describe);
    }
    if (number != 0) return number;
    if (is_stuck) return error(ErrorCode::misuse, "{}, and {}", describe(), engine::BorrowedTime::advice);
    return error(ErrorCode::ended, "multicast from memory: the job has ended");
}

bool RemoteSources::on_ended(const engine::Turn& turn, Node source, Bytes body) {
    SourceEnded head;
    if (!take(body, head)) return false;
    auto missing = Set::decode(body, dispatcher_.nodes());
    if (!missing || body.size() > text_bytes_max) return false;
    const auto found = asked_.find(head.number);
    if (found == asked_.end()) return true; // it has failed already
    if (found->second.source != source) return false;
    if (head.has_failed != 0) {
        end(turn, head.number, Error(error_code_of(head.code), std::string(kumi::text_of(body))));
    } else {
        Outcome outcome;
        outcome.missing = *std::move(missing);
        end(turn, head.number, std::move(outcome));
    }
    return true;
}

void RemoteSources::end(const engine::Turn& turn, std::uint64_t number, Result<Outcome> outcome) {
    const auto found = asked_.find(number);
    if (found == asked_.end()) return;
    Asked asked = std::move(found->second);
    asked_.erase(found);
    dispatcher_.operations().release(turn, asked.held);
    dispatcher_.loop().wake_waiters(turn); // a thread may be in sync()
    asked.ended(std::move(outcome));
}

// ---- the source

engine::Handled RemoteSources::on_message(const engine::Turn& turn, Node source, std::uint16_t kind, Bytes body) {
    switch (kind) {
    case source_ask_kind: return engine::handled_if(on_ask(turn, source, body));
    case source_ended_kind: return engine::handled_if(on_ended(turn, source, body));
    default: return engine::Handled::no;
    }
}

bool RemoteSources::on_ask(const engine::Turn& turn, Node source, Bytes body) {
    Wanted wanted{source, {}, {}, {}};
    if (!take(body, wanted.head)) return false;
    const auto refuse = [&](std::string_view why) {
        const auto refusal = error(ErrorCode::misuse, "multicast from memory: {}", why);
        return tell(turn, source, wanted.head.number, refusal), true;
    };
    constexpr std::string_view unsound = "what was asked for makes no sense";
    if (body.size() < sizeof(StoreHead) || wanted.head.places > (body.size() - sizeof(StoreHead)) / sizeof(StorePlace))
        return refuse(unsound);
    const std::size_t arguments_bytes = sizeof(StoreHead) + wanted.head.places * sizeof(StorePlace);
    append(wanted.arguments, body.first(arguments_bytes));
    body = body.subspan(arguments_bytes);
    auto to = Set::decode(body, dispatcher_.nodes());
    if (!to || !body.empty()) return refuse(unsound);
    wanted.to = *std::move(to);
    if (waiting_.empty() && try_begin(turn, wanted)) return true;
    if (std::ranges::count(waiting_, source, &Wanted::by) >= static_cast<std::ptrdiff_t>(asked_max))
        return refuse("too much is asked for at a time");
    waiting_.push_back(std::move(wanted));
    port_.want_progress(turn, true);
    return true;
}

/// False: too much is under way.
bool RemoteSources::try_begin(const engine::Turn& turn, const Wanted& wanted) {
    const auto& [number, from, bytes, places, reserved] = wanted.head;
    const engine::MemoryMap& map = dispatcher_.segments().map();
    const Node self = dispatcher_.node();
    const std::byte* const values = map.find(self, from.segment, from.offset, bytes);
    if (values == nullptr) {
        const auto why = map.explain(self, from.segment, from.offset, bytes);
        tell(turn, wanted.by, number, error(ErrorCode::not_found, "multicast from memory: {}", why));
        return true;
    }
    Ended ended = [this, by = wanted.by, number = number](Result<Outcome> outcome) {
        --begun_;
        tell(dispatcher_.take_turn(), by, number, outcome);
    };
    ++begun_;
    try {
        const Pieces content(wanted.arguments, {values, bytes});
        if (multicasts_.try_start(turn, wanted.to, {Use::store, places, 0}, content, ended)) return true;
    } catch (const std::bad_alloc&) {
        if (ended)
            ended(error(ErrorCode::no_memory, "multicast from memory: no memory for a copy of {}",
                        base::readable_bytes(bytes)));
        return true;
    }
    --begun_;
    return false;
}

void RemoteSources::tell(const engine::Turn& turn, Node to, std::uint64_t number, const Result<Outcome>& outcome) {
    std::vector<std::byte> body;
    (outcome ? outcome->missing : Set()).encode(body);
    SourceEnded head{number, 0, 0};
    if (!outcome) {
        head.has_failed = 1;
        head.code = static_cast<std::uint32_t>(outcome.error().code());
        const std::string text = fmt::format("{}: {}", dispatcher_.name_of(dispatcher_.node()), outcome.error().text());
        append(body, bytes_of(std::string_view(text).substr(0, text_bytes_max)));
    }
    port_.reply(turn, to, source_ended_kind, head, body);
}

bool RemoteSources::go_on(const engine::Turn& turn) noexcept {
    bool any = false;
    while (!waiting_.empty() && try_begin(turn, waiting_.front())) {
        waiting_.pop_front();
        any = true;
    }
    port_.want_progress(turn, !waiting_.empty());
    return any;
}

// ---- nodes that are silent or lost

void RemoteSources::check_silent_peers(const engine::Turn&) noexcept {
    Set awaited;
    for (const auto& [number, asked] : asked_) awaited.add(asked.source);
    for (const Node node : awaited) dispatcher_.send_keepalive(node);
}

void RemoteSources::on_lost(const engine::Turn& turn, Node node) noexcept {
    std::erase_if(waiting_, [&](const Wanted& wanted) { return wanted.by == node; });
    std::vector<std::uint64_t> hopeless;
    for (const auto& [number, asked] : asked_)
        if (asked.source == node) hopeless.push_back(number);
    for (const std::uint64_t number : hopeless)
        end(turn, number, error(ErrorCode::node_lost, "multicast from memory: {}, which has the values, has left or is "
                                                      "lost; some members may have got them",
                                dispatcher_.name_of(node)));
}

void RemoteSources::on_end(const engine::Turn&) noexcept {
    has_ended_ = true;
    waiting_.clear();
    const auto asked = std::move(asked_); // with the callbacks, at the end of this
    asked_.clear();
}

} // namespace kumi::group
