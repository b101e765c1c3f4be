// kumi-pmix FOLDER JOB OWN HOST:COUNT...: serves PMIx to the nodes of the host with the number OWN of those named. Is
// started by host::PmiServers, which it talks to over descriptor 3, and ends when that closes. It removes FOLDER then:
// its starter has been killed, or it would have killed this process and removed FOLDER itself.
#include "kumi/base/text/number_text.hpp"
#include "kumi/launch/pmix/server.hpp"

#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <string_view>
#include <unistd.h>

namespace {

using namespace kumi;
using namespace kumi::launch;

constexpr int socket_number = 3;

std::optional<host::JobMap> read_map(int count, char** words) {
    if (count < 5) return std::nullopt;
    host::JobMap map{.name = words[2], .parts = {}, .own = 0};
    std::uint32_t first = 0;
    for (int i = 4; i < count; ++i) {
        const std::string_view word = words[i];
        const std::size_t colon = word.rfind(':');
        const auto nodes = colon == word.npos ? std::nullopt : base::number_in<std::uint32_t>(word.substr(colon + 1));
        if (!nodes) return std::nullopt;
        map.parts.push_back({std::string(word.substr(0, colon)), first, *nodes});
        first += *nodes;
    }
    const auto own = base::number_in<std::size_t>(words[3]);
    if (!own || *own >= map.parts.size()) return std::nullopt;
    map.own = *own;
    return map;
}

/// Processes of the job, which are being killed, may still make files.
void remove_folder(const std::string& folder) {
    constexpr timespec pause{0, 20'000'000};
    for (int round = 0; round < 10; ++round, ::nanosleep(&pause, nullptr)) {
        std::error_code wrong;
        std::filesystem::remove_all(folder, wrong);
    }
}

} // namespace

int main(int count, char** words) {
    auto map = read_map(count, words);
    base::Descriptor socket(::fcntl(socket_number, F_DUPFD_CLOEXEC, 10));
    if (!map || !socket) {
        std::fprintf(stderr, "kumi-pmix: kumi run starts this program for MPI processes, nobody else does\n");
        return 2;
    }
    pmix::Server server(*std::move(map), words[1], std::move(socket));
    if (const auto started = server.start(); !started) {
        std::fprintf(stderr, "kumi-pmix: %s\n", started.error().text().c_str());
        return 1;
    }
    server.serve();
    remove_folder(words[1]);
    ::_exit(0); // libpmix's own end would take longer
}
