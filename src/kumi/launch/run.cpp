#include "kumi/launch/run.hpp"

#include "kumi/base/keys.hpp"
#include "kumi/launch/host/limits.hpp"
#include "kumi/launch/plan.hpp"
#include "kumi/launch/watch.hpp"

#include <cstdio>

namespace kumi::launch {

int run(const RunOptions& options) {
    const auto complain = [](const Error& reason) {
        std::fprintf(stderr, "kumi run: %s\n", reason.text().c_str());
        return 1;
    };
    auto plan = plan_job(options);
    if (!plan) return complain(plan.error());
    auto fits = plan->is_here() ? host::check_limits(options.nodes) : host::check_host_limits(plan->parts.size());
    if (!fits) return complain(fits.error());
    auto keys = base::make_job_keys();
    if (!keys) return complain(keys.error());
    Watch watch(options, *std::move(plan), *keys);
    if (auto started = watch.start(); !started) return complain(started.error());
    return watch.until_end();
}

} // namespace kumi::launch
