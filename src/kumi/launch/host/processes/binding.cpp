#include "kumi/launch/host/processes/binding.hpp"

#include "kumi/launch/host/processes/core_claims.hpp"

#include <cstdlib>
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
    hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM);
    if (hwloc_topology_load(raw) != 0) return nullptr;
    return topology;
}

struct Core {
    unsigned number;      // of its first processor, whether this process may use that or not: the same for all jobs
    cpu_set_t processors; // those that this process may use
};

/// The cores that this process may use, in the machine's order: neighbours share a package.
std::vector<Core> usable_cores() {
    cpu_set_t allowed;
    if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {};
    const Topology topology = load_cores();
    if (!topology) return {};
    std::vector<Core> cores;
    for (hwloc_obj* core = nullptr;
         (core = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_CORE, core)) != nullptr;) {
        Core usable{static_cast<unsigned>(hwloc_bitmap_first(core->complete_cpuset)), {}};
        hwloc_cpuset_to_glibc_sched_affinity(topology.get(), core->cpuset, &usable.processors,
                                             sizeof usable.processors);
        CPU_AND(&usable.processors, &usable.processors, &allowed);
        if (CPU_COUNT(&usable.processors) != 0) cores.push_back(usable);
    }
    return cores;
}

std::string claims_folder() {
    const char* const named = std::getenv("KUMI_CORES");
    return named != nullptr && named[0] != '\0' ? named : "/sys/devices/system/cpu";
}

} // namespace

std::vector<BoundCore> bind_nodes(unsigned nodes) {
    const std::vector<Core> cores = usable_cores();
    std::vector<unsigned> numbers;
    for (const Core& core : cores) numbers.push_back(core.number);
    std::vector<BoundCore> bound;
    for (ClaimedCore& claimed : claim_cores(claims_folder(), numbers, nodes))
        bound.push_back({cores[claimed.index].processors, std::move(claimed.claim)});
    return bound;
}

} // namespace kumi::launch::host
