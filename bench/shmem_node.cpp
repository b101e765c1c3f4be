#include "shmem_node.hpp"

#include "limit.hpp"
#include "work.hpp"

#include "kumi/kumi.hpp"

#include <cstring>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <utility>
#include <vector>

namespace kumi::bench {
namespace {

using pm::Channel;

constexpr pm::Patience patience{std::chrono::microseconds(50)};

double seconds_since(Instant start) { return std::chrono::duration<double>(now() - start).count(); }

/// Sends, trying until there is room; nothing comes back meanwhile in these cases.
void send(Channel& channel, Node to, Bytes bytes) {
    while (!channel.try_send(to, bytes)) pm::relax();
}

/// The other of two nodes. Empty messages are its arrivals at a barrier, and may run ahead of what we wait for.
class Partner {
public:
    explicit Partner(Channel& channel) : channel_(channel), node_(1 - channel.self()) {}

    void send(Bytes bytes) { bench::send(channel_, node_, bytes); }

    /// Hands messages to `work` until there were `count` of them since the last call.
    template <class Work>
    void take(int count, Work&& work) {
        taken_ -= std::exchange(wanted_, count);
        const auto sort = [&](Message& message) {
            if (message.bytes().empty()) ++arrivals_;
            else work(message), ++taken_;
        };
        pm::poll_until(channel_, sort, [&] { return taken_ >= wanted_; }, patience);
    }

    void barrier() {
        send({});
        ++barriers_;
        const auto count = [&](Message& message) { arrivals_ += message.bytes().empty() ? 1 : 0; };
        pm::poll_until(channel_, count, [&] { return arrivals_ >= barriers_; }, patience);
        taken_ = wanted_ = 0;
    }

private:
    Channel& channel_;
    Node node_;
    int taken_ = 0;
    int wanted_ = 0;
    int arrivals_ = 0;
    int barriers_ = 0;
};

double pingpong_seconds(Channel& channel, Partner& partner, std::size_t bytes, int count) {
    const std::vector<std::byte> out(bytes);
    std::vector<std::byte> in(bytes);
    const auto copy_out = [&](Message& message) { std::memcpy(in.data(), message.bytes().data(), message.bytes().size()); };
    partner.barrier();
    const Instant start = now();
    for (int i = 0; i < count; ++i) {
        if (channel.self() == 0) partner.send(out);
        partner.take(1, copy_out);
        if (channel.self() == 1) partner.send(out);
    }
    return seconds_since(start) / count / 2;
}

/// One way, from private memory to private memory.
double stream_seconds(Channel& channel, Partner& partner, std::size_t bytes, int count) {
    const std::vector<std::byte> out(bytes);
    std::vector<std::byte> in(bytes);
    const auto copy_out = [&](Message& message) { std::memcpy(in.data(), message.bytes().data(), message.bytes().size()); };
    partner.barrier();
    const Instant start = now();
    if (channel.self() == 0)
        for (int i = 0; i < count; ++i) partner.send(out);
    else
        partner.take(count, copy_out);
    partner.barrier();
    return seconds_since(start) / count;
}

/// Filled in place by the producer, summed in place by the consumer.
double produce_consume_seconds(Channel& channel, Partner& partner, int count) {
    std::uint64_t total = 0;
    const auto consume = [&](Message& message) {
        total += sum(reinterpret_cast<const std::uint64_t*>(message.bytes().data()), large_words);
    };
    partner.barrier();
    const Instant start = now();
    if (channel.self() == 0) {
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

void pair(Channel& channel) {
    const bool speaker = channel.self() == 0;
    Partner partner(channel);
    for (const std::size_t bytes : latency_sizes) {
        pingpong_seconds(channel, partner, bytes, pingpongs_small / 10);
        const double seconds = pingpong_seconds(channel, partner, bytes, pingpongs_small);
        if (speaker) report(("shmem.latency." + std::to_string(bytes)).c_str(), seconds * 1e9);
    }
    stream_seconds(channel, partner, 8, stream_small / 10);
    const double small = stream_seconds(channel, partner, 8, stream_small);
    stream_seconds(channel, partner, large_bytes, 100);
    const double copy = stream_seconds(channel, partner, large_bytes, stream_large);
    const double pingpong = pingpong_seconds(channel, partner, large_bytes, pingpongs_large);
    const double in_place = produce_consume_seconds(channel, partner, stream_large);
    if (!speaker) return;
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

/// Node 1 waits for a message that takes a second to come: how much of a core does that cost?
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
