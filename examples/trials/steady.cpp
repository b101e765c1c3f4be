// Does every message arrive once and in order, whatever happens to the networks?      kumi run -n 4 ./steady [SECONDS]
//
// Every node sends every other one numbered messages of all sizes, as fast as they go; pull a cable meanwhile. Node 0
// tells by what network it sends, when that changes, and all tell the longest pause between two messages of a pair in
// the end, which is after some seconds or when they are interrupted.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <kumi/kumi.hpp>
#include <string>
#include <vector>

namespace {

volatile std::sig_atomic_t interrupted = 0;

using Seconds = std::chrono::duration<double>;

struct Head {
    std::uint64_t number;
    std::uint32_t is_last;
    std::uint32_t fill; // what all bytes behind it are
};

/// What comes from one of the others.
struct Source {
    std::uint64_t next = 0;
    bool is_over = false;
    kumi::Instant heard{};
    kumi::Duration longest_pause{0};
};

/// What goes to one of the others.
struct Target {
    std::uint64_t next = 0;
    bool is_over = false;
    std::string carrier;
};

std::size_t size_of(std::uint64_t number) {
    constexpr std::size_t sizes[] = {0, 8, 100, 1000, 60, 20'000, 16, 3000};
    return number % 200 == 199 ? 400'000 : sizes[number % std::size(sizes)];
}

} // namespace

int main(int argc, char** argv) {
    std::signal(SIGINT, [](int) { interrupted = 1; });
    const double seconds = argc > 1 ? std::atof(argv[1]) : 5;
    auto job = kumi::PmJob::join();
    if (!job) return kumi::fail(job.error());
    std::vector<Source> sources(job->nodes());
    std::vector<Target> targets(job->nodes());
    std::uint64_t received = 0, wrong = 0;

    job->on_message([&](kumi::Message& message) {
        Source& source = sources[message.source()];
        Head head{};
        const bool is_whole = kumi::read_value(message.bytes(), head) && head.number == source.next;
        const kumi::Bytes rest = message.bytes().subspan(std::min(sizeof head, message.bytes().size()));
        const bool is_right = is_whole && std::all_of(rest.begin(), rest.end(),
                                                      [&](std::byte byte) { return byte == std::byte(head.fill); });
        if (!is_right) ++wrong;
        ++received, ++source.next;
        source.is_over = head.is_last != 0;
        const auto time = kumi::now();
        if (source.heard != kumi::Instant{}) source.longest_pause = std::max(source.longest_pause, time - source.heard);
        source.heard = time;
    });

    const auto start = kumi::now();
    std::vector<std::byte> message;
    while (std::any_of(targets.begin(), targets.end(), [](const Target& target) { return !target.is_over; })) {
        bool sent = false;
        for (kumi::Node to = 0; to < job->nodes(); ++to) {
            Target& target = targets[to];
            if (to == job->node() || job->channel().lost(to)) target.is_over = true;
            if (target.is_over) continue;
            const bool is_last = interrupted != 0 || kumi::now() - start >= Seconds(seconds);
            const Head head{target.next, is_last ? 1u : 0u, static_cast<std::uint32_t>(target.next % 256)};
            message.assign(sizeof head + size_of(target.next), std::byte(head.fill));
            std::memcpy(message.data(), &head, sizeof head);
            if (!job->channel().try_send(to, message)) continue;
            ++target.next;
            target.is_over = is_last;
            sent = true;
            const std::string_view carrier = job->channel().carrier(to);
            if (carrier == target.carrier) continue;
            target.carrier = carrier;
            if (job->node() != 0) continue;
            fmt::print("{:5.2f} s: to node {} by {}\n", Seconds(kumi::now() - start).count(), to, carrier);
            std::fflush(stdout);
        }
        if (sent) job->poll();
        else job->wait_until([] { return false; }, kumi::now() + std::chrono::milliseconds(1));
    }
    const auto is_over = [&] {
        for (kumi::Node node = 0; node < job->nodes(); ++node)
            if (node != job->node() && !sources[node].is_over && !job->channel().lost(node)) return false;
        return true;
    };
    job->wait_until(is_over, kumi::now() + std::chrono::seconds(90));

    kumi::Duration pause{0};
    std::size_t missing = 0;
    for (kumi::Node node = 0; node < job->nodes(); ++node) {
        pause = std::max(pause, sources[node].longest_pause);
        if (node != job->node() && !sources[node].is_over) ++missing;
    }
    fmt::print("node {}: {} messages, {} of them wrong; longest pause {:.0f} ms{}\n", job->node(), received, wrong,
               std::chrono::duration<double, std::milli>(pause).count(),
               missing == 0 ? "" : fmt::format("; {} nodes did not end", missing));
    return wrong == 0 && missing == 0 ? 0 : 1;
}
