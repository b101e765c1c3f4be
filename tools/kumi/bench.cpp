#include "commands.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <unistd.h>
#include <vector>

namespace kumi::tools {

void add_bench_command(CLI::App& app) {
    app.add_subcommand("bench", "measure Kumi beside its peers and the machine's limit, in one run");
}

int become_bench(char** words) {
    const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe");
    const std::string program = own.parent_path().parent_path() / "libexec/kumi/kumi-bench";
    std::vector<char*> arguments{const_cast<char*>("kumi bench")};
    for (; *words != nullptr; ++words) arguments.push_back(*words);
    arguments.push_back(nullptr);
    ::execv(program.c_str(), arguments.data());
    std::fprintf(stderr, "kumi bench: %s: %s: build Kumi with its benchmarks, by make or make bench\n", program.c_str(),
                 std::strerror(errno));
    return 1;
}

} // namespace kumi::tools
