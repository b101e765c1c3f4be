#include "harness/jobs.hpp"

#include "harness/words.hpp"

#include <filesystem>

namespace kumi::bench {

Words job_here(const BenchOptions& options, const Words& run_options, const Words& words) {
    Words all{options.kumi_path, "run"};
    append(all, run_options);
    append(all, {"--", options.node_path, "node"});
    append(all, words);
    return all;
}

Words job_in_lab(const BenchOptions& options, const OwnLab& lab, const std::string& cluster_file,
                 const Words& run_options, const Words& words) {
    // The hosts of a lab are one machine. Each would bind its first node to the same core.
    Words all{"--no-bind", "--rsh", options.kumi_path + " lab exec", "--cluster",
              std::filesystem::path(options.labs_folder) / cluster_file}; // cluster_file may be absolute
    append(all, run_options);
    return lab.on("front", job_here(options, all, words));
}

} // namespace kumi::bench
