// Do handlers run before the program has its Job? Node 0 sends to all others as soon as it has joined. They take their
// time to note where their Job is, as $EARLY says ("pointer": they note it 10 ms after join() returned; "late": they
// then make no call for long). Each prints how many handlers found the Job, by call.job() and by the pointer.

#include "kumi/kumi.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

int main() {
    constexpr int count = 200;
    const char* const text = std::getenv("EARLY");
    const std::string_view how = text != nullptr ? text : "pointer";
    kumi::Job* own = nullptr;
    std::atomic<int> ran{0}, by_call{0}, by_pointer{0};
    kumi::Handlers handlers;
    const auto note = handlers.add("note", [&](kumi::Call& call, kumi::Node from) {
        by_call += call.job().node() != from && call.job().nodes() >= 2 ? 1 : 0;
        by_pointer += own != nullptr && own->node() == call.job().node() ? 1 : 0;
        ++ran;
    });
    auto joined = kumi::Job::join(std::move(handlers));
    if (!joined) return kumi::fail(joined.error());
    if (joined->node() == 0) {
        for (kumi::Node to = 1; to < joined->nodes(); ++to)
            for (int i = 0; i < count; ++i) kumi::must(joined->send(to, note, kumi::Node{0}));
        kumi::must(joined->sync());
        kumi::must(joined->barrier());
        return 0;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    kumi::Job job = *std::move(joined); // moved, as programs do
    own = &job;
    const kumi::Instant end = kumi::now() + std::chrono::seconds(20);
    if (how == "late")
        while (ran < count && kumi::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    kumi::must(job.barrier());
    std::printf("%d ran, %d by call, %d by pointer\n", ran.load(), by_call.load(), by_pointer.load());
    return 0;
}
