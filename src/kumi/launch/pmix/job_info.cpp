#include "kumi/launch/pmix/job_info.hpp"

#include <cstdlib>
#include <fmt/ranges.h>
#include <memory>
#include <numeric>
#include <pmix.h>

namespace kumi::launch::pmix {
namespace {

using host::Part;

struct Free {
    void operator()(char* text) const noexcept { std::free(text); }
};
using CText = std::unique_ptr<char, Free>;

std::vector<std::uint32_t> nodes_of(const Part& part) {
    std::vector<std::uint32_t> nodes(part.count);
    std::iota(nodes.begin(), nodes.end(), part.first);
    return nodes;
}

/// A list in the form that libpmix gives such lists.
template <class Generate>
Result<CText> generate(Generate function, const std::vector<std::string>& words, const char* between) {
    char* text = nullptr;
    const std::string list = fmt::format("{}", fmt::join(words, between));
    const pmix_status_t status = function(list.c_str(), &text);
    if (status != PMIX_SUCCESS) return error("PMIx does not take the job's hosts: {}", PMIx_Error_string(status));
    return CText(text);
}

Infos process_info(std::size_t host, const Part& part, std::uint32_t slot) {
    const std::uint32_t node = part.first + slot;
    Infos info;
    info.add_rank(PMIX_RANK, node);
    info.add_rank(PMIX_GLOBAL_RANK, node);
    info.add_rank(PMIX_APP_RANK, node);
    info.add_rank(PMIX_APPLDR, 0);
    info.add_uint32(PMIX_APPNUM, 0);
    info.add_uint16(PMIX_LOCAL_RANK, slot);
    info.add_uint16(PMIX_NODE_RANK, slot);
    info.add_text(PMIX_HOSTNAME, part.host);
    info.add_uint32(PMIX_NODEID, static_cast<std::uint32_t>(host));
    info.add_uint32(PMIX_REINCARNATION, 0);
    return info;
}

} // namespace

Infos::~Infos() {
    for (pmix_info_t& info : infos_) PMIX_INFO_DESTRUCT(&info);
}

void Infos::add(const char* key, const void* value, pmix_data_type_t type) {
    pmix_info_t& info = infos_.emplace_back();
    PMIX_INFO_CONSTRUCT(&info);
    PMIx_Info_load(&info, key, value, type); // copies the value
}

void Infos::add_uint16(const char* key, std::uint32_t value) {
    const auto small = static_cast<std::uint16_t>(value);
    add(key, &small, PMIX_UINT16);
}

void Infos::add_array(const char* key, Infos& value) {
    pmix_data_array_t array{PMIX_INFO, value.size(), value.data()};
    add(key, &array, PMIX_DATA_ARRAY);
}

Infos server_info(const host::JobMap& map, const std::string& folder) {
    Infos info;
    info.add_text(PMIX_SERVER_TMPDIR, folder);
    info.add_text(PMIX_SYSTEM_TMPDIR, folder);
    info.add_text(PMIX_HOSTNAME, map.here().host);
    info.add_text(PMIX_SERVER_NSPACE, map.name + "-server");
    info.add_rank(PMIX_SERVER_RANK, static_cast<pmix_rank_t>(map.own));
    info.add_uint32(PMIX_NODEID, static_cast<std::uint32_t>(map.own));
    return info;
}

Result<Infos> job_info(const host::JobMap& map, const std::string& folder) {
    const Part& here = map.here();
    const std::uint32_t nodes = map.nodes();
    std::vector<std::string> names, placed;
    for (const Part& part : map.parts) {
        names.push_back(part.host);
        placed.push_back(fmt::format("{}", fmt::join(nodes_of(part), ",")));
    }
    const auto hosts = generate(PMIx_generate_regex, names, ",");
    if (!hosts) return hosts.error();
    const auto processes = generate(PMIx_generate_ppn, placed, ";");
    if (!processes) return processes.error();

    Infos info;
    info.add_text(PMIX_JOBID, map.name);
    for (const char* const key : {PMIX_UNIV_SIZE, PMIX_JOB_SIZE, PMIX_MAX_PROCS}) info.add_uint32(key, nodes);
    info.add_uint32(PMIX_JOB_NUM_APPS, 1);
    info.add_uint32(PMIX_NUM_NODES, static_cast<std::uint32_t>(map.parts.size()));
    info.add_uint32(PMIX_LOCAL_SIZE, here.count);
    info.add_uint32(PMIX_NODE_SIZE, here.count);
    info.add_text(PMIX_LOCAL_PEERS, placed[map.own]);
    info.add_rank(PMIX_LOCALLDR, here.first);
    info.add(PMIX_NODE_MAP, hosts->get(), PMIX_REGEX);
    info.add(PMIX_PROC_MAP, processes->get(), PMIX_REGEX);
    info.add_text(PMIX_TMPDIR, folder);
    info.add_text(PMIX_NSDIR, folder + "/job");
    info.add_bool(PMIX_TDIR_RMCLEAN, true);
    info.add_bool(PMIX_SPAWNED, false);
    for (std::size_t host = 0; host < map.parts.size(); ++host)
        for (std::uint32_t slot = 0; slot < map.parts[host].count; ++slot) {
            Infos one = process_info(host, map.parts[host], slot);
            if (host == map.own) one.add_text(PMIX_PROCDIR, fmt::format("{}/job/{}", folder, here.first + slot));
            info.add_array(PMIX_PROC_DATA, one);
        }
    return info;
}

} // namespace kumi::launch::pmix
