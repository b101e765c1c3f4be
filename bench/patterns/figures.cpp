#include "patterns/figures.hpp"

#include "harness/chart.hpp"
#include "patterns/cases.hpp"
#include "patterns/work.hpp"

#include "kumi/base/system/machine.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace kumi::bench {
namespace {

using Rows = std::vector<std::pair<double, std::string>>; // each at its x

// ---- what the papers say

constexpr std::size_t paper_bytes = 65536; // the papers' greatest bandwidths are those of messages as large as this

/// Objects on an NT cluster, ping-pongs of 10 bytes between two hosts with 100BaseT: one pair, and four pairs.
Curve nt_pingpongs() { return {"NT cluster, two hosts", {{1, 52}, {4, 100}}}; }

/// All to all between four hosts of that cluster: the time of an exchange at the greatest bandwidth.
Curve nt_exchange() {
    constexpr double hosts = 4, mb_per_second = 37.5;
    return {"NT cluster: 37.5 MB/s", {{hosts, hosts * (hosts - 1) * paper_bytes / mb_per_second}}};
}

Curve nicam_pair() { return {"NICAM, 1999, two hosts", {{1, 105}}}; }

/// The paper says what each stage of a barrier adds. A barrier of n nodes has log2(n) stages.
Curve nicam_barrier() {
    constexpr double nicam_stage_us = 7;
    Curve curve{"NICAM, 1999: 7 us a stage", {}};
    for (const int nodes : barrier_nodes) curve.points.emplace_back(nodes, nicam_stage_us * std::log2(nodes));
    return curve;
}

// ---- what was measured

class Drawing {
public:
    Drawing(const BenchOptions& options, Table& table) : options_(options), table_(table) {}

    /// Adds a curve of Kumi and of each peer.
    void measured(const Rows& rows, const std::string& which = "") {
        add(measured_curve(table_, "kumi", "Kumi" + which, rows));
        for (const std::string& peer : options_.peers) add(measured_curve(table_, peer, peer + which, rows));
    }
    void add(Curve curve) {
        if (!curve.points.empty()) curves_.push_back(std::move(curve));
    }
    const Table& table() const { return table_; }

    /// Draws what was added since the last picture, and `paper` if there is any of that.
    void finish(const std::string& file, const std::string& title, const std::string& x_name, const std::string& y_name,
                const std::vector<Curve>& paper = {}) {
        std::vector<Curve> all = std::exchange(curves_, {});
        if (all.empty()) return;
        all.insert(all.end(), paper.begin(), paper.end());
        draw(options_.figures_folder, "patterns-" + file + ".svg", chart(title, x_name, y_name, all), table_);
    }

private:
    const BenchOptions& options_;
    Table& table_;
    std::vector<Curve> curves_;
};

template <class Numbers>
Rows rows_by_place(const char* what, std::size_t bytes, const Numbers& numbers) {
    Rows rows;
    for (const int number : numbers) rows.emplace_back(number, pattern_row(what, bytes, std::to_string(number)));
    return rows;
}

void draw_pairs(Drawing& drawing) {
    for (const std::size_t bytes : pairs_bytes) {
        drawing.measured(rows_by_place("pairs", bytes, pairs_at_once));
        drawing.finish(fmt::format("pairs-{}", bytes),
                       fmt::format("Pairs that send at once on one host, {}", base::readable_bytes(bytes)), "pairs",
                       "Bandwidth of all, MB/s",
                       bytes == paper_bytes ? std::vector{nicam_pair()} : std::vector<Curve>{});
    }
    drawing.measured(rows_by_place("pingpongs", pingpongs_bytes[0], pairs_at_once));
    drawing.finish("pingpongs", "Ping-pongs of 10 bytes at once on one host", "pairs", "Bandwidth of all, kB/s",
                   {nt_pingpongs()});
}

void draw_incast(Drawing& drawing) {
    for (const std::string where : incast_places) {
        for (const int senders : incast_senders) {
            Rows rows;
            for (const std::size_t bytes : incast_bytes)
                rows.emplace_back(static_cast<double>(bytes),
                                  pattern_row("incast", bytes, fmt::format("{}.{}", senders, where)));
            drawing.measured(rows, senders == 1 ? ", one sender" : ", two senders");
        }
        drawing.finish(
            "incast-" + where,
            fmt::format("Senders to one receiver {}", where == "lab" ? "on hosts of their own (veth)" : "on one host"),
            "bytes of a message", "Bandwidth of all, MB/s");
    }
}

void draw_barrier(Drawing& drawing) {
    Rows rows;
    for (const int nodes : barrier_nodes) rows.emplace_back(nodes, "patterns.barrier." + std::to_string(nodes));
    drawing.measured(rows);
    drawing.add(measured_curve(drawing.table(), "limit", "one message of PM", rows));
    drawing.finish("barrier", "Barriers on one host", "nodes", "us", {nicam_barrier()});
}

void draw_placement(Drawing& drawing) {
    for (const std::size_t bytes : placement_bytes) {
        Rows rows;
        for (const Seating& seating : seatings)
            rows.emplace_back(seating.hosts, pattern_row("placement", bytes, seating.place));
        std::reverse(rows.begin(), rows.end()); // by hosts
        drawing.measured(rows);
        drawing.finish(fmt::format("placement-{}", bytes),
                       fmt::format("{} from each of 4 nodes to each, by where they are", base::readable_bytes(bytes)),
                       "hosts of the 4 nodes", "us",
                       bytes == paper_bytes ? std::vector{nt_exchange()} : std::vector<Curve>{});
    }
}

/// What several multicasts would take one after the other, by what one takes alone.
Curve one_by_one(const Table& table, const Rows& rows) {
    Curve curve{"Kumi, if one by one", {}};
    if (const auto alone = table.median("kumi", rows.front().second))
        for (const auto& [masters, row] : rows) curve.points.emplace_back(masters, masters * *alone);
    return curve;
}

void draw_multicasts(Drawing& drawing) {
    for (const std::size_t bytes : multicasts_bytes) {
        const Rows rows = rows_by_place("multicasts", bytes, masters_at_once);
        drawing.measured(rows);
        drawing.add(one_by_one(drawing.table(), rows));
        drawing.finish(fmt::format("multicasts-{}", bytes),
                       fmt::format("Overlapping multicasts of {} to {} of {} nodes on one host",
                                   base::readable_bytes(bytes), set_nodes(multicasts_nodes), multicasts_nodes),
                       "multicasts at once", "us until all are there");
    }
}

} // namespace

void draw_patterns(const BenchOptions& options, Table& table) {
    Drawing drawing(options, table);
    draw_pairs(drawing);
    draw_incast(drawing);
    draw_barrier(drawing);
    draw_placement(drawing);
    draw_multicasts(drawing);
}

} // namespace kumi::bench
