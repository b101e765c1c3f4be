#include "kumi/group/collective/objects.hpp"

#include "kumi/group/collective/collective_call.hpp"
#include "kumi/group/collective/moving.hpp"
#include "kumi/group/collective/rank_tree.hpp"
#include "kumi/group/started/calling.hpp"

#include <utility>

namespace kumi::group {
namespace {

/// Whole, down the tree. All but the root learn the size from what comes.
Steps pass_down(CollectiveCall& call, Node root, std::size_t step, std::vector<std::byte>& content) {
    const RankTree tree(call.seat(), root);
    std::size_t level = tree.top();
    for (auto link = tree.next_down(level); link; link = tree.next_down(level)) {
        if (!link->is_up) {
            call.send(link->other, step, content);
            continue;
        }
        call.receive_any(link->other, step, content);
        co_await call.wait_received();
    }
    co_await call.wait();
}

// Functions of their own, not inlined: clang 14 does not tell AddressSanitizer what a coroutine has on the stack.
[[gnu::noinline]] void write_folded(CollectiveCall& call, Folding& folding, std::vector<std::byte>& content) {
    const engine::Dispatcher& dispatcher = call.seat().mailbox.dispatcher();
    const std::string here = dispatcher.name_of(dispatcher.node());
    call.run([&folding, &content, &here]() -> Result<void> {
        auto written = folding.written();
        if (!written) return error(written.error().code(), "{}: {}", here, written.error().text());
        content = *std::move(written);
        return {};
    });
}
[[gnu::noinline]] void fold_in(CollectiveCall& call, Folding& folding, Node from, const std::vector<std::byte>& came) {
    const Membership& seat = call.seat();
    call.run([&folding, &seat, from, &came]() -> Result<void> { return folding.combine(seat, from, came); });
}

/// Up the tree: a member combines what comes with what it has, and passes it on. The root has all of it in the end.
Steps pass_up(CollectiveCall& call, Node root, Folding& folding, std::vector<std::byte>& content) {
    const Membership& seat = call.seat();
    const RankTree tree(seat, root);
    std::size_t level = 0;
    std::vector<std::byte> came;
    for (auto link = tree.next_up(level); link; link = tree.next_up(level)) {
        if (link->is_up) {
            write_folded(call, folding, content);
            call.send(link->other, 0, content);
            continue;
        }
        came.clear();
        call.receive_any(link->other, 0, came);
        co_await call.wait_received();
        fold_in(call, folding, link->other, came);
    }
    co_await call.wait();
    if (seat.rank == root) write_folded(call, folding, content);
    else content.clear();
}

Steps reduce_and_tell(CollectiveCall& call, std::optional<Node> root, Folding& folding,
                      std::vector<std::byte>& content) {
    co_await pass_up(call, root.value_or(0), folding, content);
    if (!root) co_await pass_down(call, 0, 1, content);
    co_await call.wait();
}

/// A call in which this member gives objects. A member that has none goes through the steps with nothing.
struct Giving {
    Collective collective;
    Node root;
    Given given;
    Parts parts = {};
    std::vector<Bytes> list = {};

    CallShape shape() const noexcept { return {.collective = collective, .root = root, .takes_any_size = true}; }
    Bytes first() const noexcept { return given.objects.empty() ? Bytes{} : Bytes(given.objects.front()); }
    void begin(CollectiveCall& call) {
        if (!given.refusal.empty()) call.refuse(given.refusal);
        list.assign(given.objects.begin(), given.objects.end());
        if (!given.refusal.empty()) list.resize(call.seat().size());
    }
};

struct GivingOne : Giving {
    using Answer = std::vector<std::byte>;
    std::vector<std::byte> content = {};
    Steps steps(CollectiveCall& call) {
        begin(call);
        if (collective == Collective::scatter_objects) return scatter_parts(call, root, list, content);
        if (call.seat().rank == root) call.copy(content, first());
        return pass_down(call, root, 0, content);
    }
    Answer take() { return std::move(content); }
};

struct GivingAll : Giving {
    using Answer = Parts;
    Steps steps(CollectiveCall& call) {
        begin(call);
        if (collective == Collective::alltoall_objects) return exchange_parts(call, list, parts);
        if (collective == Collective::allgather_objects) return allgather_parts(call, first(), parts);
        return gather_parts(call, root, first(), parts);
    }
    Answer take() { return std::move(parts); }
};

struct FoldingCall {
    using Answer = std::vector<std::byte>;
    std::optional<Node> root; // none: all members get the result
    std::unique_ptr<Folding> folding;
    std::vector<std::byte> content = {};

    CallShape shape() const noexcept {
        return {.collective = root ? Collective::reduce_objects : Collective::allreduce_objects,
                .root = root.value_or(0),
                .takes_any_size = true};
    }
    Steps steps(CollectiveCall& call) { return reduce_and_tell(call, root, *folding, content); }
    Answer take() { return std::move(content); }
};

template <class What>
Future<typename What::Answer> start_with(Membership& seat, What what, const Terms& terms) {
    return start(seat, std::move(what), terms.deadline, terms.is_waited_for);
}

} // namespace

Node rank_of(const Membership& seat) noexcept { return seat.rank; }

Error not_an_object(const Membership& seat, Node rank) {
    return error(ErrorCode::refused, "node {} has sent what is no object of this type: {}", seat.members[rank],
                 error_of_thrown(ErrorCode::refused).text());
}

Error cannot_be_sent() {
    return error(ErrorCode::refused, "its object cannot be sent: {}", error_of_thrown(ErrorCode::refused).text());
}

Error error_among(const Membership& seat, const Error& why) {
    return error(why.code(), "objects among {}: {}", seat.set.text(), why.text());
}

Future<std::vector<std::byte>> start_broadcast_object(Membership& seat, Node root, Given given, const Terms& terms) {
    return start_with(seat, GivingOne{{Collective::broadcast_object, root, std::move(given)}}, terms);
}

Future<Parts> start_gather_objects(Membership& seat, Node root, Given given, const Terms& terms) {
    return start_with(seat, GivingAll{{Collective::gather_objects, root, std::move(given)}}, terms);
}

Future<Parts> start_allgather_objects(Membership& seat, Given given, const Terms& terms) {
    return start_with(seat, GivingAll{{Collective::allgather_objects, 0, std::move(given)}}, terms);
}

Future<std::vector<std::byte>> start_scatter_objects(Membership& seat, Node root, Given given, const Terms& terms) {
    return start_with(seat, GivingOne{{Collective::scatter_objects, root, std::move(given)}}, terms);
}

Future<Parts> start_alltoall_objects(Membership& seat, Given given, const Terms& terms) {
    return start_with(seat, GivingAll{{Collective::alltoall_objects, 0, std::move(given)}}, terms);
}

Future<std::vector<std::byte>> start_reduce_objects(Membership& seat, Node root, std::unique_ptr<Folding> folding,
                                                    const Terms& terms) {
    return start_with(seat, FoldingCall{root, std::move(folding)}, terms);
}

Future<std::vector<std::byte>> start_allreduce_objects(Membership& seat, std::unique_ptr<Folding> folding,
                                                       const Terms& terms) {
    return start_with(seat, FoldingCall{{}, std::move(folding)}, terms);
}

} // namespace kumi::group
