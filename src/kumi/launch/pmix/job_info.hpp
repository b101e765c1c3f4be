#pragma once

#include "kumi/base/result.hpp"
#include "kumi/launch/host/job_map.hpp"

#include <cstdint>
#include <pmix_server.h>
#include <string>
#include <vector>

namespace kumi::launch::pmix {

/// Keys and values, as libpmix takes them.
class Infos {
public:
    Infos() = default;
    Infos(Infos&& other) noexcept : infos_(std::move(other.infos_)) { other.infos_.clear(); }
    Infos& operator=(Infos&&) = delete;
    ~Infos();

    void add_text(const char* key, const std::string& value) { add(key, value.c_str(), PMIX_STRING); }
    void add_uint32(const char* key, std::uint32_t value) { add(key, &value, PMIX_UINT32); }
    void add_uint16(const char* key, std::uint32_t value);
    void add_rank(const char* key, pmix_rank_t value) { add(key, &value, PMIX_PROC_RANK); }
    void add_bool(const char* key, bool value) { add(key, &value, PMIX_BOOL); }
    void add_array(const char* key, Infos& value);
    void add(const char* key, const void* value, pmix_data_type_t type);

    pmix_info_t* data() noexcept { return infos_.data(); }
    std::size_t size() const noexcept { return infos_.size(); }

private:
    std::vector<pmix_info_t> infos_;
};

/// What the server itself has to know.
Infos server_info(const host::JobMap& map, const std::string& folder);

/// What processes may ask about their job. Open MPI needs all of it: without LOCAL_RANK and NODE_RANK its MPI_Init
/// fails, and without the folders it leaves some behind.
Result<Infos> job_info(const host::JobMap& map, const std::string& folder);

} // namespace kumi::launch::pmix
