// A token goes round all nodes; each adds its number.      kumi run -n 4 ./02_ring [ROUNDS]
#include <cstdlib>
#include <fmt/format.h>
#include <kumi/kumi.hpp>

int main(int argc, char** argv) {
    auto job = kumi::Job::join();
    if (!job) return kumi::fail(job.error());
    const long rounds = argc > 1 ? std::atol(argv[1]) : 1000;
    const kumi::Node next = (job->node() + 1) % job->nodes();

    long token = 0;
    long passes = 0;
    job->on_message([&](kumi::Message& message) {
        kumi::read_value(message.bytes(), token);
        ++passes;
    });

    const auto start = kumi::now();
    for (long round = 0; round < rounds; ++round) {
        if (job->node() != 0) job->wait_until([&] { return passes > round; });
        token += job->node();
        if (auto sent = job->send(next, kumi::bytes_of(token)); !sent) return kumi::fail(sent.error());
        if (job->node() == 0) job->wait_until([&] { return passes > round; });
    }
    if (job->node() == 0) {
        const double hop_us =
            std::chrono::duration<double, std::micro>(kumi::now() - start).count() / double(rounds * job->nodes());
        fmt::print("{} rounds over {} nodes: token is {}, {:.2f} us a hop\n", rounds, job->nodes(), token, hop_us);
    }
}
