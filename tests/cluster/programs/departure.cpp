// departure WHAT: node 1 leaves at once, and the others try to do WHAT with it. Each prints what came of it, and after
// how many milliseconds.
#include <array>
#include <chrono>
#include <fmt/format.h>
#include <kumi/functions.hpp>
#include <kumi/kumi.hpp>
#include <string>
#include <thread>

namespace {

using namespace std::chrono_literals;

/// Far later than it may take to find out.
kumi::Instant late() { return kumi::now() + 15s; }

/// Calls `attempt` again and again until there is an error, and tells it.
template <class Attempt>
void tell(kumi::Node node, Attempt&& attempt) {
    const kumi::Instant begin = kumi::now();
    for (std::string text; kumi::now() < begin + 15s;) {
        if (text = attempt(); text.empty()) continue;
        fmt::print("node {}: {} ms: {}\n", node, (kumi::now() - begin) / 1ms, text);
        return;
    }
    fmt::print("node {}: nothing failed\n", node);
}

template <class T>
std::string text_of(const kumi::Result<T>& result) {
    if (result) return "";
    return result.error().code() == kumi::ErrorCode::node_lost ? result.error().text()
                                                              : "another code: " + result.error().text();
}

int run_pm_send() {
    auto job = kumi::must(kumi::PmJob::join());
    if (job.node() == 1) return 0;
    const std::array<std::byte, 1000> content{};
    tell(job.node(), [&] { return text_of(job.send(1, kumi::Bytes(content))); });
    std::this_thread::sleep_for(300ms); // the others find out, too
    return 0;
}

} // namespace

int main(int, char** argv) {
    const std::string what = argv[1];
    if (what == "pm_send") return run_pm_send();
    kumi::Handlers handlers;
    const auto take = handlers.add("take", [](kumi::Call&, kumi::Bytes) {});
    const auto square = handlers.function("square", [](long value) { return value * value; });
    auto job = kumi::must(kumi::Job::join(std::move(handlers)));
    if (job.node() == 1) return 0;
    const auto all = kumi::Set::range(0, job.nodes());
    const std::array<std::byte, 1000> content{};
    const auto attempt = [&]() -> std::string {
        if (what == "invoke") return text_of(job.invoke(1, square, 3).get(late()));
        if (what == "sync") {
            (void)job.send(1, take, kumi::Bytes(content));
            return text_of(job.sync(late()));
        }
        if (what == "barrier") return text_of(job.barrier(late()));
        if (what == "barrier_of_some") {
            const std::array<kumi::Node, 3> members{0, 1, 2};
            return text_of(job.wait(kumi::must(job.arrive(members)), late()));
        }
        if (what == "group_barrier") return text_of(kumi::must(job.group(all)).barrier(late()));
        if (what == "multicast") {
            const auto absent = job.multicast(all, take, kumi::Bytes(content)).get(late());
            if (!absent) return text_of(absent);
            return absent->empty() ? "" : "node " + absent->text();
        }
        if (what == "send") return text_of(job.send(1, take, kumi::Bytes(content)));
        return text_of(job.send(1, kumi::Bytes(content)));
    };
    tell(job.node(), attempt);
    (void)job.sync(late());
    const std::array<kumi::Node, 2> others{0, 2};
    kumi::must(job.wait(kumi::must(job.arrive(others)), late()));
}
