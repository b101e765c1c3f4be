#include "provider/process.hpp"

#include "kumi/base/text/fnv.hpp"
#include "kumi/engine/agree_on_handlers.hpp"
#include "kumi/job/opening.hpp"

#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace kumi::provider {
namespace {

/// Is never destroyed: libfabric calls leave() after the destructors of this library.
struct One {
    std::mutex mutex; // of what follows
    std::unique_ptr<Process> process;
    std::optional<Error> failure;
};
One& one() {
    static One& made = *new One;
    return made;
}

} // namespace

Process::Process(job::Membership membership, std::unique_ptr<engine::Dispatcher> dispatcher)
    : membership_(std::move(membership)), job_(base::fnv1a(std::to_string(membership_.standing().keys.token))),
      messages_(std::make_unique<Messages>(*dispatcher)), dispatcher_(std::move(dispatcher)) {}

Process::~Process() {
    dispatcher_.reset(); // it tells the messages
}

Result<std::unique_ptr<Process>> Process::open() {
    auto membership = job::Membership::join();
    if (!membership) return membership.error();
    const auto give_up = [&](const Error& why) { return membership->give_up(why); };
    if (membership->standing().nodes > nodes_max)
        return give_up(error("libfabric over Kumi has at most {} processes in a job", nodes_max));
    auto dispatcher = engine::Dispatcher::open(membership->channel(), Handlers(), {membership->patience(), {}});
    if (!dispatcher) return give_up(dispatcher.error());
    job::SessionMeeting meeting(membership->session());
    if (auto met = engine::agree_on_handlers(**dispatcher, meeting, membership->standing().host); !met)
        return give_up(met.error());
    std::unique_ptr<Process> opened(new Process(*std::move(membership), *std::move(dispatcher)));
    // The background comes by at once: a peer may have sent what only this process's next call would handle.
    opened->dispatcher_->loop().start();
    return opened;
}

Result<Process*> Process::join() {
    One& mine = one();
    const std::lock_guard lock(mine.mutex);
    if (mine.process) return mine.process.get();
    if (mine.failure) return *mine.failure;
    auto opened = open();
    if (!opened) {
        mine.failure = opened.error();
        return opened.error();
    }
    mine.process = *std::move(opened);
    return mine.process.get();
}

void Process::leave() noexcept {
    One& mine = one();
    const std::lock_guard lock(mine.mutex);
    if (mine.process) mine.failure = Error("this process has left its job");
    mine.process.reset();
}

} // namespace kumi::provider
