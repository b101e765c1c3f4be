#pragma once

// What this node has begun and other nodes complete: gets, atomic operations, copies, calls. An operation ends when the
// other node answers `done` or `failed`, when a service completes or fails it, or when a node that it needs is lost.
// sync() waits for those that the calling thread has begun, and for all requests to be handled (sync_point.hpp).

#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/operation/noted_errors.hpp"
#include "kumi/engine/operation/operations.hpp"
#include "kumi/engine/operation/sync_point.hpp"
#include "kumi/engine/service.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kumi::engine {

class OperationService final : public Service {
public:
    explicit OperationService(Dispatcher& dispatcher);

    OperationId begin(const Turn&, Operation operation) { return operations_.begin(std::move(operation)); }
    /// Takes the turn itself.
    OperationId begin(Operation operation);
    /// Null: the operation has ended.
    Operation* find(const Turn&, OperationId id) noexcept { return operations_.find(id); }
    /// Ends an operation without a result: what still arrives for it is dropped.
    void end(const Turn&, OperationId id) noexcept { operations_.end(id); }
    /// Takes the turn itself. For an operation whose request could not be sent.
    void end(OperationId id) noexcept;
    void complete(const Turn& turn, OperationId id);
    void fail(const Turn& turn, OperationId id, Error why);
    /// Waits for an operation that was begun with `is_waited_for`, ends it, and returns its value.
    Result<std::uint64_t> wait_for(OperationId id, Instant deadline = never);
    /// Ends an operation whose answer nobody wants any more. False: it had ended before.
    bool forget(OperationId id);
    /// Something is under way that no other node answers by its number. sync() waits for it until it is released.
    [[nodiscard]] OperationId hold(const Turn& turn, const char* what);
    void release(const Turn&, OperationId held) noexcept { operations_.end(held); }

    /// Tells `to` that its operation is complete.
    void reply_done(const Turn& turn, Node to, OperationId operation, std::uint64_t value = 0);
    /// Tells `to` that its operation, or a request without one, has failed here.
    void refuse(const Turn& turn, Node to, OperationId operation, const Error& why);

    /// Waits until everything that this thread has begun is done, and returns the first error of this thread since its
    /// last sync().
    Result<void> sync(Instant deadline);
    /// Does not wait: sets `flag` to 1 then.
    Result<void> start_sync(Flag& flag);
    bool has_syncs(const Turn&) const noexcept { return !syncs_.empty(); }
    /// Sets the flags of those start_sync() that are done, and asks other nodes for credits for the others.
    void check_syncs(const Turn& turn);

    /// Keeps the first error of a thread (0: not known) until its sync() takes it; further errors are logged. An error
    /// of a flag is taken by a wait for it, too. One that a wait has returned is replaced by the next.
    void note_error(const Turn& turn, Error why, std::uint32_t thread = 0, const Flag* flag = nullptr);
    /// The first error that ends the wait of this thread for `flag`, if there is one; NotedErrors::end_wait().
    std::optional<Error> error_of_wait(const Turn& turn, const Flag& flag);
    /// `lost` has not told to have handled `requests`: an error of each thread that sent one of them.
    void note_unhandled(const Turn& turn, Node lost, std::span<const Header> requests);
    /// Something that `thread` sent to `lost` may not have arrived: an error, unless the thread has another one.
    void note_lost(const Turn& turn, Node lost, std::uint32_t thread);
    /// The thread to which an error of `thread` belongs: 0 for the background, which never calls sync().
    std::uint32_t thread_to_tell(const Turn& turn, std::uint32_t thread) const noexcept;
    /// Calls with each operation that is not done.
    template <class Visit>
    void each_open(const Turn&, Visit&& visit) const {
        operations_.each(visit);
    }
    /// The engine is about to end: waits for answers to what this node has begun, because they may be errors that
    /// nobody would be told of. For a moment only: other nodes may compute, or have left.
    void await_errors();
    /// The engine ends, and no other thread uses it any more: ends all operations, and logs an error that neither
    /// sync() nor a wait has returned.
    void close() noexcept;

private:
    Handled on_message(const Turn& turn, Node source, std::uint16_t kind, Bytes body) override;
    void check_silent_peers(const Turn& turn) noexcept override;
    /// Fails all operations that need `lost`.
    void on_lost(const Turn& turn, Node lost) noexcept override;

    bool on_done(const Turn& turn, Node source, Bytes body);
    bool on_failed(const Turn& turn, Node source, Bytes body);
    Dispatcher& dispatcher_;
    Port port_;
    Operations operations_;
    struct StartedSync {
        Flag* flag; // to be set
        SyncPoint point;
    };
    std::vector<StartedSync> syncs_;
    NotedErrors errors_;
};

} // namespace kumi::engine
