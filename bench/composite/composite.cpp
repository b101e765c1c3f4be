#include "composite/composite.hpp"

#include "composite/lab.hpp"
#include "composite/soak.hpp"
#include "harness/jobs.hpp"
#include "harness/lab/own_labs.hpp"
#include "harness/mpi.hpp"
#include "harness/stage.hpp"
#include "harness/words.hpp"

#include "kumi/cluster/file.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

namespace kumi::bench {
namespace {

constexpr std::chrono::seconds entry_seconds_max{20};
constexpr const char* peers_to_name[] = {"openmpi", "mpich"};

/// A row and its contestants, which run in a lab or as processes of this machine.
struct Case {
    RowKind row;
    std::string lab = ""; // its cluster file; empty: the row needs no lab
    std::vector<Entry> (*entries)(const BenchOptions&, const OwnLab&, const std::string& what) = nullptr;
    std::vector<Words> repair = {}; // commands that repair the lab afterwards
    bool only_if_named = false;

    std::string what() const { return row.id.substr(row.id.find('.') + 1); }
};

constexpr const char* storm_rows[] = {"composite.soak", "composite.steady"}; // faults at random
constexpr const char* figure3 = "figure3.toml";
constexpr const char* two_networks = "two_networks.toml";

std::vector<Case> all_cases() {
    std::vector<Case> cases{
        {{"composite.latency.8.shmem", "ns", true,
          "8 bytes, one way, through memory, by a composite that has a network too; limit: shared memory alone"}},
        {{"composite.latency.64.udp", "ns", true,
          "64 bytes, one way, over loopback, by a composite that has shared memory too; limit: UDP alone"}},
        {{"composite.poll.64", "ns", true, "a poll that finds nothing, with 64 nodes; limit: with 2"}},
        {{"composite.failover.carrier", "ms", true,
          "a message each 100 us between two hosts on two networks: the longest pause when the better one's cable is "
          "pulled, with none lost, doubled or out of order"},
         two_networks,
         failover_entries,
         {{"link", "c1", "fast", "up"}}},
        {{"composite.failover.mute", "ms", true, "the same when that network goes silent, and no host can see that"},
         two_networks,
         failover_entries,
         {{"mute", "c1", "fast", "off"}}}};
    for (const char* bytes : {"1024", "65536"})
        cases.push_back({{fmt::format("composite.alltoall.{}", bytes), "ms", true,
                          fmt::format("12 nodes on the SCore paper's figure 3, by the best networks: each sends each "
                                      "{} bytes; lan: hosts by their LAN only",
                                      bytes)},
                         figure3,
                         exchange_entries});
    for (const char* bytes : {"65536", "1048576"})
        cases.push_back(
            {{fmt::format("composite.alltoall.{}.wire", bytes), "ms", true,
              fmt::format("8 hosts on a network of 100 Mbit/s: each sends each {} bytes; limit: the time of "
                          "the cable",
                          bytes)},
             "wire.toml",
             wire_entries});
    for (const char* bytes : {"1024", "65536"})
        cases.push_back({{fmt::format("composite.neighbours.{}", bytes), "ms", true,
                          fmt::format("the same: each sends the next and the one before {} bytes", bytes)},
                         figure3,
                         exchange_entries});
    cases.push_back({{"composite.bulk.fast", "MB/s", false,
                      "one stream of 128 KiB messages between two hosts with a fast network and a LAN; peers as they "
                      "are, and told which to use"},
                     figure3,
                     bulk_entries});
    for (const auto& [name, other] : {std::pair{"half", "500 Mbit/s"}, {"slow", "10 Mbit/s"}})
        cases.push_back(
            {{fmt::format("composite.stripes.{}", name), "MB/s", false,
              fmt::format("one stream of 256 KiB messages between two hosts that networks of 1 Gbit/s and {} "
                          "join; limit: without stripes",
                          other)},
             fmt::format("stripes.{}.toml", name),
             stripes_entries});
    cases.push_back(
        {{"composite.start", "ms", true,
          "12 nodes on 8 hosts start, join and leave; peers as they are, and told to use the LAN, which joins all"},
         figure3,
         start_entries});
    const auto push_storm = [&](const std::string& id, const char* load) {
        const auto push = [&](RowKind row) { cases.push_back({std::move(row), two_networks, nullptr, {}, true}); };
        push({id, "cycles", false,
              fmt::format("faults of two networks, or of those of --cluster, at random while nodes send each other "
                          "messages of all "
                          "sizes, {}; takes minutes, and must be named",
                          load)});
        push({id + ".wrong", "count", true,
              "of these, messages that were lost, doubled, out of order or not what was sent"});
        push({id + ".pause", "s", true, "the longest time between two of these messages from one node to another"});
    };
    push_storm(storm_rows[0], "as many as they can");
    push_storm(storm_rows[1], "50 in a second from each to each");
    return cases;
}

/// The cases whose rows were asked for.
std::vector<Case> chosen_cases(const BenchOptions& options) {
    std::vector<Case> cases = all_cases();
    std::erase_if(cases, [&](const Case& one) {
        const auto names_it = [&](const std::string& start) {
            const auto names_storm = [&](const char* storm) { return start.starts_with(storm); };
            return one.row.id.starts_with(start) &&
                   (!one.only_if_named || std::ranges::any_of(storm_rows, names_storm));
        };
        return options.rows.empty() ? one.only_if_named
                                    : std::none_of(options.rows.begin(), options.rows.end(), names_it);
    });
    return cases;
}

Words columns(const Words& peers) {
    Words names{"lan"};
    for (const std::string& peer : peers) names.insert(names.end(), {peer, told(peer)});
    return names;
}

class CompositeBench {
public:
    explicit CompositeBench(const BenchOptions& options)
        : options_(options), cases_(chosen_cases(options)), table_(rows_of(cases_), columns(options.peers)),
          stage_(table_, options.on_progress), labs_(options, table_) {
        options_.peers = peers_with_programs(options, table_);
    }

    Table run() {
        for (int round = 0; round < options_.rounds; ++round) {
            stage_.begin_round(round + 1, options_.rounds);
            for (std::size_t i = 0; i < cases_.size(); ++i) {
                stage_.begin_case(i, cases_.size());
                if (!cases_[i].only_if_named) measure(cases_[i], round);
            }
        }
        for (const std::string storm : storm_rows)
            if (std::any_of(cases_.begin(), cases_.end(),
                            [&](const Case& one) { return one.row.id.starts_with(storm); }))
                measure_storm(storm);
        return std::move(table_);
    }

private:
    void measure(const Case& one, int round) {
        const auto entries = in_turn(one.lab.empty() ? own_entries(one) : lab_entries(one), round);
        for (const Entry& entry : entries) measure(one, entry);
    }

    void measure(const Case& one, const Entry& entry) {
        if (const auto heard = stage_.run(entry, entry_seconds_max)) take(one, entry.who, *heard);
        else if (entry.who == "kumi") table_.strike(entry.who, one.row.id); // a peer keeps its values
        for (const Words& words : one.repair)
            if (auto done = labs_.of(one.lab, one.row.id)->ask(words); !done) table_.note(done.error().text());
    }
    void take(const Case& one, const std::string& who, const Heard& heard) {
        if (one.row.id == "composite.start") table_.add(who, one.row.id, heard.seconds * 1e3);
        for (const auto& [id, value] : heard.results) table_.add(who, id, value);
    }

    std::vector<Entry> own_entries(const Case& one) const {
        std::vector<Entry> entries;
        for (const char* who : {"kumi", "limit"})
            entries.push_back({who, one.what(), {options_.node_path, "node", "composite", one.what(), who}});
        return entries;
    }
    std::vector<Entry> lab_entries(const Case& one) {
        const OwnLab* place = labs_.of(one.lab, one.row.id);
        return place != nullptr ? one.entries(options_, *place, one.what()) : std::vector<Entry>{};
    }

    void measure_storm(const std::string& row) {
        const std::string file = options_.cluster_file.empty() ? two_networks : options_.cluster_file;
        const auto cluster = cluster::read_cluster_file(std::filesystem::path(options_.labs_folder) / file);
        if (!cluster) return table_.note(fmt::format("{}: {}", row, cluster.error().text()));
        const OwnLab* place = labs_.of(file, row);
        if (place == nullptr) return;
        table_.note(fmt::format("{}: its seed is {}; --seed makes the same faults again", row, options_.seed));
        const std::string what = row.substr(row.find('.') + 1);
        const Words job =
            job_in_lab(options_, *place, file, {"-n", std::to_string(cluster->slots())}, {"composite", what});
        const auto soaked = soak(*place, *cluster, job, options_.seed, options_.on_progress);
        if (!soaked) return table_.note(fmt::format("{}: {}", row, soaked.error().text()));
        table_.add("kumi", row, soaked->cycles);
        table_.add("kumi", row + ".wrong", soaked->wrong);
        table_.add("kumi", row + ".pause", soaked->longest_pause);
        table_.note(fmt::format("{}: {} messages, {} failovers", row, soaked->messages, soaked->failovers));
    }

    BenchOptions options_; // with the peers whose programs were found
    std::vector<Case> cases_;
    Table table_;
    Stage stage_;
    OwnLabs labs_;
};

} // namespace

Table run_composite_bench(const BenchOptions& options) { return CompositeBench(options).run(); }

std::vector<std::string> composite_rows() {
    std::vector<std::string> names;
    for (const Case& one : all_cases()) names.push_back(one.row.id);
    return names;
}

std::span<const char* const> composite_peers() noexcept { return peers_to_name; }

} // namespace kumi::bench
