#include "group/cases.hpp"

#include "group/work.hpp"

#include <fmt/format.h>

namespace kumi::bench {
namespace {

/// A row for each size. `text(bytes)` says what the row measures.
template <class Text>
JobCase sized_case(const char* what, const std::string& place, int nodes, std::span<const std::size_t> sizes,
                   const Text& text) {
    JobCase made{what, place, nodes, {}};
    for (const std::size_t bytes : sizes)
        made.rows.push_back({fmt::format("group.{}.{}.{}", what, bytes, place), "us", true, text(bytes)});
    return made;
}

JobCase set_case(const char* what, const std::string& place, int nodes, std::span<const std::size_t> sizes,
                 const char* beside) {
    return sized_case(what, place, nodes, sizes, [&](std::size_t bytes) {
        return fmt::format("{} bytes to {} of {} nodes, others each time, until the master knows that they have them; "
                           "peers: {}",
                           bytes, set_nodes(nodes), nodes, beside);
    });
}

JobCase multicast_case(const std::string& place, int nodes) {
    return set_case("multicast", place, nodes, multicast_bytes, "communicators made beforehand, MPI_Bcast, MPI_Reduce");
}

JobCase create_case(const std::string& place, int nodes) {
    return set_case("create", place, nodes, create_bytes, "a communicator made for it, MPI_Bcast, MPI_Reduce");
}

JobCase master_case(int nodes) {
    const std::string place = std::to_string(nodes);
    return {"master",
            place,
            nodes,
            {{"group.master." + place, "ns", true,
              fmt::format("until the caller of a multicast of 64 bytes to {} others may go on; median", nodes - 1)}}};
}

JobCase allreduce_case(int nodes) {
    return sized_case("allreduce", std::to_string(nodes), nodes, allreduce_bytes, [&](std::size_t bytes) {
        return fmt::format("the sum of {} bytes of doubles over {} nodes, at all of them", bytes, nodes);
    });
}

JobCase alltoallv_case(int nodes) {
    return sized_case("alltoallv", std::to_string(nodes), nodes, alltoallv_bytes, [&](std::size_t bytes) {
        return fmt::format("{} bytes of each of {} nodes, in unequal parts to all of them", bytes, nodes);
    });
}

JobCase seated_case(const Seating& seating) {
    return sized_case("allreduce", seating.place, 4, allreduce_bytes, [&](std::size_t bytes) {
        return fmt::format("the sum of {} bytes of doubles over 4 nodes in a lab, {}; shows what the way between nodes "
                           "costs, not cores, which the hosts of a lab share",
                           bytes, seating.text);
    });
}

} // namespace

LabHosts lab_hosts_of(const JobCase& one) {
    for (const Seating& seating : seatings)
        if (one.place == seating.place) return seating.lab_hosts();
    return {};
}

std::vector<JobCase> group_cases() {
    std::vector<JobCase> cases;
    for (const int nodes : {2, 4, 8, 16}) cases.push_back(multicast_case(std::to_string(nodes), nodes));
    cases.push_back(multicast_case("12.lab", 12));
    for (const int nodes : {4, 16}) cases.push_back(create_case(std::to_string(nodes), nodes));
    cases.push_back(create_case("12.lab", 12));
    for (const int nodes : {2, 4, 8, 16}) cases.push_back(master_case(nodes));
    for (const int nodes : {2, 4, 8, 16}) cases.push_back(allreduce_case(nodes));
    for (const int nodes : {2, 4}) cases.push_back(alltoallv_case(nodes));
    for (const Seating& seating : seatings) cases.push_back(seated_case(seating));
    return cases;
}

} // namespace kumi::bench
