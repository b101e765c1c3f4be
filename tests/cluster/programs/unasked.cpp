// Errors that the program does not ask about, one kind for each first word. Two nodes: node 0 makes the mistake, or
// both make one.

#include "kumi/functions.hpp"
#include "kumi/kumi.hpp"

#include <cstdio>
#include <stdexcept>
#include <string_view>

int main(int count, char** words) {
    const std::string_view what = count > 1 ? words[1] : "";
    kumi::Handlers handlers;
    const auto bad_handler =
        handlers.add("bad.handler", [](kumi::Call&) { throw std::runtime_error("no such thing"); });
    const auto bad_function = handlers.function("bad.function", [](int number) -> int {
        if (number == 0) throw std::runtime_error("no such number");
        return number;
    });
    auto job = kumi::must(kumi::Job::join(std::move(handlers)));
    kumi::must(job.barrier());
    if (job.node() == 0) {
        if (what == "invoke") (void)job.invoke(1, bad_function, 0);
        if (what == "many")
            for (int i = 0; i < 25; ++i) (void)job.invoke(1, bad_function, 0);
        if (what == "multicast") (void)job.multicast({1}, bad_handler);
        if (what == "send") kumi::must(job.send(1, bad_handler));
        if (what == "then") (void)job.invoke(1, bad_function, 3).then([](kumi::Result<int>) { throw 5; });
        if (what == "cancelled") {
            auto future = job.invoke(1, bad_function, 3);
            future.cancel();
        }
        if (what == "asked") std::printf("%s\n", job.invoke(1, bad_function, 0).get() ? "fine" : "known");
        if (what == "synced") {
            kumi::must(job.send(1, bad_handler));
            std::printf("%s\n", job.sync() ? "fine" : "known");
        }
        if (what == "good") (void)job.invoke(1, bad_function, 3);
        if (what == "any") {
            auto first = kumi::when_any(job.invoke(1, bad_function, 3), job.invoke(0, bad_function, 0)).get();
            std::printf("%s\n", first ? "one came" : "none");
        }
        // The answers come while this node leaves. It alone does: the other one still answers.
        if (what == "send" || what == "invoke") return 0;
        (void)job.sync();
    } else if (what == "send" || what == "invoke") {
        job.wait_until([] { return false; }, kumi::now() + std::chrono::milliseconds(300));
        return 0;
    }
    auto world = job.world();
    if (what == "roots" || what == "same root") {
        int value = 0;
        kumi::must(world.broadcast(what == "roots" ? job.node() : 1, value));
        kumi::must(job.sync()); // it is there
    }
    kumi::must(job.barrier());
    return what == "own code" ? 7 : 0;
}
