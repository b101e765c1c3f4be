#include "group/cases.hpp"

#include "group/work.hpp"

#include <fmt/format.h>

namespace kumi::bench {
namespace {

JobCase set_case(const char* what, const std::string& place, int nodes, std::span<const std::size_t> sizes,
                 const char* beside) {
    JobCase made{what, place, nodes, {}};
    for (const std::size_t bytes : sizes)
        made.rows.push_back(
            {fmt::format("group.{}.{}.{}", what, bytes, place), "us", true,
             fmt::format("{} bytes to {} of {} nodes, others each time, until the master knows that they "
                         "have them; peers: {}",
                         bytes, set_nodes(nodes), nodes, beside)});
    return made;
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
    JobCase made{"allreduce", std::to_string(nodes), nodes, {}};
    for (const std::size_t bytes : allreduce_bytes)
        made.rows.push_back(
            {fmt::format("group.allreduce.{}.{}", bytes, nodes), "us", true,
             fmt::format("the sum of {} bytes of doubles over {} nodes, at all of them", bytes, nodes)});
    return made;
}

} // namespace

std::vector<JobCase> group_cases() {
    std::vector<JobCase> cases;
    for (const int nodes : {2, 4, 8, 16}) cases.push_back(multicast_case(std::to_string(nodes), nodes));
    cases.push_back(multicast_case("12.lab", 12));
    for (const int nodes : {4, 16}) cases.push_back(create_case(std::to_string(nodes), nodes));
    cases.push_back(create_case("12.lab", 12));
    for (const int nodes : {2, 4, 8, 16}) cases.push_back(master_case(nodes));
    for (const int nodes : {2, 4, 8, 16}) cases.push_back(allreduce_case(nodes));
    return cases;
}

} // namespace kumi::bench
