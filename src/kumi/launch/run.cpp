#include "kumi/launch/run.hpp"

#include "kumi/launch/console/console.hpp"
#include "kumi/launch/console/typed_input.hpp"
#include "kumi/launch/job_run.hpp"

#include <cstdio>

namespace kumi::launch {

int run(const RunOptions& options, const Report& report) {
    const auto complain = [](const Error& reason) {
        std::fprintf(stderr, "kumi run: %s\n", reason.text().c_str());
        return 1;
    };
    JobOptions job_options = options.job;
    job_options.terminal = own_terminal();
    job_options.owns_process = true;
    Console console(options.label);
    auto job = JobRun::make(std::move(job_options), console);
    if (!job) return complain(job.error());
    if (auto opened = console.open(); !opened) return complain(opened.error());
    auto input = console.open_input((*job)->is_here());
    if (!input) return complain(input.error());
    if (auto started = (*job)->start(*std::move(input)); !started) return complain(started.error());
    console.attend(**job);
    console.finish(report ? report(**job) : "");
    return (*job)->how_it_ended().exit_code;
}

} // namespace kumi::launch
