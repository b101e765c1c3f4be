#pragma once

// What a sync() waits for: all that the calling thread has begun before, and all requests that this node has sent
// before. Nothing that begins later is waited for, so a sync() ends while handlers and other threads go on. Operations
// of other threads are not waited for either: a function that calls sync() would wait for the call that it answers.
//
// A request of this thread has been handled when the other node has told a count that reaches the request's number,
// though the other node may handle requests in another order: it holds back requests to handlers, and handles puts that
// came later. Such a node counts no request that came after a held one (Credits::on_kept()).

#include "kumi/engine/operation/operations.hpp"
#include "kumi/engine/sending/outbox.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace kumi::engine {

class SyncPoint {
public:
    /// All that `thread` has begun until now.
    SyncPoint(std::uint32_t thread, const Operations& operations, const Outbox& outbox)
        : operations_(operations.count() == 0 ? std::vector<OperationId>() : operations.open_of(thread)),
          had_operations_(!operations_.empty()) {
        note_requests(outbox);
    }

    /// Looks again. Asks nodes for credits where that is still to come.
    bool is_reached(Operations& operations, Outbox& outbox) {
        std::erase_if(operations_, [&](OperationId id) {
            const Operation* const operation = operations.find(id);
            return operation == nullptr || operation->is_done;
        });
        // A large put is an operation until its last request has gone, which is to be handled, too.
        if (operations_.empty() && std::exchange(had_operations_, false)) note_requests(outbox);
        std::erase_if(requests_, [&](const auto& request) {
            const auto& [node, number] = request;
            if (outbox.credits().has_handled(node, number)) return true;
            outbox.ask_for_credit(node);
            return false;
        });
        return operations_.empty() && requests_.empty();
    }
    /// Nodes that have not handled all.
    std::vector<Node> missing_nodes() const {
        std::vector<Node> nodes;
        for (const auto& [node, number] : requests_) nodes.push_back(node);
        return nodes;
    }

private:
    void note_requests(const Outbox& outbox) {
        requests_.clear();
        if (outbox.credits().all_handled()) return;
        outbox.credits().for_each_owing(
            [&](Node node) { requests_.emplace_back(node, outbox.credits().last_request(node)); });
    }

    std::vector<OperationId> operations_;
    bool had_operations_;
    std::vector<std::pair<Node, std::uint64_t>> requests_; // up to which number, by node
};

} // namespace kumi::engine
