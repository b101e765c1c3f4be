#include "kumi/launch/run.hpp"

#include "kumi/base/keys.hpp"
#include "kumi/launch/host/limits.hpp"
#include "kumi/launch/host/process.hpp"
#include "kumi/launch/watch.hpp"

#include <cstdio>

namespace kumi::launch {

int run(const RunOptions& options) {
    const auto complain = [](const Error& reason) {
        std::fprintf(stderr, "kumi run: %s\n", reason.text().c_str());
        return 1;
    };
    auto program = host::find_program(options.program);
    if (!program) return complain(program.error());
    if (auto fits = host::check_limits(options.nodes); !fits) return complain(fits.error());
    auto keys = base::make_job_keys();
    if (!keys) return complain(keys.error());
    Watch watch(options, *std::move(program), *keys);
    if (auto started = watch.start(); !started) return complain(started.error());
    return watch.until_end();
}

} // namespace kumi::launch
