#include "composite/failover_node.hpp"

#include "contestant/core.hpp"
#include "contestant/processes.hpp"
#include "contestant/work.hpp"
#include "harness/places.hpp"

#include "kumi/kumi.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/wait.h>
#include <unistd.h>

namespace kumi::bench {
namespace {

using namespace std::chrono_literals;

constexpr auto beat_time = 100us;
constexpr auto steady_time = 300ms; // messages use the better network for so long before it is cut
constexpr auto pause_max = 2s;      // node 1 waits no longer for the end of the pause
constexpr auto after_cut_time = 1s;

struct Beat {
    std::uint64_t number;
    std::uint32_t is_last;
    std::uint32_t by_best; // this message was given to the better network
};

/// Node 0: sends until node 1 answers.
int beat(PmJob& job, const std::string& best) {
    bool is_over = false;
    job.on_message([&](Message&) { is_over = true; });
    std::uint64_t number = 0;
    for (Instant next = now(); !job.channel().lost(1);) {
        job.poll();
        if (now() < next) continue;
        const Beat one{number, is_over, job.channel().carrier(1) == best};
        if (!job.channel().try_send(1, bytes_of(one))) continue;
        if (one.is_last != 0) return 0;
        ++number;
        next = now() + beat_time;
    }
    return 1;
}

/// What node 1 has received.
struct Received {
    std::uint64_t expected = 0;
    std::uint64_t wrong = 0;
    Beat latest{};
    Instant at = now();
    Instant best_since = never; // since then messages have come by the better network
    Duration longest_pause{0};

    void on_message(Message& message) {
        const Instant time = now();
        Beat beat{};
        if (!read_value(message.bytes(), beat) || beat.number != expected) ++wrong;
        ++expected;
        longest_pause = std::max(longest_pause, time - at);
        at = time;
        best_since = beat.by_best == 0 ? never : std::min(best_since, time);
        latest = beat;
    }
};

/// The command that makes `network` fail for this host.
std::vector<std::string> cut(const std::string& what, const std::string& host, const std::string& network) {
    const std::string kumi = Places{}.kumi;
    if (what == "failover.mute") return {kumi, "lab", "mute", host, network, "on"};
    return {kumi, "lab", "link", host, network, "down"};
}

/// Polls until `done`, or until the deadline.
template <class Done>
bool poll_until(PmJob& job, Done&& done, Instant deadline) {
    while (!done() && now() < deadline) job.poll();
    return done();
}

/// Node 1: receives, cuts the network and measures the pause.
int listen(PmJob& job, const std::string& what, const std::string& network) {
    Received heard;
    job.on_message([&](Message& message) { heard.on_message(message); });
    if (!poll_until(
            job, [&] { return heard.best_since != never && now() - heard.best_since > steady_time; }, now() + 10s))
        return fail(error("messages do not go by {} before it is cut", network));
    heard.longest_pause = {};
    const pid_t cutting = ::fork();
    if (cutting < 0) return fail(system_error(errno, "cutting a network (fork)"));
    if (cutting == 0) ::_exit(become(cut(what, job.host(), network)));
    poll_until(
        job, [] { return false; }, now() + after_cut_time);
    poll_until(
        job, [&] { return heard.latest.by_best == 0; }, now() + pause_max);
    int status = 0;
    if (::waitpid(cutting, &status, 0) != cutting || status != 0) return fail(error("{} could not be cut", network));
    if (heard.latest.by_best != 0)
        return fail(error("nothing came by another network within {} s of the cut",
                          std::chrono::seconds(after_cut_time + pause_max).count()));
    if (auto sent = job.send(0, bytes_of(heard.expected)); !sent) return fail(sent.error());
    if (!poll_until(
            job, [&] { return heard.latest.is_last != 0; }, now() + 10s))
        return fail(error("the last message did not come"));
    if (heard.wrong != 0)
        return fail(error("{} of {} messages were lost, doubled or out of order", heard.wrong, heard.expected));
    report(("composite." + what).c_str(), std::chrono::duration<double, std::milli>(heard.longest_pause).count());
    return 0;
}

} // namespace

int failover_node(std::span<const std::string> words) {
    if (words.size() != 2) return fail(error("kumi-bench node: what and the network are wanted"));
    auto job = PmJob::join();
    if (!job) return fail(job.error());
    bind_to_core(job->node()); // hosts of a lab, which share a machine, do not know of each other
    return job->node() == 0 ? beat(*job, words[1]) : listen(*job, words[0], words[1]);
}

} // namespace kumi::bench
