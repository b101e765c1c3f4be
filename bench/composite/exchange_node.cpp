#include "composite/exchange_node.hpp"

#include "contestant/core.hpp"
#include "contestant/measure.hpp"
#include "contestant/request_reply.hpp"
#include "contestant/work.hpp"

#include "kumi/kumi.hpp"

#include <algorithm>
#include <vector>

namespace kumi::bench {
namespace {

/// The nodes that this node exchanges messages with. Each node begins with another one, so that not all send to one
/// node at once.
std::vector<Node> partners(const PmJob& job, bool all) {
    std::vector<Node> others;
    for (Node distance = 1; distance < job.nodes(); ++distance)
        if (all || distance == 1 || distance + 1 == job.nodes())
            others.push_back((job.node() + distance) % job.nodes());
    return others;
}

/// Node 0 sends messages of `bytes` until node 1 has measured. `rate` answers bytes per second, of a count that grows
/// while a function waits.
template <class Rate>
int one_stream(std::span<const std::string> words, std::size_t bytes, Rate&& rate) {
    if (words.size() != 1) return fail(error("kumi-bench node: what is wanted"));
    auto job = PmJob::join();
    if (!job) return fail(job.error());
    bind_to_core(job->node()); // hosts of a lab, which share a machine, do not know of each other
    bool is_over = false;
    if (job->node() == 0) {
        job->on_message([&](Message&) { is_over = true; });
        const std::vector<std::byte> message(bytes);
        while (!is_over)
            if (auto sent = job->send(1, message); !sent) return fail(sent.error());
        const auto sent = job->send(1, Bytes{}); // the last
        return sent ? 0 : fail(sent.error());
    }
    std::uint64_t received = 0;
    job->on_message([&](Message& message) { received += message.bytes().size(), is_over = message.bytes().empty(); });
    const auto more = [&](Instant deadline) { job->wait_until([&] { return now() >= deadline; }, deadline); };
    report(("composite." + words[0]).c_str(), rate(received, more) * 1e-6);
    if (auto sent = job->send(0, Bytes{}); !sent) return fail(sent.error());
    job->wait_until([&] { return is_over; });
    return 0;
}

/// Milliseconds in which the cable of a host of wire.toml carries a message to each other host, cut into the packets of
/// an Ethernet.
double wire_milliseconds(std::size_t bytes) {
    constexpr double others = 7, bits_per_ms = 100e3;
    constexpr double frame_bytes = 1514, of_message = 1408; // behind headers of Ethernet, IP, UDP and Kumi
    return others * static_cast<double>(bytes) * 8 * (frame_bytes / of_message) / bits_per_ms;
}

} // namespace

int exchange_node(std::span<const std::string> words) {
    const bool is_limit = words.size() == 2 && words[1] == "limit";
    if (words.size() != 1 && !is_limit) return fail(error("kumi-bench node: what is wanted"));
    const std::string& what = words[0];
    const std::size_t bytes = std::stoul(what.substr(what.find('.') + 1));
    if (is_limit) return report(("composite." + what).c_str(), wire_milliseconds(bytes)), 0;
    // Small messages are exchanged often, or the result would be chance.
    const std::size_t count = std::clamp<std::size_t>((1 << 20) / bytes, 10, 1000);
    constexpr std::size_t warm_up_count = 2;
    auto job = PmJob::join();
    if (!job) return fail(job.error());
    std::vector<std::uint64_t> received(job->nodes());
    const auto count_message = [&](Message& message) { ++received[message.source()]; };
    job->on_message(count_message);
    const std::vector<Node> others = partners(*job, what.starts_with("alltoall."));
    const std::vector<std::byte> message(bytes);
    Instant start{};
    for (std::uint64_t number = 1; number <= warm_up_count + count; ++number) {
        for (const Node other : others)
            if (auto sent = job->send(other, message); !sent) return fail(sent.error());
        const auto has_come = [&](Node other) { return received[other] >= number; };
        const auto is_complete = [&] { return std::all_of(others.begin(), others.end(), has_come); };
        // The nodes sleep while they wait: the hosts of a lab share a machine and do not know of each other, so all
        // nodes would spin.
        pm::poll_until(job->channel(), count_message, is_complete, sleeping);
        if (number == warm_up_count) start = now();
    }
    const double seconds = std::chrono::duration<double>(now() - start).count() / static_cast<double>(count);
    if (job->node() == 0) report(("composite." + what).c_str(), seconds * 1e3);
    return 0;
}

int bulk_node(std::span<const std::string> words) {
    return one_stream(words, bulk_message_bytes,
                      [](const std::uint64_t& received, const auto& more) { return per_second(received, more); });
}

int stripes_node(std::span<const std::string> words) {
    constexpr std::size_t bytes = std::size_t{256} << 10;
    return one_stream(words, bytes, [](const std::uint64_t& received, const auto& more) {
        while (received == 0) more(now() + std::chrono::milliseconds(10));
        more(now() + std::chrono::seconds(2));
        return per_second(received, more, std::chrono::seconds(2));
    });
}

} // namespace kumi::bench
