#pragma once

// What this node has begun and others complete: each has a number that travels with it and comes back. A number is good
// once: what answers twice, or to somebody else's, finds nothing. One thread at a time uses it.

#include "kumi/base/bytes.hpp"
#include "kumi/base/data/numbered.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/wire.hpp"
#include "kumi/pm/node.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace kumi::engine {

using pm::Node;

struct Operation {
    /// Called once, with the answer or the reason why there is none.
    using Answered = std::function<void(const Result<Bytes>&)>;

    Node peer = 0; // who completes it
    std::uint32_t thread = 0; // base::thread_number() of the thread that began it; set by Operations
    const char* what = ""; // for people: "get"
    std::byte* target = nullptr; // where data goes, if any is to come
    std::uint64_t bytes = 0;     // of data in all
    std::uint64_t left = 0;      // of these, still to come
    std::uint64_t block_bytes = 0; // data goes to blocks of this size, if not zero,
    std::int64_t stride = 0;       // at this distance
    std::uint64_t value = 0;
    Flag* flag = nullptr;        // of this node, to be set when it is done
    Flag flag_value = 1;
    bool is_waited_for = false;  // somebody looks at it, and ends it
    bool is_for_sync = true;     // sync() waits for it
    bool answers_value = false;  // `answered` is given the value
    bool is_done = false;
    std::optional<Error> failure;
    Answered answered;

    void reset() noexcept { *this = {}; }
    /// Whether it is that node's to complete or to refuse.
    bool is_from(Node source) const noexcept { return source == peer; }
};

class Operations {
public:
    OperationId begin(Operation operation);
    /// Null: there is none of that number any more.
    Operation* find(OperationId id) noexcept;
    void end(OperationId id) noexcept;
    /// Ends all.
    void clear() noexcept;

    /// Those that sync() waits for, of all threads.
    std::size_t count() const noexcept { return count_; }
    /// Of these, those that are not done and that `thread` has begun.
    std::vector<OperationId> open_of(std::uint32_t thread) const;
    /// Calls with all that are not done.
    template <class Visit>
    void each(Visit&& visit) const {
        table_.for_each([&](const Operation& operation) {
            if (!operation.is_done) visit(operation);
        });
    }
    /// Calls with each that cannot be completed without `peer`.
    template <class Visit>
    void each_of(Node peer, Visit&& visit) const {
        table_.for_each([&](OperationId id, const Operation& operation) {
            if (operation.peer == peer) visit(id);
        });
    }

private:
    base::Numbered<Operation, OperationId> table_;
    std::size_t count_ = 0;
};

} // namespace kumi::engine
