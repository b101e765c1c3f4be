#pragma once

// What a program may ask for (hints), and what it gets: fi_getinfo(3) without the job. Pure.

#include <cstdint>
#include <rdma/fabric.h>

namespace kumi::provider {

/// What names an endpoint to other processes of its job.
struct Address {
    std::uint64_t job = 0;
    std::uint32_t node = 0;
    std::uint32_t endpoint = 0;
};
static_assert(sizeof(Address) == 16);

inline constexpr const char* fabric_name = "kumi";
inline constexpr const char* domain_name = "kumi";
inline constexpr std::uint32_t address_format = FI_PROV_SPECIFIC | 0x6b75;
inline constexpr std::uint32_t protocol = FI_PROV_SPECIFIC | 0x6b75;
inline constexpr std::size_t inject_bytes_max = 4096;
inline constexpr std::size_t places_max = 4; // of one send or receive

/// What suits the hints; null if nothing does. The caller frees it by fi_freeinfo().
fi_info* info_for(std::uint32_t version, const fi_info* hints);

} // namespace kumi::provider
