#include "kumi/group/answers/fetches.hpp"

#include "kumi/base/system/machine.hpp"
#include "kumi/group/wire/message.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace kumi::group {

std::vector<HeldValue> take_held(std::vector<std::byte>& values, const Set& members) {
    std::vector<HeldValue> held;
    Set seen;
    std::size_t kept = 0; // bytes of the others, which move to the front
    for (std::size_t at = 0; at < values.size();) {
        ValueHead head;
        if (!read_value(Bytes(values).subspan(at), head)) break;
        const bool is_held = (head.bytes & held_flag) != 0;
        const std::size_t size = sizeof head + (is_held ? 0 : head.bytes);
        if (size > values.size() - at) break;
        if (!is_held) {
            if (kept != at) std::memmove(values.data() + kept, values.data() + at, size);
            kept += size;
        } else if (members.contains(head.node) && !seen.contains(head.node)) {
            seen.add(head.node);
            held.push_back({head.node, head.bytes & ~held_flag});
        }
        at += size;
    }
    values.resize(kept);
    return held;
}

void Fetches::begin(const engine::Turn& turn, std::uint64_t sequence, const Set& to, const std::vector<HeldValue>& held,
                    Outcome outcome, Ended ended) {
    Fetching fetching{.to = to, .values = {}, .outcome = std::move(outcome), .ended = std::move(ended)};
    fetching.bytes = fetching.outcome.values.size();
    for (const HeldValue& value : held) {
        fetching.bytes += value.bytes;
        fetching.values.push_back({value.node, value.bytes, {}});
    }
    const auto added = under_way_.emplace(sequence, std::move(fetching)).first;
    if (const std::uint64_t bytes = added->second.bytes; bytes > bytes_max_)
        return end(turn, added,
                   error(ErrorCode::too_large, "multicast to {}: the answers take {}; the most is {}", to.text(),
                         base::readable_bytes_beside(bytes, bytes_max_), base::readable_bytes(bytes_max_)));
    begin_more(turn);
}

/// Begins those that there is room for, in the order of their sequences.
void Fetches::begin_more(const engine::Turn& turn) {
    for (auto at = under_way_.begin(); at != under_way_.end();) {
        const std::uint64_t sequence = at->first;
        Fetching& fetching = at->second;
        if (!fetching.has_begun) {
            if (bytes_ != 0 && fetching.bytes > bytes_max_ - bytes_) return;
            fetching.has_begun = true;
            bytes_ += fetching.bytes;
            go_on(turn, at);
        }
        at = under_way_.upper_bound(sequence); // what is told of the end may have begun or ended others
    }
}

/// Asks for values as far as it may, and ends it when all are here.
void Fetches::go_on(const engine::Turn& turn, Table::iterator at) {
    Fetching& fetching = at->second;
    while (fetching.asked < fetching.values.size() && fetching.open < members_at_once_max)
        ask(turn, at->first, fetching, fetching.values[fetching.asked++]);
    if (fetching.open == 0) end(turn, at, {});
}

void Fetches::ask(const engine::Turn& turn, std::uint64_t sequence, Fetching& fetching, Value& value) {
    const Name name{dispatcher_.node(), sequence};
    if (!value.is_open) ++fetching.open;
    value.is_open = true;
    if (value.node == dispatcher_.node()) {
        auto own = own_.take(name);
        if (!own) return drop(fetching, value);
        value.data = *std::move(own);
        value.is_open = false;
        --fetching.open;
    } else if (dispatcher_.peers().is_gone(value.node)) {
        drop(fetching, value);
    } else {
        queue_.send(turn, value.node, message_of(Fetch{Kind::fetch, 0, name, value.data.size()}));
    }
}

/// The answer will not come.
void Fetches::drop(Fetching& fetching, Value& value) {
    fetching.outcome.missing.add(value.node);
    value.data = {};
    value.bytes = 0;
    value.is_open = false;
    --fetching.open;
}

bool Fetches::on_fetched(const engine::Turn& turn, Node source, Bytes bytes) {
    Fetched head;
    if (!take(bytes, head) || head.name.master != dispatcher_.node()) return false;
    const auto found = under_way_.find(head.name.sequence);
    if (found == under_way_.end()) return true; // it has failed meanwhile
    Fetching& fetching = found->second;
    const auto value =
        std::ranges::find_if(fetching.values, [&](const Value& one) { return one.node == source && one.is_open; });
    if (value == fetching.values.end()) return false;
    const bool is_gone = head.is_gone != 0;
    const bool is_sound = is_gone || (head.offset == value->data.size() && !bytes.empty() &&
                                      bytes.size() <= value->bytes - value->data.size());
    if (is_gone || !is_sound) {
        if (!is_sound) say_unwanted(turn, head.name.sequence, source);
        drop(fetching, *value);
        go_on(turn, found);
        return is_sound;
    }
    try {
        value->data.insert(value->data.end(), bytes.begin(), bytes.end());
    } catch (const std::bad_alloc&) {
        end(turn, found,
            error(ErrorCode::no_memory, "multicast to {}: no memory for {} of answers", fetching.to.text(),
                  base::readable_bytes(fetching.bytes)));
        return true;
    }
    if (value->data.size() < value->bytes) {
        ask(turn, head.name.sequence, fetching, *value);
    } else {
        value->is_open = false;
        --fetching.open;
    }
    go_on(turn, found);
    return true;
}

/// Takes it off the table, says to members which of their answers are not wanted, and tells the program.
void Fetches::end(const engine::Turn& turn, Table::iterator at, Result<void> result) {
    const std::uint64_t sequence = at->first;
    Fetching fetching = std::move(at->second);
    under_way_.erase(at);
    if (fetching.has_begun) bytes_ -= fetching.bytes;
    if (!result) {
        for (const Value& value : fetching.values)
            if (value.data.size() < value.bytes) say_unwanted(turn, sequence, value.node);
        fetching.ended(result.error());
    } else {
        for (Value& value : fetching.values)
            if (value.bytes != 0) fetching.outcome.fetched.emplace_back(value.node, std::move(value.data));
        fetching.ended(std::move(fetching.outcome));
    }
    dispatcher_.progress().wake(); // threads that wait for the outcome
    begin_more(turn);
}

void Fetches::release(const engine::Turn& turn, std::uint64_t sequence, const Set& members) {
    for (const Node node : members) say_unwanted(turn, sequence, node);
}

void Fetches::say_unwanted(const engine::Turn& turn, std::uint64_t sequence, Node node) {
    const Name name{dispatcher_.node(), sequence};
    if (node == dispatcher_.node()) (void)own_.take(name);
    else queue_.send(turn, node, message_of(Fetch{Kind::fetch, 1, name, 0}));
}

void Fetches::on_lost(const engine::Turn& turn, Node node) {
    for (auto at = under_way_.begin(); at != under_way_.end();) {
        const auto here = at++;
        const std::uint64_t sequence = here->first;
        Fetching& fetching = here->second;
        const auto value =
            std::ranges::find_if(fetching.values, [&](const Value& one) { return one.node == node && one.is_open; });
        if (value == fetching.values.end()) continue;
        drop(fetching, *value);
        go_on(turn, here);
        at = under_way_.upper_bound(sequence); // what is told of the end may have begun or ended others
    }
}

void Fetches::add_awaited(const engine::Turn&, Set& nodes) const {
    for (const auto& [sequence, fetching] : under_way_)
        for (const Value& value : fetching.values)
            if (value.is_open) nodes.add(value.node);
}

} // namespace kumi::group
