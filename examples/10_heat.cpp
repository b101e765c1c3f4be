// Heat in a rod: the calls that an MPI program would begin with. Each node has a piece of the rod, exchanges the ends
// of the piece with its neighbours, and all nodes find out together when the heat has settled.
//
//     kumi run -n 4 ./10_heat
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <kumi/kumi.hpp>
#include <vector>

int main() {
    auto job = kumi::must(kumi::Job::join());
    kumi::Group world = job.world(); // all nodes; job.host_group() has those of this host
    const kumi::Node rank = world.rank(), last = world.size() - 1;
    // At the ends of the rod there is no neighbour, and nothing is sent or received.
    const kumi::Node left = rank == 0 ? kumi::no_rank : rank - 1, right = rank == last ? kumi::no_rank : rank + 1;

    double heat = rank == 0 ? 100 : 0; // only node 0 is told how hot the left end is
    kumi::must(world.broadcast(0, heat));
    constexpr std::size_t cells = 8;
    std::vector<double> rod(cells + 2), next(rod); // and a copy of a neighbour's cell on each side
    if (rank == 0) rod[0] = next[0] = heat;

    double change = heat;
    int steps = 0;
    for (; change > 1e-3; ++steps) {
        kumi::must(world.sendrecv(right, rod[cells], left, rod[0]));
        kumi::must(world.sendrecv(left, rod[1], right, rod[cells + 1]));
        double mine = 0;
        for (std::size_t i = 1; i <= cells; ++i) {
            next[i] = (rod[i - 1] + rod[i + 1]) / 2;
            mine = std::max(mine, std::abs(next[i] - rod[i]));
        }
        std::copy(next.begin() + 1, next.end() - 1, rod.begin() + 1);
        change = kumi::must(world.allreduce(mine, kumi::group::max));
    }

    std::vector<double> middles(world.size());
    kumi::must(world.gather(0, rod[cells / 2], middles));
    if (rank == 0)
        fmt::print("settled after {} steps; in the middle of each piece: {:.1f}\n", steps, fmt::join(middles, " "));
}
