// Solves A x = b by the method of conjugate gradients, where A is the Laplacian of a grid (5 points).
//
//     kumi run -n 3 ./conjugate_gradient [ROWS] [COLUMNS]
//
// Nodes have strips of grid rows. Before A is applied, each node puts its first and its last row to its neighbours,
// with a flag that has the number of the iteration. A row that a neighbour still reads is not overwritten: the dot
// product after A was applied needs all nodes, and the next put comes later.
//
// Dot products are added up in another order than in the serial program, so results differ by rounding. The tolerance
// is 1e-9 of the largest value, and one iteration.
#include "applications.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <span>
#include <vector>

namespace {

using Vector = std::vector<double>;
constexpr std::size_t iterations_max = 1000;

/// y = A x for the rows of a strip. `above` and `below` are the rows of x next to the strip.
void apply(const Vector& x, std::span<const double> above, std::span<const double> below, Vector& y) {
    const std::size_t columns = above.size(), rows = x.size() / columns;
    for (std::size_t row = 0; row < rows; ++row) {
        const double* const here = x.data() + row * columns;
        const double* const up = row == 0 ? above.data() : here - columns;
        const double* const down = row + 1 == rows ? below.data() : here + columns;
        for (std::size_t i = 0; i < columns; ++i)
            y[row * columns + i] =
                4 * here[i] - up[i] - down[i] - (i > 0 ? here[i - 1] : 0.0) - (i + 1 < columns ? here[i + 1] : 0.0);
    }
}

double dot(const Vector& a, const Vector& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

struct Solution {
    Vector x;
    std::size_t iterations;
    double residual; // as a part of b
};

/// The method itself. `apply_matrix(p, q, iteration)` computes q = A p, and `total` adds up the values of all nodes.
template <class Apply, class Total>
Solution solve(const Vector& b, Apply apply_matrix, Total total) {
    Vector x(b.size()), r = b, p = b, q(b.size());
    const double start = total(dot(b, b));
    double square = start;
    std::size_t iteration = 0;
    while (square > 1e-20 * start && iteration < iterations_max) {
        apply_matrix(p, q, ++iteration);
        const double alpha = square / total(dot(p, q));
        for (std::size_t i = 0; i < x.size(); ++i) x[i] += alpha * p[i], r[i] -= alpha * q[i];
        const double next = total(dot(r, r));
        for (std::size_t i = 0; i < p.size(); ++i) p[i] = r[i] + next / square * p[i];
        square = next;
    }
    return {x, iteration, std::sqrt(square / start)};
}

/// The right side for items `part`.
Vector right_side(Part part) {
    Vector b(part.size());
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<double>(random_at(part.first + i) % 1000) / 1000;
    return b;
}

} // namespace

int main(int count, char** words) {
    const std::size_t rows = number_in(count, words, 1, 41), columns = number_in(count, words, 2, 30);
    auto job = kumi::must(kumi::Job::join());
    auto memory = job.memory();
    auto world = job.world();
    const kumi::Node self = job.node(), nodes = job.nodes();
    if (rows < nodes) return kumi::fail(kumi::error("{} rows are not one for each of {} nodes", rows, nodes));

    // The rows above and below the strip; at the rim of the grid they stay zero.
    enum Side : std::size_t { above, below };
    const auto halo = kumi::must(memory.segment<double>(2 * columns));
    const auto arrived = kumi::must(memory.segment<kumi::Flag>(2));
    const auto put = [&](kumi::Node to, Side side, std::span<const double> row, std::size_t iteration) {
        kumi::must(memory.put(halo.at(to, side * columns), row, kumi::Notice::set(arrived.at(to, side), iteration)));
    };
    const auto apply_matrix = [&](const Vector& p, Vector& q, std::size_t iteration) {
        const auto last_row = std::span(p).last(columns);
        if (self > 0) put(self - 1, below, std::span(p).first(columns), iteration);
        if (self + 1 < nodes) put(self + 1, above, last_row, iteration);
        if (self > 0) kumi::must(memory.wait(arrived[above], iteration));
        if (self + 1 < nodes) kumi::must(memory.wait(arrived[below], iteration));
        apply(p, halo.local().first(columns), halo.local().last(columns), q);
    };
    const auto total = [&](double mine) { return kumi::must(world.allreduce(mine, kumi::group::sum)); };
    const Part strip = part_of(rows, self, nodes);
    const Solution mine = solve(right_side({strip.first * columns, strip.end * columns}), apply_matrix, total);
    const Vector x = joined(kumi::must(world.gatherv(0, mine.x)));
    if (self != 0) return 0;

    const Vector zeros(columns);
    const auto apply_alone = [&](const Vector& p, Vector& q, std::size_t) { apply(p, zeros, zeros, q); };
    const Solution serial = solve(right_side({0, rows * columns}), apply_alone, [](double sum) { return sum; });
    const double largest = *std::ranges::max_element(serial.x);
    if (auto equal = check_equal(x, serial.x, 1e-9 * largest); !equal) return kumi::fail(equal.error());
    if (std::max(mine.iterations, serial.iterations) - std::min(mine.iterations, serial.iterations) > 1)
        return kumi::fail(
            kumi::error("{} iterations, but the serial program needs {}", mine.iterations, serial.iterations));
    if (mine.residual > 1e-10) return kumi::fail(kumi::error("the residual is still {:.1e}", mine.residual));
    fmt::print("conjugate gradient on {} nodes: {} x {} grid, {} iterations, as the serial program\n", nodes, rows,
               columns, mine.iterations);
}
