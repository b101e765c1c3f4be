#include "kumi/job/mpi/session.hpp"

#include "kumi/base/system/machine.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace kumi::mpi {
namespace {

Result<void> check(const char* call, int code) {
    if (code == MPI_SUCCESS) return {};
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(code, text, &length);
    return error("joining by MPI: {} says: {}", call, text);
}

class MpiSession final : public boot::Session {
public:
    explicit MpiSession(MPI_Comm comm) : comm_(comm) {}

    Result<void> join() {
        int rank = 0, size = 0;
        MPI_Comm_rank(comm_, &rank);
        MPI_Comm_size(comm_, &size);
        standing_.node = static_cast<std::uint32_t>(rank);
        standing_.nodes = static_cast<std::uint32_t>(size);
        standing_.host = base::host_name();
        const auto hosts = exchange(bytes_of(std::string_view(standing_.host)));
        if (!hosts) return hosts.error();
        const auto cores = exchange(base::cores_allowed_bitmap());
        if (!cores) return cores.error();
        standing_.nodes_on_host = 0;
        std::vector<std::byte> together; // cores of this host's nodes, which a launcher may have bound each to its own
        for (std::uint32_t node = 0; node < standing_.nodes; ++node) {
            const std::string host(text_of((*hosts)[node]));
            if (std::ranges::find(standing_.hosts, host) == standing_.hosts.end()) standing_.hosts.push_back(host);
            if (host != standing_.host) continue;
            ++standing_.nodes_on_host;
            standing_.slot += node < standing_.node ? 1 : 0;
            together.resize(std::max(together.size(), (*cores)[node].size()));
            for (std::size_t i = 0; i < (*cores)[node].size(); ++i) together[i] |= (*cores)[node][i];
        }
        const auto count = [](unsigned sum, std::byte eight) {
            return sum + static_cast<unsigned>(std::popcount(static_cast<unsigned>(eight)));
        };
        standing_.cores_on_host = std::max(1u, std::accumulate(together.begin(), together.end(), 0u, count));
        return {};
    }

    const boot::Standing& standing() const noexcept override { return standing_; }

    Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine) override {
        const int size = static_cast<int>(mine.size());
        std::vector<int> sizes(standing_.nodes), offsets(standing_.nodes);
        if (auto met = check("MPI_Allgather", MPI_Allgather(&size, 1, MPI_INT, sizes.data(), 1, MPI_INT, comm_)); !met)
            return met.error();
        std::exclusive_scan(sizes.begin(), sizes.end(), offsets.begin(), 0);
        std::vector<std::byte> all(static_cast<std::size_t>(offsets.back() + sizes.back()));
        if (auto met = check("MPI_Allgatherv", MPI_Allgatherv(mine.data(), size, MPI_BYTE, all.data(), sizes.data(),
                                                              offsets.data(), MPI_BYTE, comm_));
            !met)
            return met.error();
        std::vector<std::vector<std::byte>> by_node;
        for (std::uint32_t node = 0; node < standing_.nodes; ++node)
            by_node.emplace_back(all.begin() + offsets[node], all.begin() + offsets[node] + sizes[node]);
        return by_node;
    }

    Result<base::Descriptor> share_on_host(base::Descriptor) override { return error("MPI hands over no descriptors"); }
    void report_traffic(std::span<const boot::TrafficEntry>) override {} // nobody here draws it
    void report_stats(std::span<const boot::StatsEntry>) override {}
    bool report_failure(const Error&) override { return false; }
    void leave() override {}

private:
    MPI_Comm comm_;
    boot::Standing standing_;
};

} // namespace

Result<std::unique_ptr<boot::Session>> open_session(MPI_Comm comm) {
    auto session = std::make_unique<MpiSession>(comm);
    if (auto joined = session->join(); !joined) return joined.error();
    return std::unique_ptr<boot::Session>(std::move(session));
}

} // namespace kumi::mpi
