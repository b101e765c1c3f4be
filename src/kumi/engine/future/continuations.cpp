#include "kumi/engine/future/continuations.hpp"

#include <utility>
#include <vector>

namespace kumi::engine {
namespace {

/// What this thread is still to run, while it runs continuations.
struct ContinuationQueue {
    std::vector<std::function<void()>> calls;
    std::size_t next = 0;
};
thread_local ContinuationQueue* running_queue = nullptr;

} // namespace

bool in_continuation() noexcept { return running_queue != nullptr; }

void run_continuation(std::function<void()> call) {
    if (running_queue != nullptr) return running_queue->calls.push_back(std::move(call));
    ContinuationQueue queue;
    struct Running {
        explicit Running(ContinuationQueue& queue) noexcept { running_queue = &queue; }
        ~Running() { running_queue = nullptr; }
    } const running(queue);
    call();
    call = nullptr; // what it holds may make others ready when it is destroyed: they are queued, too
    while (queue.next != queue.calls.size()) {
        call = std::move(queue.calls[queue.next]);
        if (++queue.next == queue.calls.size()) {
            queue.calls.clear();
            queue.next = 0;
        }
        call();
        call = nullptr;
    }
}

} // namespace kumi::engine
