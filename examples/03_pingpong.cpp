// How fast are messages between nodes 0 and 1, by size?      kumi run -n 2 ./03_pingpong
#include <fmt/format.h>
#include <kumi/kumi.hpp>
#include <vector>

int main() {
    auto job = kumi::Job::join();
    if (!job) return kumi::fail(job.error());
    if (job->nodes() != 2) return kumi::fail(kumi::error("a ping-pong takes two nodes: kumi run -n 2 ./03_pingpong"));
    const kumi::Node other = 1 - job->node();

    long received = 0; // written by the handler, which may run at any time: looked at in wait_until() only
    long expected = 0;
    job->on_message([&](kumi::Message&) { ++received; });
    if (job->node() == 0) fmt::print("{:>10} {:>14} {:>12}\n", "bytes", "one way, us", "MB/s");

    for (std::size_t bytes = 8; bytes <= 4'194'304; bytes *= 8) {
        const std::vector<std::byte> ball(bytes);
        const long throws = bytes < 65536 ? 5'000 : 200;
        const auto start = kumi::now();
        for (long i = 0; i < throws; ++i) {
            ++expected;
            if (job->node() == 1) job->wait_until([&] { return received >= expected; });
            if (auto sent = job->send(other, ball); !sent) return kumi::fail(sent.error());
            if (job->node() == 0) job->wait_until([&] { return received >= expected; });
        }
        const double one_way_us =
            std::chrono::duration<double, std::micro>(kumi::now() - start).count() / double(2 * throws);
        if (job->node() == 0) fmt::print("{:>10} {:>14.3f} {:>12.0f}\n", bytes, one_way_us, double(bytes) / one_way_us);
    }
}
