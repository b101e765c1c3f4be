#include "kumi/boot/foreign/foreign_job.hpp"

#include "kumi/base/log.hpp"
#include "kumi/boot/foreign/handover.hpp"
#include "kumi/boot/foreign/shared_page.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fcntl.h>
#include <sys/random.h>

namespace kumi::boot {
namespace {

constexpr std::uint32_t info_version = 1;

/// The first value that a node puts into the store. Followed by `cores_bytes` of the bitmap of its cores, then by the
/// name of its host.
struct NodeInfoHead {
    std::uint32_t version;
    std::uint32_t cores_bytes;
    HostId host;
    ListenerName listener;
    base::JobKeys keys; // of the job, from node 0; zero from the others
};

struct NodeInfo {
    NodeInfoHead head{};
    std::vector<std::byte> cores;
    std::string host_name;
};

/// What a node sends to the leader's socket.
struct Greeting {
    std::uint64_t token;
    std::uint32_t node;
    std::uint32_t reserved;
};

std::vector<std::byte> encode_info(const NodeInfo& info) {
    std::vector<std::byte> bytes;
    for (const Bytes part : {bytes_of(info.head), Bytes(info.cores), bytes_of(std::string_view(info.host_name))})
        bytes.insert(bytes.end(), part.begin(), part.end());
    return bytes;
}

Result<NodeInfo> decode_info(Bytes bytes, std::uint32_t node) {
    NodeInfo info;
    if (!read_value(bytes, info.head) || info.head.version != info_version ||
        info.head.cores_bytes > bytes.size() - sizeof info.head)
        return error("node {} joins with another version of Kumi: build all programs of a job with the same one", node);
    const Bytes rest = bytes.subspan(sizeof info.head);
    info.cores.assign(rest.begin(), rest.begin() + info.head.cores_bytes);
    info.host_name = text_of(rest.subspan(info.head.cores_bytes));
    return info;
}

class ForeignSession final : public Session {
public:
    ForeignSession(std::unique_ptr<KeyValues> store, std::chrono::milliseconds answer_max)
        : store_(std::move(store)), answer_max_(answer_max) {}

    Result<void> join(const HostId& host) {
        standing_.node = store_->node();
        standing_.nodes = store_->nodes();
        const auto listener = open_listener();
        if (!listener) return listener.error();
        if (auto met = exchange_infos(host, listener->name); !met) return met.error();
        if (auto found = find_host(*listener); !found) return found.error();
        return {};
    }

    const Standing& standing() const noexcept override { return standing_; }

    Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine) override {
        const std::string key = fmt::format("round{}", round_++);
        if (auto put = store_->put(key, mine); !put) return put.error();
        if (auto met = store_->fence(); !met) return met.error();
        std::vector<std::vector<std::byte>> all;
        for (std::uint32_t node = 0; node < standing_.nodes; ++node) {
            if (node == standing_.node) {
                all.emplace_back(mine.begin(), mine.end());
                continue;
            }
            auto theirs = store_->get(node, key);
            if (!theirs) return theirs.error();
            all.push_back(*std::move(theirs));
        }
        return all;
    }

    Result<base::Descriptor> share_on_host(base::Descriptor mine) override {
        if (standing_.slot != 0) return receive_descriptor(to_leader_.get(), now() + answer_max_, name_of(leader_));
        for (const Member& member : members_)
            if (auto given = send_descriptor(member.socket.get(), mine.get(), name_of(member.node)); !given)
                return given.error();
        return base::Descriptor{};
    }

    void report_traffic(std::span<const TrafficEntry>) override {} // only kumi run asks for it
    void report_stats(std::span<const StatsEntry>) override {}
    // the program reports it itself; the launcher sees it exit
    bool report_failure(const Error&) override { return false; }
    void leave() override { store_->leave(); }

private:
    struct Member {
        std::uint32_t node;
        base::Descriptor socket;
    };

    std::string name_of(std::uint32_t node) const { return fmt::format("node {} on {}", node, infos_[node].host_name); }

    Result<void> exchange_infos(const HostId& host, const ListenerName& listener) {
        NodeInfo mine;
        mine.cores = base::cores_allowed_bitmap();
        mine.host_name = base::host_name();
        mine.head = {info_version, static_cast<std::uint32_t>(mine.cores.size()), host, listener, {}};
        if (standing_.node == 0) {
            const auto keys = base::make_job_keys();
            if (!keys) return keys.error();
            mine.head.keys = *keys;
        }
        const auto all = exchange(encode_info(mine));
        if (!all) return all.error();
        for (std::uint32_t node = 0; node < standing_.nodes; ++node) {
            auto info = decode_info((*all)[node], node);
            if (!info) return info.error();
            infos_.push_back(*std::move(info));
        }
        standing_.keys = infos_[0].head.keys;
        standing_.host = infos_[standing_.node].host_name;
        return {};
    }

    /// The lowest node whose host id is that of this node.
    std::uint32_t likely_leader() const {
        std::uint32_t node = 0;
        while (infos_[node].head.host != infos_[standing_.node].head.host) ++node;
        return node;
    }

    Result<void> find_host(const Listener& listener) {
        leader_ = likely_leader();
        Result<void> met;
        if (leader_ != standing_.node) {
            const Greeting greeting{standing_.keys.token, standing_.node, 0};
            auto socket = connect_to(infos_[leader_].head.listener, bytes_of(greeting));
            if (socket) to_leader_ = *std::move(socket);
            else met = socket.error();
        }
        if (auto knocked = store_->fence(); !knocked) return knocked.error();
        if (leader_ == standing_.node) {
            if (auto answered = answer_connections(listener); !answered) return answered.error();
        } else if (!met || !(met = map_leaders_page())) {
            base::log_debug("{} is on another host, although its host looks like this one: {}", name_of(leader_),
                            met.error().text());
            leader_ = standing_.node;
        }
        const auto leaders = exchange(bytes_of(leader_));
        if (!leaders) return leaders.error();
        return derive_standing(*leaders);
    }

    /// Checks that the leader's page can be mapped, and has the name of the leader's socket, which no other page has.
    Result<void> map_leaders_page() const {
        const auto page = receive_descriptor(to_leader_.get(), now() + answer_max_, name_of(leader_));
        if (!page) return page.error();
        const auto id = read_shared_page(*page);
        if (!id) return id.error();
        if (*id != infos_[leader_].head.listener) return error("its memory has another content here");
        return {};
    }

    /// Sends a page of memory to every node that has connected, so that they can try to map it.
    Result<void> answer_connections(const Listener& listener) {
        const auto page = make_shared_page(listener.name);
        if (!page) return page.error();
        while (auto connection = next_connection(listener)) {
            Greeting greeting{};
            if (!read_value(connection->greeting, greeting) || greeting.token != standing_.keys.token ||
                greeting.node >= standing_.nodes)
                continue;
            const auto known = [&](const Member& member) { return member.node == greeting.node; };
            if (greeting.node == standing_.node || std::any_of(members_.begin(), members_.end(), known)) continue;
            if (send_descriptor(connection->socket.get(), page->get(), name_of(greeting.node)))
                members_.push_back({greeting.node, std::move(connection->socket)});
        }
        return {};
    }

    /// Derives this node's standing from the leader that each node has reported.
    Result<void> derive_standing(const std::vector<std::vector<std::byte>>& leaders) {
        standing_.nodes_on_host = 0;
        std::vector<std::byte> cores;
        for (std::uint32_t node = 0; node < standing_.nodes; ++node) {
            std::uint32_t leader = 0;
            if (!read_value(leaders[node], leader) || leader > node)
                return error("node {} does not say which host it is on", node);
            if (leader == node) standing_.hosts.push_back(infos_[node].host_name);
            if (leader != leader_) {
                std::erase_if(members_, [&](const Member& member) { return member.node == node; });
                continue;
            }
            if (node == standing_.node) standing_.slot = standing_.nodes_on_host;
            ++standing_.nodes_on_host;
            const std::vector<std::byte>& more = infos_[node].cores;
            cores.resize(std::max(cores.size(), more.size()));
            for (std::size_t i = 0; i < more.size(); ++i) cores[i] |= more[i];
        }
        int count = 0;
        for (const std::byte byte : cores) count += std::popcount(static_cast<unsigned>(byte));
        standing_.cores_on_host = count > 0 ? static_cast<std::uint32_t>(count) : base::cores_allowed();
        return {};
    }

    std::unique_ptr<KeyValues> store_;
    std::chrono::milliseconds answer_max_;
    Standing standing_;
    std::vector<NodeInfo> infos_; // by node
    unsigned round_ = 0;      // of exchange()
    std::uint32_t leader_ = 0;
    base::Descriptor to_leader_;  // unless this node is the leader
    std::vector<Member> members_; // if it is: the other nodes of its host
};

} // namespace

Result<HostId> this_host() {
    if (const auto known = base::host_id()) return *known;
    HostId id;
    if (::getrandom(id.boot_id.data(), id.boot_id.size(), 0) != static_cast<ssize_t>(id.boot_id.size()))
        return system_error(errno, "naming this host (getrandom)");
    return id;
}

Result<std::unique_ptr<Session>> join_foreign_job(std::unique_ptr<KeyValues> store, const HostId& host,
                                                  std::chrono::milliseconds answer_max) {
    auto session = std::make_unique<ForeignSession>(std::move(store), answer_max);
    if (auto joined = session->join(host); !joined) return joined.error();
    return std::unique_ptr<Session>(std::move(session));
}

} // namespace kumi::boot
