// Heat in a plate whose upper rim is hot: each cell becomes the mean of its neighbours, again and again.
//
//     kumi run -n 6 ./stencil [ROWS] [COLUMNS] [STEPS]
//
// The plate is cut into tiles, one for each node, in every way that the number of nodes allows: 1 x 6, 2 x 3, 3 x 2 and
// 6 x 1. Before each step nodes exchange the cells along the cuts. At the rim of the plate there is no neighbour.
#include "applications.hpp"

#include <fmt/format.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

/// The cells of a tile and a frame of one cell around them, which has copies of other tiles' cells, or the plate's rim.
struct Tile {
    std::size_t rows, columns; // without the frame
    std::vector<double> cells = std::vector<double>((rows + 2) * (columns + 2));
    std::vector<double> next = cells;

    std::size_t index(std::size_t row, std::size_t column) const { return row * (columns + 2) + column; }
    std::span<double> row(std::size_t number) { return {&cells[index(number, 1)], columns}; }
    std::vector<double> column(std::size_t number) const {
        std::vector<double> copy;
        for (std::size_t i = 1; i <= rows; ++i) copy.push_back(cells[index(i, number)]);
        return copy;
    }
    void set_column(std::size_t number, const std::vector<double>& values) {
        for (std::size_t i = 1; i <= rows; ++i) cells[index(i, number)] = values[i - 1];
    }

    void heat_upper_rim() {
        for (double& cell : row(0)) cell = 1;
        next = cells;
    }
    void step() {
        for (std::size_t i = 1; i <= rows; ++i)
            for (std::size_t at = index(i, 1); at <= index(i, columns); ++at)
                next[at] = (cells[at - columns - 2] + cells[at + columns + 2] + cells[at - 1] + cells[at + 1]) / 4;
        // The frame of `next` is old: the exchange before the next step renews it, and the plate's rim never changes.
        std::swap(cells, next);
    }
};

/// Computes on a grid of down x across tiles. Answers the plate, at rank 0.
std::vector<double> simulate(kumi::group::Group& group, kumi::Node down, kumi::Node across, std::size_t rows,
                             std::size_t columns, std::size_t steps) {
    const kumi::Node y = group.rank() / across, x = group.rank() % across, none = kumi::group::no_rank;
    const kumi::Node above = y > 0 ? group.rank() - across : none, below = y + 1 < down ? group.rank() + across : none;
    const kumi::Node left = x > 0 ? group.rank() - 1 : none, right = x + 1 < across ? group.rank() + 1 : none;

    Tile tile{.rows = part_of(rows, y, down).size(), .columns = part_of(columns, x, across).size()};
    if (y == 0) tile.heat_upper_rim();
    std::vector<double> column(tile.rows);
    for (std::size_t step = 0; step < steps; ++step) {
        kumi::must(group.sendrecv(above, tile.row(1), below, tile.row(tile.rows + 1)));
        kumi::must(group.sendrecv(below, tile.row(tile.rows), above, tile.row(0)));
        kumi::must(group.sendrecv(left, tile.column(1), right, column));
        if (right != none) tile.set_column(tile.columns + 1, column);
        kumi::must(group.sendrecv(right, tile.column(tile.columns), left, column));
        if (left != none) tile.set_column(0, column);
        tile.step();
    }

    // Rank 0 puts the tiles together, row by row.
    std::vector<double> mine;
    for (std::size_t i = 1; i <= tile.rows; ++i) mine.insert(mine.end(), tile.row(i).begin(), tile.row(i).end());
    const auto tiles = kumi::must(group.gatherv(0, mine));
    std::vector<double> plate(tiles.empty() ? 0 : rows * columns);
    for (kumi::Node rank = 0; rank < tiles.size(); ++rank) {
        const Part its_rows = part_of(rows, rank / across, down), its_columns = part_of(columns, rank % across, across);
        for (std::size_t i = 0; i < tiles[rank].size(); ++i)
            plate[(its_rows.first + i / its_columns.size()) * columns + its_columns.first + i % its_columns.size()] =
                tiles[rank][i];
    }
    return plate;
}

std::vector<double> simulate_alone(std::size_t rows, std::size_t columns, std::size_t steps) {
    Tile plate{.rows = rows, .columns = columns};
    plate.heat_upper_rim();
    for (std::size_t step = 0; step < steps; ++step) plate.step();
    std::vector<double> cells;
    for (std::size_t i = 1; i <= rows; ++i) cells.insert(cells.end(), plate.row(i).begin(), plate.row(i).end());
    return cells;
}

} // namespace

int main(int count, char** words) {
    const std::size_t rows = number_in(count, words, 1, 37), columns = number_in(count, words, 2, 29);
    const std::size_t steps = number_in(count, words, 3, 50);
    auto job = kumi::must(kumi::Job::join());
    auto world = job.world();
    const kumi::Node nodes = job.nodes();
    if (rows < nodes || columns < nodes)
        return kumi::fail(kumi::error("{} x {} cells cannot be cut {} times", rows, columns, nodes));

    std::string shapes;
    kumi::Result<void> outcome; // of all shapes: the other nodes go on after one that is wrong
    for (kumi::Node down = 1; down <= nodes; ++down) {
        if (nodes % down != 0) continue;
        const std::string shape = fmt::format("{} x {}", down, nodes / down);
        const auto plate = simulate(world, down, nodes / down, rows, columns, steps);
        if (job.node() != 0) continue;
        if (auto equal = check_equal(plate, simulate_alone(rows, columns, steps)); !equal)
            outcome = kumi::error("{} tiles: {}", shape, equal.error().text());
        shapes += (shapes.empty() ? "" : ", ") + shape;
    }
    if (!outcome) return kumi::fail(outcome.error());
    if (job.node() == 0)
        fmt::print("stencil on {} nodes: {} x {} cells, {} steps, tiles {}, as the serial program\n", nodes, rows,
                   columns, steps, shapes);
}
