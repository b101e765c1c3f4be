// spread BYTES TIMES: node 0 multicasts to all others; then it prints how many bytes each network carried for that.
#include <cstdlib>
#include <fmt/format.h>
#include <kumi/engine/dispatcher.hpp>
#include <kumi/functions.hpp>
#include <map>
#include <string>

int main(int, char** argv) {
    ::setenv("KUMI_GROUPS", "overhead=5,latency=20,bandwidth=1000", 1); // measuring it would be traffic too
    using Carried = std::map<std::string, std::uint64_t>;
    kumi::Job* self = nullptr;
    kumi::Handlers handlers;
    const auto take = handlers.add("take", [](kumi::Call&, kumi::Bytes) {});
    const auto carried = handlers.function("carried", [&](int) {
        Carried bytes;
        const kumi::pm::Channel& channel = self->channel();
        for (kumi::Node to = 0; to < channel.nodes(); ++to)
            bytes[std::string(channel.carrier(to))] += channel.sent(to).bytes;
        return bytes;
    });
    const auto add = handlers.function("add", [](Carried some, const Carried& more) {
        for (const auto& [network, bytes] : more) some[network] += bytes;
        return some;
    });
    auto job = kumi::must(kumi::Job::join(std::move(handlers)));
    self = &job;
    kumi::must(job.barrier());
    if (job.node() == 0) {
        const auto all = kumi::Set::range(0, job.nodes());
        const std::vector<std::byte> content(std::strtoul(argv[1], nullptr, 10));
        const auto before = kumi::must(job.reduce(all, add, carried, 0).get()).value;
        for (long i = 0; i < std::atol(argv[2]); ++i) kumi::must(job.multicast(all, take, content).get());
        for (const auto& [network, bytes] : kumi::must(job.reduce(all, add, carried, 0).get()).value)
            fmt::print("{} {}\n", network, bytes - before.at(network));
    }
    kumi::must(job.barrier());
}
