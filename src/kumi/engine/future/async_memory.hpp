#pragma once

// Remote memory by futures: job.memory().async(). A future of each operation says when it is complete and whether it
// has failed; sync() waits for these operations, too, but their errors come to their futures alone.
//
// None of these functions waits for an answer, so any number may be under way; like put() they may wait for room, and
// in a handler they never wait. memory.hpp says what must stay valid for how long.

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/future.hpp"
#include "kumi/engine/global_ptr.hpp"
#include "kumi/engine/memory/atomics.hpp"
#include "kumi/engine/memory/words.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

namespace kumi::engine {

class Dispatcher;

/// What the templates below call. `done` is called once, when the operation is complete or has failed; atomic
/// operations give it the word that was there before. They return the engine's number for the operation, or none if it
/// is done. When they return an error, `done` is not called.
namespace by_bytes {
using Where = global_ptr<std::byte>;
using Done = std::function<void(const Result<Bytes>&)>;
using Asked = Result<std::optional<std::uint64_t>>;

Progress& progress(Dispatcher& dispatcher) noexcept;
Asked begin_put(Dispatcher& dispatcher, Where to, Bytes source, const Notice& notice, Done done);
Asked begin_get(Dispatcher& dispatcher, Where from, MutableBytes target, Done done);
Asked begin_copy(Dispatcher& dispatcher, Where from, Where to, std::size_t bytes, const Notice& notice, Done done);
Asked begin_atomic(Dispatcher& dispatcher, Where word, const Atomic& what, Done done);
} // namespace by_bytes

class AsyncMemory : public AtomicOperations<AsyncMemory> {
public:
    explicit AsyncMemory(Dispatcher& dispatcher) noexcept : dispatcher_(&dispatcher) {}

    /// Copies `source` to the memory of a node. Ready when the data is there, and the notice is carried out. The source
    /// must stay as it is until the future is ready or cancelled.
    template <Value T>
    Future<void> put(global_ptr<T> to, std::span<const std::type_identity_t<T>> source, const Notice& notice = {}) {
        return begin([&](auto done) {
            return by_bytes::begin_put(*dispatcher_, to.template as<std::byte>(), std::as_bytes(source), notice,
                                       std::move(done));
        });
    }
    /// Puts one value, of which this keeps a copy.
    template <Value T>
    Future<void> write(global_ptr<T> to, const std::type_identity_t<T>& value, const Notice& notice = {}) {
        const auto copy = std::make_shared<const T>(value);
        return begin([&](auto done) {
            return by_bytes::begin_put(*dispatcher_, to.template as<std::byte>(), bytes_of(*copy), notice,
                                       [copy, done](const Result<Bytes>& outcome) { done(outcome); });
        });
    }

    /// Copies from the memory of a node. Ready when the data is in `target`, which must stay until the future is ready
    /// or cancelled: also if get() has timed out, or the future is destroyed.
    template <Value T>
    Future<void> get(global_ptr<T> from, std::span<std::type_identity_t<T>> target) {
        return begin([&](auto done) {
            return by_bytes::begin_get(*dispatcher_, from.template as<std::byte>(), std::as_writable_bytes(target),
                                       std::move(done));
        });
    }
    /// Gets one value.
    template <Value T>
    Future<T> read(global_ptr<T> from) {
        const auto target = std::make_shared<T>();
        return begin_for<T>([&](auto complete) {
            return by_bytes::begin_get(*dispatcher_, from.template as<std::byte>(),
                                       std::as_writable_bytes(std::span<T>(target.get(), 1)),
                                       [target, complete](const Result<Bytes>& outcome) {
                                           if (outcome) complete(*target);
                                           else complete(outcome.error());
                                       });
        });
    }

    /// Copies between the memory of two nodes, neither of which need be this one. Ready when the data is there. If
    /// neither node shares this host, a cancelled copy goes on.
    template <Value T>
    Future<void> copy(global_ptr<T> from, global_ptr<T> to, std::size_t count, const Notice& notice = {}) {
        return begin([&](auto done) {
            return by_bytes::begin_copy(*dispatcher_, from.template as<std::byte>(), to.template as<std::byte>(),
                                        bytes_for<T>(count), notice, std::move(done));
        });
    }

private:
    // A Result that is a conditional expression makes g++ 12 warn in programs of an Error that is not initialized, so
    // each outcome has a call of its own.

    friend class AtomicOperations<AsyncMemory>;
    template <class T>
    Future<T> atomic(global_ptr<T> word, const Atomic& what) {
        return begin_for<T>([&](auto complete) {
            return by_bytes::begin_atomic(*dispatcher_, word.template as<std::byte>(), what,
                                          [complete](const Result<Bytes>& outcome) {
                                              if (!outcome) return complete(outcome.error());
                                              std::uint64_t before = 0;
                                              read_value(*outcome, before);
                                              complete(from_word<T>(before));
                                          });
        });
    }

    /// Gives `start` a function that completes the future with a Result<T>.
    template <class T, class Start>
    Future<T> begin_for(Start start) {
        const auto promise = std::make_shared<Promise<T>>(&by_bytes::progress(*dispatcher_));
        Future<T> future = promise->future();
        const by_bytes::Asked asked = start([promise](Result<T> answer) { promise->complete(std::move(answer)); });
        if (!asked) promise->complete(asked.error());
        else if (*asked) promise->set_asked(**asked);
        return future;
    }
    template <class Start>
    Future<void> begin(Start start) {
        return begin_for<void>([&](auto complete) {
            return start([complete](const Result<Bytes>& outcome) {
                if (outcome) complete({});
                else complete(outcome.error());
            });
        });
    }

    Dispatcher* dispatcher_;
};

} // namespace kumi::engine
