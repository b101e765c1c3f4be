#include "group/node.hpp"

#include "contestant/measure.hpp"
#include "contestant/multicast.hpp"
#include "contestant/work.hpp"
#include "group/work.hpp"

#include "kumi/kumi.hpp"

#include <fmt/format.h>
#include <stdexcept>

namespace kumi::bench {
namespace {

/// Node 0, while all others wait.
class Master {
public:
    Master(Job& job, const Handler<Bytes>& take)
        : job_(job), take_(take), sets_(random_sets(static_cast<int>(job.nodes()))) {}

    /// Seconds from the choice of a set until node 0 knows that all members have the multicast; one at a time.
    double seconds(std::size_t bytes) {
        std::vector<std::byte> content(bytes);
        const auto all_sets = [&] {
            for (const std::vector<int>& members : sets_) {
                stamp(content, ++number_);
                Future<Set> done = job_.multicast(set_of(members), take_, Bytes(content));
                finish(done);
            }
        };
        const auto run = [&](std::int64_t count) { return seconds_each(count, all_sets); };
        return settled_seconds(1, run, [](std::int64_t count) { return count; }) / sets_in_turn;
    }

private:
    Job& job_;
    Handler<Bytes> take_;
    std::vector<std::vector<int>> sets_;
    std::uint64_t number_ = 0; // of the last multicast
};

} // namespace

int multicast_node(const std::string& metric, std::span<const std::size_t> sizes, const std::string& place) {
    std::uint64_t last = 0;
    Handlers handlers;
    const auto take = handlers.add("bench.take", [&](Call&, Bytes content) {
        const std::uint64_t number = stamp_of(content);
        if (number <= last) throw std::runtime_error(fmt::format("{} after {} is not what was sent", number, last));
        last = number;
    });
    Job job = must(Job::join(std::move(handlers)));
    must(job.barrier());
    if (job.node() == 0) {
        Master master(job, take);
        for (const std::size_t bytes : sizes)
            report(fmt::format("group.{}.{}.{}", metric, bytes, place).c_str(), master.seconds(bytes) * 1e6);
    }
    must(job.barrier()); // all other nodes wait in this barrier meanwhile
    return 0;
}

int master_node(const std::string& place) {
    constexpr std::size_t under_way = 16; // then the node waits until they are done, and that time is not counted
    Handlers handlers;
    const auto take = handlers.add("bench.take", [](Call&, Bytes) {});
    Job job = must(Job::join(std::move(handlers)));
    must(job.barrier());
    if (job.node() == 0) {
        const Set others = Set::range(1, job.nodes());
        const std::vector<std::byte> content(64);
        std::vector<double> calls;
        std::vector<Future<Set>> done(under_way);
        const auto end = MeasuringClock::now() + window;
        while (MeasuringClock::now() < end) {
            std::size_t begun = 0;
            calls.push_back(
                seconds_each(under_way, [&] { done[begun++] = job.multicast(others, take, Bytes(content)); }));
            for (Future<Set>& one : done) finish(one);
        }
        report(("group.master." + place).c_str(), median_of(std::move(calls)) * 1e9);
    }
    must(job.barrier());
    return 0;
}

} // namespace kumi::bench
