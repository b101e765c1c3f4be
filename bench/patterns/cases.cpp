#include "patterns/cases.hpp"

#include "patterns/work.hpp"

#include "kumi/base/system/machine.hpp"

#include <fmt/format.h>

namespace kumi::bench {
namespace {

/// A row for each size of message.
JobCase sized_case(const char* what, const std::string& place, int nodes, std::span<const std::size_t> sizes,
                   const RowKind& kind) {
    JobCase made{what, place, nodes, {}};
    for (const std::size_t bytes : sizes)
        made.rows.push_back({pattern_row(what, bytes, place), kind.unit, kind.lower_is_better,
                             fmt::format("{} messages, {}", base::readable_bytes(bytes), kind.what)});
    return made;
}

std::string together(int count, const char* what) {
    return count == 1 ? fmt::format("one {}", what) : fmt::format("{} {}s at once", count, what);
}

JobCase rates_case(const std::string& what, const std::string& place, int nodes, const std::string& text) {
    return sized_case(what.c_str(), place, nodes, rates_bytes(what),
                      {"", what == "pingpongs" ? "kB/s" : "MB/s", false, text});
}

JobCase barrier_case(int nodes) {
    const std::string place = std::to_string(nodes);
    return {"barrier",
            place,
            nodes,
            {{"patterns.barrier." + place, "us", true,
              fmt::format("a barrier of {} nodes; limit: one message of PM, half a ping-pong of two nodes", nodes)}}};
}

JobCase placement_case(const Seating& seating) {
    return sized_case("placement", seating.place, 4, placement_bytes,
                      {"", "us", true, fmt::format("4 nodes in a lab, {}: one from each to each", seating.text)});
}

JobCase multicasts_case(int masters) {
    return sized_case(
        "multicasts", std::to_string(masters), multicasts_nodes, multicasts_bytes,
        {"", "us", true,
         fmt::format("to {} of {} nodes, by {}, until it is known that all have them; peers: MPI_Ibcast in "
                     "communicators made beforehand, MPI_Ireduce",
                     set_nodes(multicasts_nodes), multicasts_nodes, together(masters, "master"))});
}

} // namespace

LabHosts patterns_hosts_of(const JobCase& one) {
    for (const Seating& seating : seatings)
        if (one.place == seating.place) return seating.lab_hosts();
    return {one.nodes == 2 ? "a0,a1" : "a0,a1,a2", "myrinet"};
}

std::vector<JobCase> patterns_cases() {
    std::vector<JobCase> cases;
    for (const int pairs : pairs_at_once)
        cases.push_back(
            rates_case("pairs", std::to_string(pairs), 2 * pairs, fmt::format("one way, {}", together(pairs, "pair"))));
    for (const int pairs : pairs_at_once)
        cases.push_back(rates_case("pingpongs", std::to_string(pairs), 2 * pairs,
                                   fmt::format("to and fro, {}", together(pairs, "pair"))));
    for (const std::string where : incast_places)
        for (const int senders : incast_senders)
            cases.push_back(rates_case("incast", fmt::format("{}.{}", senders, where), senders + 1,
                                       fmt::format("{} to one receiver, {}", together(senders, "sender"),
                                                   where == "lab" ? "each on a host of a lab" : "on one host")));
    for (const int nodes : barrier_nodes) cases.push_back(barrier_case(nodes));
    for (const Seating& seating : seatings) cases.push_back(placement_case(seating));
    for (const int masters : masters_at_once) cases.push_back(multicasts_case(masters));
    return cases;
}

} // namespace kumi::bench
