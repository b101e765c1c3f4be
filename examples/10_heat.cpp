// Heat in a rod, each node with a piece of it: the calls that MPI programs begin with.      kumi run -n 4 ./10_heat
#include <algorithm>
#include <cmath>
#include <fmt/ranges.h>
#include <kumi/kumi.hpp>
#include <vector>

int main() {
    auto job = kumi::must(kumi::Job::join());
    kumi::Group world = job.world(); // all nodes; job.host_group() has those of this host
    const kumi::Node rank = world.rank(), last = world.size() - 1;
    // At the ends of the rod there is no neighbour: nothing is sent or received.
    const kumi::Node left = rank == 0 ? kumi::no_rank : rank - 1, right = rank == last ? kumi::no_rank : rank + 1;

    double heat = rank == 0 ? 100 : 0; // only node 0 knows how hot the left end is
    kumi::must(world.broadcast(0, heat));
    constexpr std::size_t cells = 8;
    std::vector<double> rod(cells + 2), next(rod); // with a neighbour's cell on each side
    if (rank == 0) rod[0] = heat;
    int steps = 0;
    for (double change = heat; change > 1e-3; ++steps) {
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
        fmt::print("at rest after {} steps; in the pieces' middles: {:.1f}\n", steps, fmt::join(middles, " "));
}
