// One simulation: kumi-bench-simulated WHO MACHINE BYTES MEMBERS.

#include "simulated/contest.hpp"

#include "kumi/base/text/number_text.hpp"

#include <algorithm>
#include <cstdio>
#include <span>
#include <string>

namespace kumi::bench {
namespace {

int complain() {
    std::fprintf(stderr,
                 "kumi-bench-simulated: say kumi, call, bcast, tree, create, paper or doubling, a machine, and how "
                 "many bytes go to how many members\n");
    return 2;
}

int run(std::span<char*> words) {
    if (words.size() != 5) return complain();
    const std::string who = words[1];
    const auto machine = std::ranges::find(machines, std::string_view(words[2]), &Machine::name);
    const auto bytes = base::number_in<std::size_t>(words[3]);
    const auto members = base::number_in<unsigned>(words[4]);
    if (machine == machines.end() || !bytes || !members || *members < 1 ||
        *members > static_cast<unsigned>(machine->member_nodes()))
        return complain();
    const Contest contest{*machine, *bytes, static_cast<int>(*members)};
    if (who == "kumi") multicast_by_kumi(contest);
    if (who == "call" && machine->spare_nodes > 0) call_by_kumi(contest);
    if (who == "bcast") broadcast_by_mpi(contest, Broadcast::mpich);
    if (who == "tree") broadcast_by_mpi(contest, Broadcast::tree);
    if (who == "create") broadcast_by_mpi(contest, Broadcast::create);
    if (who == "paper") multicast_by_paper(contest, Allgather::ring);
    if (who == "doubling") multicast_by_paper(contest, Allgather::doubling);
    return complain();
}

} // namespace
} // namespace kumi::bench

int main(int count, char** words) { return kumi::bench::run({words, static_cast<std::size_t>(count)}); }
