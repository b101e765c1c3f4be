#include "kumi/launch/host/processes/binding.hpp"

#include <cstdint>
#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <memory>

namespace kumi::launch::host {
namespace {

struct TopologyDeleter {
    void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, TopologyDeleter>;

/// Cores only: looking at devices and caches takes many times as long as starting a job.
Topology load_cores() {
    hwloc_topology_t raw = nullptr;
    if (hwloc_topology_init(&raw) != 0) return nullptr;
    Topology topology(raw);
    hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(raw, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_type_filter(raw, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING | HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM);
    if (hwloc_topology_load(raw) != 0) return nullptr;
    return topology;
}

} // namespace

std::vector<cpu_set_t> plan_binding(unsigned nodes) {
    const Topology topology = load_cores();
    if (!topology) return {};
    const int cores = hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE);
    if (cores <= 0 || nodes > static_cast<unsigned>(cores)) return {};

    // Evenly over the cores in the machine's order, which are neighbours in their package: never one core twice, be
    // the cores as different as they may.
    std::vector<cpu_set_t> binding(nodes);
    for (unsigned node = 0; node < nodes; ++node) {
        const auto core = static_cast<unsigned>(std::uint64_t{node} * static_cast<unsigned>(cores) / nodes);
        const hwloc_obj* place = hwloc_get_obj_by_type(topology.get(), HWLOC_OBJ_CORE, core);
        hwloc_cpuset_to_glibc_sched_affinity(topology.get(), place->cpuset, &binding[node], sizeof binding[node]);
    }
    return binding;
}

} // namespace kumi::launch::host
