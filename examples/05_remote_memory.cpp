// Nodes read and write each other's memory; nobody there has to help.      kumi run -n 4 ./05_remote_memory
#include <fmt/format.h>
#include <kumi/kumi.hpp>
#include <string>

int main() {
    auto job = kumi::must(kumi::Job::join());
    auto memory = job.memory();
    const kumi::Node next = (job.node() + 1) % job.nodes();
    // Segments: memory that all nodes have, so each knows where everything is on the others.
    const auto letter = kumi::must(memory.segment<char>(64));
    const auto arrived = kumi::must(memory.segment<kumi::Flag>(1));
    const auto tickets = kumi::must(memory.segment<long>(1));
    const auto pointers = kumi::must(memory.segment<kumi::global_ptr<long>>(job.nodes()));

    // Put and notify: a node that sees the flag sees the letter.
    const std::string greeting = fmt::format("node {} greets node {}", job.node(), next);
    kumi::must(memory.put(letter.at(next), greeting, kumi::Notice::set(arrived.at(next))));
    kumi::must(memory.wait(arrived[0]));
    fmt::print("{}\n", letter.local().data());

    // An atomic counter on node 0: each number is drawn once.
    const long ticket = kumi::must(memory.fetch_add(tickets.at(0), 1));

    // A global pointer leads to memory of any node, and is a value like any other: each node gives one to node 0.
    const auto mine = kumi::must(memory.allocate<long>());
    kumi::must(memory.write(mine, ticket));
    kumi::must(memory.write(pointers.at(0, job.node()), mine));
    kumi::must(job.sync());    // all that this node has begun is done
    kumi::must(job.barrier()); // and so is what the others have
    if (job.node() == 0) {
        for (const auto& pointer : pointers.local())
            fmt::print("node {} has ticket {}\n", pointer.node(), kumi::must(memory.read(pointer)));
        std::string text(letter.size(), ' ');
        kumi::must(memory.get(letter.at(next), text));
        fmt::print("node {} was told: {}\n", next, text.c_str());
    }
    kumi::must(job.barrier()); // nobody leaves before node 0 has read
}
