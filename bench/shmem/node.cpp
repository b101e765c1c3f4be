#include "shmem/node.hpp"

#include "contestant/partner.hpp"
#include "contestant/work.hpp"
#include "shmem/limit.hpp"

#include "kumi/kumi.hpp"

#include <string>
#include <sys/resource.h>
#include <thread>

namespace kumi::bench {
namespace {

/// The producer fills messages in place, the consumer sums them in place.
double produce_consume_seconds(Partner& partner, int count) {
    pm::Channel& channel = partner.channel();
    std::uint64_t total = 0;
    const auto consume = [&](Bytes message) {
        total += sum(reinterpret_cast<const std::uint64_t*>(message.data()), large_words);
    };
    partner.barrier();
    const Instant start = now();
    if (partner.is_first()) {
        for (int i = 0; i < count; ++i) {
            pm::SendSlot slot;
            while (!(slot = channel.try_reserve(1, large_bytes))) pm::relax();
            fill(reinterpret_cast<std::uint64_t*>(slot.bytes().data()), large_words, static_cast<std::uint64_t>(i));
            channel.commit(slot);
        }
    } else {
        partner.take(count, consume);
    }
    partner.barrier();
    if (total == 1) std::puts(""); // the sum is needed
    return seconds_since(start) / count;
}

void pair(pm::Channel& channel) {
    Partner partner(channel);
    for (const std::size_t bytes : latency_sizes) {
        pingpong_seconds(partner, bytes, pingpongs_small / 10);
        const double seconds = pingpong_seconds(partner, bytes, pingpongs_small);
        if (partner.is_first()) report(("shmem.latency." + std::to_string(bytes)).c_str(), seconds * 1e9);
    }
    stream_seconds(partner, 8, stream_small / 10);
    const double small = stream_seconds(partner, 8, stream_small);
    stream_seconds(partner, large_bytes, 100);
    const double copy = stream_seconds(partner, large_bytes, stream_large);
    const double pingpong = pingpong_seconds(partner, large_bytes, pingpongs_large);
    const double in_place = produce_consume_seconds(partner, stream_large);
    if (!partner.is_first()) return;
    report("shmem.rate.8", 1e-6 / small);
    report("shmem.bandwidth.copy.1048576", large_bytes * 1e-6 / copy);
    report("shmem.bandwidth.pingpong.1048576", large_bytes * 1e-6 / pingpong);
    report("shmem.bandwidth.inplace.1048576", large_bytes * 1e-6 / in_place);
}

void ring(PmJob& job) {
    const Node next = (job.node() + 1) % job.nodes();
    std::uint64_t token = 0;
    int passes = 0;
    job.on_message([&](Message& message) {
        read_value(message.bytes(), token);
        ++passes;
    });
    const auto go_round = [&](int rounds) {
        for (int round = 0; round < rounds; ++round) {
            const int before = passes;
            if (job.node() != 0) job.wait_until([&] { return passes > before; });
            (void)job.send(next, bytes_of(token));
            if (job.node() == 0) job.wait_until([&] { return passes > before; });
        }
    };
    go_round(ring_rounds / 10);
    const Instant start = now();
    go_round(ring_rounds);
    if (job.node() == 0) report("shmem.ring.16", seconds_since(start) / ring_rounds / job.nodes() * 1e6);
}

/// Node 1 waits a second for a message. Reports how much of a core that takes.
void idle(PmJob& job) {
    bool came = false;
    job.on_message([&](Message&) { came = true; });
    if (job.node() == 0) {
        std::this_thread::sleep_for(std::chrono::seconds(1));
        (void)job.send(1, Bytes{});
        return;
    }
    const auto cpu_seconds = [] {
        rusage usage{};
        ::getrusage(RUSAGE_SELF, &usage);
        return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
    };
    const Instant start = now();
    const double before = cpu_seconds();
    job.wait_until([&] { return came; });
    report("shmem.idle", 100 * (cpu_seconds() - before) / seconds_since(start));
}

} // namespace

int shmem_node(std::string_view what) {
    if (what == "limit") return measure_limits(), 0;
    auto job = PmJob::join();
    if (!job) return fail(job.error());
    if (what == "pair") pair(job->channel());
    if (what == "ring") ring(*job);
    if (what == "idle") idle(*job);
    return 0;
}

} // namespace kumi::bench
