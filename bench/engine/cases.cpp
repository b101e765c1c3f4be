#include "engine/cases.hpp"

#include <fmt/format.h>

namespace kumi::bench {
namespace {

JobCase pair_case(const std::string& place) {
    const bool by_memory = place == "shmem";
    const auto row = [&](const char* what) { return fmt::format("engine.{}.{}", what, place); };
    return {
        "pair",
        place,
        2,
        {{row("am"), "ns", true, "an active message with 8 bytes and its answer, half of both; limit: PM's ping-pong"},
         {row("put_notify.8"), "ns", true, "8 bytes put with a flag, to and fro, one way; limit: PM's ping-pong"},
         {row("issue.8"), "ns", true, "until the caller of a put of 8 bytes may go on"},
         {row("put.1048576"), "MB/s", false,
          by_memory ? "1 MiB put, 8 and one sync; limit: memcpy from private to shared memory"
                    : "the same between hosts; limit: PM's messages of 1 MiB, copied at both ends"},
         {row("get.1048576"), "MB/s", false,
          by_memory ? "1 MiB got, one at a time; limit: memcpy from shared to private memory"
                    : "the same between hosts"},
         {row("put_flush.8"), "ns", true, "8 bytes put, until they are there"},
         {row("put_flush.1048576"), "us", true, "1 MiB put, until it is there"},
         {row("fetch_add"), "ns", true, "one added to a word of the other node, which answers what it was"},
         {row("issue_of_two.8"), "ns", true, "like issue.8, for each of two threads that put at once"}}};
}

JobCase barrier_case(const std::string& place, int nodes) {
    return {"barrier",
            place,
            nodes,
            {{"engine.barrier." + place, "us", true, fmt::format("a barrier of {} nodes", nodes)}}};
}

JobCase hidden_case(const std::string& place, int nodes) {
    return {"barrier_hidden",
            place,
            nodes,
            {{"engine.barrier_hidden." + place, "%", true,
              "of a barrier's time, spent in the calls of nodes that arrive, do something else for three times as "
              "long, and "
              "wait"},
             {"engine.barrier_cost." + place, "%", true,
              "of a barrier's time, by which three times as much computing takes longer with one behind it"}}};
}

JobCase jacobi_case() {
    JobCase made{"jacobi", "lan", 8, {}};
    made.rows.push_back(
        {"engine.jacobi.overlap", "ratio", false,
         "Jacobi's method on 1024 x 1024 points, 8 hosts on a LAN, one thread each: time without overlap over "
         "time with it"});
    for (const int threads : {1, 2, 4})
        for (const char* way : {"plain", "overlap"})
            made.rows.push_back({fmt::format("engine.jacobi.speedup.{}.{}", threads, way), "ratio", false,
                                 fmt::format("time of one thread alone over that of 8 nodes with {}, {}", threads,
                                             way == std::string("plain") ? "neighbours' rows first" : "overlapped")});
    return made;
}

} // namespace

std::vector<JobCase> engine_cases() {
    std::vector<JobCase> cases{pair_case("shmem"), pair_case("udp")};
    for (const int nodes : {2, 4, 8, 16}) cases.push_back(barrier_case(std::to_string(nodes), nodes));
    cases.push_back(barrier_case("12.lab", 12));
    for (const int nodes : {2, 4}) cases.push_back(hidden_case(std::to_string(nodes), nodes));
    cases.push_back(hidden_case("12.lab", 12));
    for (const char* place : {"shmem", "udp"})
        cases.push_back({"answer",
                         place,
                         2,
                         {{fmt::format("engine.answer.{}", place), "us", true,
                           "a request and its answer by a node that computes and does not call Kumi; median"}}});
    cases.push_back(
        {"idle", "shmem", 2, {{"engine.idle", "%", true, "of a core, used by a node that sleeps outside Kumi"}}});
    cases.push_back({"idle", "udp", 2, {{"engine.idle.udp", "%", true, "the same with its peer on another host"}}});
    cases.push_back(jacobi_case());
    return cases;
}

} // namespace kumi::bench
