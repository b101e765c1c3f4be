// A table that is spread over all nodes: they are asked to store and to find.      kumi run -n 4 ./04_active_messages
#include <fmt/format.h>
#include <kumi/kumi.hpp>
#include <map>

int main() {
    std::map<long, long> entries; // this node's part of the table
    long answers = 0, sum = 0;

    // What a node can be asked to do. A handler runs on the node that a request is sent to, and may reply.
    kumi::Handlers handlers;
    const auto store = handlers.add("store", [&](kumi::Call&, long key, long value) { entries[key] = value; });
    const auto found = handlers.add("found", [&](kumi::Call&, long value) { sum += value, ++answers; });
    const auto find = handlers.add("find", [&](kumi::Call& call, long key) { call.reply(found, entries.at(key)); });

    auto job = kumi::must(kumi::Job::join(std::move(handlers)));
    const auto home = [&](long key) { return static_cast<kumi::Node>(key % job.nodes()); };

    // Each node stores some of the squares.
    constexpr long keys = 1000;
    for (long key = job.node(); key < keys; key += job.nodes())
        kumi::must(job.send(home(key + 1), store, key + 1, key * key));
    kumi::must(job.sync());    // all that this node asked for is done
    kumi::must(job.barrier()); // and so is what the others did

    // Node 0 asks for all of them at once; the answers come as they come.
    if (job.node() == 0) {
        for (long key = 1; key <= keys; ++key) kumi::must(job.send(home(key), find, key));
        job.wait_until([&] { return answers == keys; });
        fmt::print("{} squares in {} nodes add up to {}\n", keys, job.nodes(), sum);
    }
    kumi::must(job.barrier()); // nobody leaves before node 0 has its answers
}
