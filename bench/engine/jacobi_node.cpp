// Laplace's equation on a square of 1024 x 1024 points by Jacobi's method, as in the NICAM paper (section 5.1, figure
// 7). Each node has a band of rows, and each thread of a node a part of the band. A row of ghosts on either side of the
// band holds a copy of the neighbour's outermost row. The neighbours' rows come before the threads compute, or while
// the threads compute the points that do not need them.
//
// There are two squares: a step reads one and writes the other. Ghosts belong to the square that is read, so the ghosts
// of the next step may come during this step. Those of the step after the next cannot: their sender first needs the
// rows that this node sends after this step.

#include "engine/node.hpp"

#include "contestant/measure.hpp"
#include "contestant/work.hpp"

#include "kumi/kumi.hpp"

#include <algorithm>
#include <barrier>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

namespace kumi::bench {
namespace {

constexpr std::size_t width = 1024;
constexpr int steps = 40;

enum class Way { plain, overlapped };

/// Rows 1 to `rows` of two squares, with a row of ghosts before and behind.
struct Band {
    double* squares[2];
    std::size_t rows;

    double* row(std::uint64_t step, std::size_t index) const { return squares[step % 2] + index * width; }

    /// Warm along the first row of the whole square and cold elsewhere.
    void begin(bool is_first) const {
        for (const std::uint64_t step : {0u, 1u}) {
            std::fill_n(row(step, 0), (rows + 2) * width, 0.0);
            if (is_first) std::fill_n(row(step, 0), width, 1.0);
        }
    }

    /// One step for rows from `first` to before `last`.
    void relax(std::uint64_t step, std::size_t first, std::size_t last) const {
        for (std::size_t index = first; index < last; ++index) {
            const double* const here = row(step, index);
            double* const next = row(step + 1, index);
            for (std::size_t i = 1; i + 1 < width; ++i)
                next[i] = (here[i - width] + here[i + width] + here[i - 1] + here[i + 1]) / 4;
        }
    }
};

/// The band of this node, and the exchange with its neighbours.
class Worker {
public:
    explicit Worker(Job& job)
        : job_(job), rows_(width / job.nodes()), cells_(must(job.memory().segment<double>(2 * square_cells()))),
          flags_(must(job.memory().segment<Flag>(4))), band_{{&cells_[0], &cells_[square_cells()]}, rows_} {}

    /// Seconds that a step takes.
    double run(Way way, std::size_t threads) {
        band_.begin(job_.node() == 0);
        must(job_.barrier());
        const auto start = MeasuringClock::now();
        std::barrier all(static_cast<std::ptrdiff_t>(threads));
        const auto work = [&](std::size_t thread) {
            const std::size_t first = 1 + rows_ * thread / threads, last = 1 + rows_ * (thread + 1) / threads;
            for (std::uint64_t step = step_; step < step_ + steps; ++step) {
                if (way == Way::plain) do_plainly(step, first, last, all);
                else do_overlapped(step, first, last);
                all.arrive_and_wait();
            }
        };
        std::vector<std::jthread> others;
        for (std::size_t thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
        work(0);
        others.clear();
        must(job_.barrier());
        step_ += steps; // an even number, so that the next run reads the first square first again
        return Seconds(MeasuringClock::now() - start).count() / steps;
    }

    std::span<const double> result() const { return {band_.row(step_, 1), rows_ * width}; }

private:
    enum Side : std::size_t { before, behind };

    std::size_t square_cells() const { return (rows_ + 2) * width; }
    bool has(Side side) const { return side == before ? job_.node() > 0 : job_.node() + 1 < job_.nodes(); }

    void do_plainly(std::uint64_t step, std::size_t first, std::size_t last, std::barrier<>& all) {
        if (first == 1) {
            for (const Side side : {before, behind}) tell(step, side);
            for (const Side side : {before, behind}) hear(step, side);
        }
        all.arrive_and_wait();
        band_.relax(step, first, last);
    }

    void do_overlapped(std::uint64_t step, std::size_t first, std::size_t last) {
        const bool is_first = first == 1, is_last = last == rows_ + 1;
        if (is_first) tell(step, before);
        if (is_last) tell(step, behind);
        band_.relax(step, first + (is_first ? 1 : 0), last - (is_last ? 1 : 0));
        if (is_first) {
            hear(step, before);
            band_.relax(step, first, first + 1);
        }
        if (is_last) {
            hear(step, behind);
            band_.relax(step, last - 1, last);
        }
    }

    /// Puts this node's outermost row on a side into the ghosts of the neighbour there. For the neighbour this node is
    /// on the other side.
    void tell(std::uint64_t step, Side side) {
        if (!has(side)) return;
        const Node to = side == before ? job_.node() - 1 : job_.node() + 1;
        const std::size_t theirs = side == before ? rows_ + 1 : 0;
        const auto place = cells_.at(to, step % 2 * square_cells() + theirs * width);
        const double* const ours = band_.row(step, side == before ? 1 : rows_);
        must(job_.memory().put(place, std::span(ours, width),
                      Notice::set(flags_.at(to, flag(step, side == before ? behind : before)), step + 1)));
    }
    void hear(std::uint64_t step, Side side) {
        if (has(side)) must(job_.memory().wait(flags_[flag(step, side)], step + 1));
    }
    static std::size_t flag(std::uint64_t step, Side side) { return step % 2 * 2 + side; }

    Job& job_;
    std::size_t rows_;
    Segment<double> cells_;
    Segment<Flag> flags_;
    Band band_;
    std::uint64_t step_ = 0;
};

/// The whole square computed by one thread, without neighbours.
struct Alone {
    double seconds = 0; // of a step
    std::vector<double> first_rows;

    explicit Alone(std::size_t rows_wanted) {
        std::vector<double> cells(2 * (width + 2) * width);
        const Band band{{cells.data(), cells.data() + (width + 2) * width}, width};
        band.begin(true);
        const auto start = MeasuringClock::now();
        for (std::uint64_t step = 0; step < steps; ++step) band.relax(step, 1, width + 1);
        seconds = Seconds(MeasuringClock::now() - start).count() / steps;
        first_rows.assign(band.row(steps, 1), band.row(steps, 1 + rows_wanted));
    }
};

} // namespace

int jacobi_node() {
    static_assert(steps % 2 == 0);
    constexpr int repeats = 3;
    Job job = must(Job::join());
    if (width % job.nodes() != 0)
        return fail(error("kumi-bench node: {} rows do not go into {} bands", width, job.nodes()));
    Worker worker(job);
    std::optional<Alone> alone; // known to node 0
    if (job.node() == 0) alone.emplace(width / job.nodes());
    must(job.barrier());
    for (const std::size_t threads : {1u, 2u, 4u}) {
        std::vector<double> seconds[2];
        for (int i = 0; i < repeats; ++i)
            for (const Way way : {Way::plain, Way::overlapped}) {
                seconds[static_cast<int>(way)].push_back(worker.run(way, threads));
                if (alone && !std::ranges::equal(worker.result(), alone->first_rows))
                    return fail(error("the result with {} threads is not that of one alone", threads));
            }
        if (!alone) continue;
        for (auto& values : seconds) std::sort(values.begin(), values.end());
        const double plain = seconds[0][repeats / 2], overlapped = seconds[1][repeats / 2];
        if (threads == 1) report("engine.jacobi.overlap", plain / overlapped);
        const std::string row = "engine.jacobi.speedup." + std::to_string(threads);
        report((row + ".plain").c_str(), alone->seconds / plain);
        report((row + ".overlap").c_str(), alone->seconds / overlapped);
    }
    return 0;
}

} // namespace kumi::bench
