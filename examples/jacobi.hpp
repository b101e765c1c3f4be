#pragma once

// The part of 06_jacobi that knows nothing of nodes: a strip of a plate, and how its cells change.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

/// What can be said of cells in whatever order they are looked at.
struct Outcome {
    double change = 0;          // the largest in the last step
    std::uint64_t checksum = 0; // of all bits of all cells

    void add(const Outcome& other) {
        change = std::max(change, other.change);
        checksum += other.checksum;
    }
};

/// Rows 1 to `rows` of a strip are its own. Rows 0 and rows + 1 are the plate's rim, or copies of the nearest rows of
/// the strips above and below. All of it is there twice, as two plates: a step reads that of `time` and writes that of
/// time + 1.
struct Strip {
    std::size_t width;    // cells in a row, with the rim at both ends
    std::size_t rows;     // of this strip
    std::size_t rows_max; // of any strip: in all of them rows have the same index
    double* cells = nullptr;

    std::size_t size() const { return 2 * (rows_max + 2) * width; }
    std::size_t index(std::size_t time, std::size_t number) const {
        return (time % 2 * (rows_max + 2) + number) * width;
    }
    std::span<double> row(std::size_t time, std::size_t number) const { return {cells + index(time, number), width}; }

    void heat(std::size_t number) const {
        for (const std::size_t time : {0u, 1u}) std::ranges::fill(row(time, number), 1.0);
    }

    /// Each cell of a row becomes the mean of its neighbours.
    void step(std::size_t time, std::size_t number) const {
        const double* const above = cells + index(time, number - 1);
        const double* const here = cells + index(time, number);
        const double* const below = cells + index(time, number + 1);
        double* const next = cells + index(time + 1, number);
        for (std::size_t i = 1; i + 1 < width; ++i) next[i] = (above[i] + below[i] + here[i - 1] + here[i + 1]) / 4;
    }

    Outcome outcome(std::size_t time) const {
        Outcome all;
        for (std::size_t number = 1; number <= rows; ++number)
            for (std::size_t i = 0; i < width; ++i) {
                const double cell = row(time, number)[i];
                all.add({std::abs(cell - row(time + 1, number)[i]), std::bit_cast<std::uint64_t>(cell)});
            }
        return all;
    }
};
