#include "patterns/node.hpp"

#include "contestant/partner.hpp"
#include "contestant/together.hpp"
#include "patterns/work.hpp"

#include "kumi/kumi.hpp"

#include <algorithm>

namespace kumi::bench {
namespace {

/// What has come to this node. Each message is copied to memory of the program.
struct Inbox {
    std::vector<std::byte> memory;
    std::int64_t messages = 0;

    void take(Message& message) {
        copy_bytes(memory.data(), message.bytes());
        ++messages;
    }
};

/// Seconds of this node's part of "pairs" or "incast", from a barrier to a barrier.
double stream_seconds(Job& job, const Inbox& inbox, const Flow& flow, std::vector<std::byte>& message,
                      std::int64_t count) {
    const std::int64_t before = inbox.messages;
    must(job.barrier());
    const Instant start = now();
    if (flow.to != nobody)
        for (std::int64_t i = 0; i < count; ++i) {
            renew(message.data(), message.size(), static_cast<int>(i));
            must(job.send(static_cast<Node>(flow.to), message));
        }
    const std::int64_t wanted = before + count * static_cast<std::int64_t>(flow.from.size());
    job.wait_until([&] { return inbox.messages >= wanted; });
    must(job.barrier());
    return seconds_since(start);
}

/// Seconds of this node's part of "pingpongs", with its neighbour. The even node begins.
double pingpong_seconds(Job& job, const Inbox& inbox, std::vector<std::byte>& message, std::int64_t count) {
    const std::int64_t before = inbox.messages;
    const Node other = job.node() ^ 1;
    const bool begins = job.node() % 2 == 0;
    const auto send = [&](std::int64_t number) {
        renew(message.data(), message.size(), static_cast<int>(number));
        must(job.send(other, message));
    };
    must(job.barrier());
    const Instant start = now();
    for (std::int64_t i = 1; i <= count; ++i) {
        if (begins) send(i);
        job.wait_until([&] { return inbox.messages >= before + i; });
        if (!begins) send(i);
    }
    must(job.barrier());
    return seconds_since(start);
}

} // namespace

int rates_node(const std::string& what, const std::string& place) {
    const std::span<const std::size_t> sizes = rates_bytes(what);
    Inbox inbox{std::vector<std::byte>(*std::max_element(sizes.begin(), sizes.end()))};
    Job job = must(Job::join());
    job.on_message([&](Message& message) { inbox.take(message); });
    Together together(job);
    const auto node = static_cast<int>(job.node()), nodes = static_cast<int>(job.nodes());
    const auto seconds_of = [&](std::size_t bytes, std::int64_t count) {
        std::vector<std::byte> message(bytes);
        const double times = static_cast<double>(count);
        return what == "pingpongs" ? pingpong_seconds(job, inbox, message, count) / times / 2
                                   : stream_seconds(job, inbox, flow_of(what, node, nodes), message, count) / times;
    };
    measure_rates(what, place, node, nodes, seconds_of,
                  [&](std::int64_t count) { return together.as_first_says(count); });
    return 0;
}

} // namespace kumi::bench
