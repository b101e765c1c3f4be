// The provider as libfabric loads it: libkumi-fi.so.
#include "provider/fabric/objects.hpp"
#include "provider/info/info.hpp"
#include "provider/process.hpp"

#include <rdma/providers/fi_prov.h>

namespace {

using namespace kumi::provider;

int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t, const fi_info* hints,
             fi_info** found) {
    // Names of the network say nothing: addresses come from endpoints.
    if (node != nullptr || service != nullptr) return -FI_ENODATA;
    *found = info_for(version, hints);
    return *found == nullptr ? -FI_ENODATA : 0;
}

fi_provider provider{.version = FI_VERSION(0, 1),
                     .fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
                     .context = {},
                     .name = "kumi",
                     .getinfo = get_info,
                     .fabric = open_fabric,
                     .cleanup = [] { Process::leave(); }};

} // namespace

#ifndef EXTERNALLY_VISIBLE
#define EXTERNALLY_VISIBLE externally_visible
#endif
extern "C" FI_EXT_INI { return &provider; }
