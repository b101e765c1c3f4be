#include "kumi/engine/future/async_memory.hpp"

#include "kumi/engine/dispatcher.hpp"
#include "kumi/engine/memory/flags.hpp"
#include "kumi/engine/memory/memory_map.hpp"

namespace kumi::engine::by_bytes {
namespace {

std::optional<std::uint64_t> number_of(OperationId id) noexcept {
    return std::uint64_t{id.generation} << 32 | id.index;
}

/// A continuation may begin something while the engine ends: that would never be answered.
Result<void> check_running(const char* what, Dispatcher& dispatcher) {
    if (!dispatcher.progress().link()->has_ended()) return {};
    return error(ErrorCode::ended, "{}: the job has ended", what);
}

/// It was done by this thread.
Asked finish(const Result<void>& outcome, const Done& done) {
    if (!outcome) return outcome.error();
    done(Bytes{});
    return std::optional<std::uint64_t>();
}

} // namespace

Progress& progress(Dispatcher& dispatcher) noexcept { return dispatcher.progress(); }

Asked begin_put(Dispatcher& dispatcher, Where to, Bytes source, const Notice& notice, Done done) {
    if (auto good = check_running("put", dispatcher); !good) return good.error();
    if (auto good = dispatcher.segments().check("put", to, source.size()); !good) return good.error();
    if (auto good = dispatcher.flags().check("put", to.node(), notice); !good) return good.error();
    if (dispatcher.memory().reaches(to, notice)) return finish(dispatcher.memory().put(to, source, notice), done);
    dispatcher.memory().note_put_by_messages(to.node());
    const Turn turn = dispatcher.take_turn();
    const OperationId id =
        dispatcher.operations().begin(turn, {.peer = to.node(), .what = "put", .answered = std::move(done)});
    dispatcher.memory().transfers().start({.node = to.node(),
                                           .place = place_of(to),
                                           .source = source.data(),
                                           .bytes = source.size(),
                                           .notice = notice,
                                           .operation = id});
    return number_of(id);
}

Asked begin_get(Dispatcher& dispatcher, Where from, MutableBytes target, Done done) {
    if (auto good = check_running("get", dispatcher); !good) return good.error();
    if (auto good = dispatcher.segments().check("get", from, target.size()); !good) return good.error();
    if (dispatcher.memory().reaches(from) || target.empty()) return finish(dispatcher.memory().get(from, target), done);
    return number_of(dispatcher.memory().begin_get(from, target, {.answered = std::move(done)}));
}

Asked begin_copy(Dispatcher& dispatcher, Where from, Where to, std::size_t bytes, const Notice& notice, Done done) {
    if (auto good = check_running("copy", dispatcher); !good) return good.error();
    if (auto good = dispatcher.segments().check("copy from", from, bytes); !good) return good.error();
    if (auto good = dispatcher.segments().check("copy to", to, bytes); !good) return good.error();
    if (auto good = dispatcher.flags().check("copy", to.node(), notice); !good) return good.error();
    MemoryMap& map = dispatcher.segments().map();
    if (dispatcher.memory().reaches(from))
        if (const std::byte* const source = map.find(from.node(), from.segment(), from.offset(), bytes))
            return begin_put(dispatcher, to, {source, bytes}, notice, std::move(done));
    if (dispatcher.memory().reaches(to, notice) && bytes != 0) {
        std::byte* const target = map.find(to.node(), to.segment(), to.offset(), bytes);
        if (target == nullptr) return dispatcher.segments().check("copy to", to, bytes).error();
        auto got = [&dispatcher, to, notice, done = std::move(done)](const Result<Bytes>& outcome) {
            if (outcome && !dispatcher.flags().apply(to.node(), notice))
                return done(dispatcher.flags().explain("copy", to.node(), notice));
            done(outcome);
        };
        return number_of(dispatcher.memory().begin_get(from, {target, bytes}, {.answered = std::move(got)}));
    }
    const auto id = dispatcher.memory().begin_copy(from, to, bytes, notice, {.answered = std::move(done)});
    return id ? Asked(number_of(*id)) : Asked(id.error());
}

Asked begin_atomic(Dispatcher& dispatcher, Where word, const Atomic& what, Done done) {
    if (auto good = check_running("atomic operation", dispatcher); !good) return good.error();
    MemoryService& memory = dispatcher.memory();
    if (word.node() >= dispatcher.nodes() || memory.reaches(word)) {
        const auto before = memory.atomic(word, what); // does not wait
        if (!before) return before.error();
        done(bytes_of(*before));
        return std::optional<std::uint64_t>();
    }
    const auto id = memory.begin_atomic(word, what, {.answers_value = true, .answered = std::move(done)});
    return id ? Asked(number_of(*id)) : Asked(id.error());
}

} // namespace kumi::engine::by_bytes
