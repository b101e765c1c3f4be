#include "kumi/group/collective/deadlock_search.hpp"

#include <algorithm>

namespace kumi::group {
namespace {

constexpr std::size_t chases_max_each = 16; // of a member that begins them; usually it begins one

// Two states in one field.
constexpr std::uint64_t both(Deadlock::State lower, Deadlock::State upper) noexcept {
    return lower | std::uint64_t{upper} << 32;
}
constexpr Deadlock::State lower_of(std::uint64_t both) noexcept { return static_cast<Deadlock::State>(both); }
constexpr Deadlock::State upper_of(std::uint64_t both) noexcept { return static_cast<Deadlock::State>(both >> 32); }

CollectiveHeader with(CollectiveHeader head, MessageKind kind, std::uint64_t bytes) noexcept {
    head.kind = kind;
    head.bytes = bytes;
    return head;
}

} // namespace

bool DeadlockSearch::is_due(const engine::Turn&) noexcept {
    const std::uint64_t looks = seat_.mailbox.dispatcher().peers().looks();
    const bool is_due = looks_.value_or(looks) != looks;
    looks_ = looks;
    return is_due;
}

std::optional<Inbox::Early> DeadlockSearch::take_mismatch(const engine::Turn& turn) {
    Mailbox& mailbox = seat_.mailbox;
    const auto found = std::ranges::find_if(seat_.box.early, [&](const Inbox::Early& early) {
        return early.head.kind == MessageKind::mismatch && !mailbox.mismatches(turn).contains(early.head.came_with) &&
               seat_.box.is_concerned(early.source, early.head);
    });
    if (found == seat_.box.early.end()) return {};
    return mailbox.inboxes(turn).take(seat_.box, found);
}

void DeadlockSearch::ask(const engine::Turn& turn, const CollectiveHeader& own) {
    if (deadlock_.state() == 0 && seat_.box.is_blocked()) {
        deadlock_.block(seat_.mailbox.next_state(turn));
        others_.clear();
    }
    for (const Node node : seat_.members)
        if (seat_.box.is_waiting_for(node))
            seat_.mailbox.post(turn, node, with(own, MessageKind::ask, deadlock_.state()));
}

std::optional<DeadlockSearch::Other> DeadlockSearch::on_message(const engine::Turn& turn, Node source,
                                                                const CollectiveHeader& head, const CallShape& shape,
                                                                const CollectiveHeader& own) {
    if (deadlock_.state() == 0) return {};
    if (head.kind == MessageKind::chase) return on_chase(turn, head, own);
    if (head.kind == MessageKind::stuck) on_stuck(turn, source, head, shape, own);
    else seat_.mailbox.post(turn, source, with(own, MessageKind::stuck, both(lower_of(head.bytes), deadlock_.state())));
    return {};
}

void DeadlockSearch::on_stuck(const engine::Turn& turn, Node source, const CollectiveHeader& head,
                              const CallShape& shape, const CollectiveHeader& own) {
    const Deadlock::Member wait{source, upper_of(head.bytes)};
    if (!seat_.box.is_waiting_for(source) || !deadlock_.add_wait(lower_of(head.bytes), wait)) return;
    for (const Deadlock::Chase& chase : deadlock_.chases()) pass_on(turn, chase, wait, own);
    if (shape.has_same_name(head) && shape.has_same_size(head)) return;
    others_.emplace_back(source, head);
    pass_on(turn, {{seat_.mailbox.dispatcher().node(), deadlock_.state()}, source}, wait, own);
}

std::optional<DeadlockSearch::Other> DeadlockSearch::on_chase(const engine::Turn& turn, const CollectiveHeader& head,
                                                              const CollectiveHeader& own) {
    const Deadlock::Chase chase{{static_cast<Node>(head.came_with), lower_of(head.bytes)}, head.root};
    if (!deadlock_.add_chase(upper_of(head.bytes), chase, chases_max_each * seat_.members.size())) return {};
    if (chase.beginner != Deadlock::Member{seat_.mailbox.dispatcher().node(), deadlock_.state()}) {
        for (const Deadlock::Member& wait : deadlock_.waits()) pass_on(turn, chase, wait, own);
        return {};
    }
    const auto other = std::ranges::find(others_, chase.first, &Other::first);
    if (other == others_.end()) return {};
    return *other;
}

void DeadlockSearch::pass_on(const engine::Turn& turn, const Deadlock::Chase& chase, const Deadlock::Member& to,
                             const CollectiveHeader& own) {
    CollectiveHeader head = with(own, MessageKind::chase, both(chase.beginner.state, to.state));
    head.came_with = chase.beginner.node;
    head.root = chase.first;
    seat_.mailbox.post(turn, to.node, head);
}

} // namespace kumi::group
