#include "kumi/launch/host/pmi/over_kumi.hpp"

#include <filesystem>
#include <fmt/format.h>

namespace kumi::launch::host {

Result<std::vector<std::string>> variables_for_mpi_over_kumi() {
    namespace fs = std::filesystem;
    std::error_code wrong;
    const fs::path root = fs::read_symlink("/proc/self/exe", wrong).parent_path().parent_path();
    for (const char* const libraries : {KUMI_INSTALL_LIBDIR, "lib"}) {
        const fs::path folder = root / libraries / "libfabric";
        if (!fs::exists(folder / "libkumi-fi.so", wrong)) continue;
        return std::vector<std::string>{fmt::format("FI_PROVIDER_PATH={}", folder.string()),
                                        // Debian switches libfabric off, and takes another provider first.
                                        "OMPI_MCA_opal_common_ofi_provider_include=kumi", "OMPI_MCA_pml=cm",
                                        "OMPI_MCA_mtl=ofi"};
    }
    return error("there is no libkumi-fi.so, by which MPI runs over Kumi, in {}: install libfabric-dev and build Kumi "
                 "again",
                 (root / KUMI_INSTALL_LIBDIR / "libfabric").string());
}

} // namespace kumi::launch::host
