// kumi-pmix FOLDER JOB OWN HOST:COUNT...: serves PMIx to the nodes of the host with the number OWN of those named.
// host::PmiServers starts it and talks to it over descriptor 3. When that closes, the starter has been killed, or it
// would have killed this process and removed FOLDER itself: so this process removes FOLDER, and ends.
#include "kumi/base/text/number_text.hpp"
#include "kumi/launch/host/processes/folder.hpp"
#include "kumi/launch/pmix/server.hpp"

#include <cstdio>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace kumi;
using namespace kumi::launch;

constexpr int socket_number = 3;

std::optional<host::JobMap> read_map(int count, char** words) {
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

/// Whether this program was started as it should be. It removes a folder, so it looks twice.
bool is_started_by_kumi(int count, char** words) {
    int domain = 0;
    socklen_t bytes = sizeof domain;
    return count >= 5 && host::is_own_folder(words[1]) &&
           ::getsockopt(socket_number, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && domain == AF_UNIX;
}

} // namespace

int main(int count, char** words) {
    auto map = is_started_by_kumi(count, words) ? read_map(count, words) : std::nullopt;
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
    host::remove_folder(words[1]);
    ::_exit(0); // libpmix's own end would take longer
}
