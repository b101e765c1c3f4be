#include "kumi/launch/rendezvous.hpp"

#include <cstring>
#include <fmt/format.h>

namespace kumi::launch {
namespace {

using boot::Kind;

Reply reply(std::uint32_t node, Kind kind, Bytes body) {
    return {node, std::make_shared<const std::vector<std::byte>>(boot::encode(kind, body))};
}

} // namespace

Rendezvous::Rendezvous(RendezvousOptions options)
    : options_(std::move(options)), nodes_(options_.parts.back().first + options_.parts.back().count),
      cores_(options_.parts.size(), 1), joined_(nodes_), left_(nodes_), mpi_joined_(nodes_), mpi_left_(nodes_),
      arrived_(nodes_), exchanging_(nodes_), exchanged_(nodes_), traffic_(nodes_), stats_(nodes_), failures_(nodes_),
      fences_(options_.parts) {}

std::vector<Reply> Rendezvous::on_frame(std::uint32_t node, boot::Frame frame) {
    switch (frame.kind) {
    case Kind::join: return on_join(node, frame);
    case Kind::exchange: return on_exchange(node, std::move(frame));
    case Kind::traffic: return on_traffic(node, frame), std::vector<Reply>{};
    case Kind::stats: return on_stats(node, frame), std::vector<Reply>{};
    case Kind::leave: return left_.set(node), std::vector<Reply>{};
    case Kind::failed: return failures_[node] = std::string(text_of(frame.body)), std::vector<Reply>{};
    case Kind::mpi_joined: return mpi_joined_.set(node), arrived_.set(node), std::vector<Reply>{};
    case Kind::mpi_left: return mpi_left_.set(node), std::vector<Reply>{};
    case Kind::fence: return on_fence(node, frame);
    case Kind::fetch:
    case Kind::fetched: return on_fetch(frame);
    default: return {}; // what only kumi run says; a node that says it is answered by its own deadline
    }
}

std::vector<Reply> Rendezvous::on_join(std::uint32_t node, const boot::Frame& frame) {
    const auto refuse = [&](const std::string& text) {
        failures_[node] = text; // told here, once; the node keeps quiet
        std::vector<Reply> replies;
        replies.push_back(reply(node, Kind::refused, bytes_of(std::string_view(text))));
        return replies;
    };
    boot::JoinBody asked{};
    if (!read_value(frame.body, asked) || asked.version != boot::wire_version)
        return refuse("this program and the kumi command are of different versions: use the same for both");
    if (joined_.test(node))
        return refuse(fmt::format("node {} has joined already: a node is one process, and joins once", node));
    joined_.set(node);
    arrived_.set(node);
    const std::size_t host = part_of(options_.parts, node);
    const Part& part = options_.parts[host];
    const boot::WelcomeBody welcome{.node = node,
                                    .nodes = nodes_,
                                    .slot = node - part.first,
                                    .nodes_on_host = part.count,
                                    .cores_on_host = cores_[host],
                                    .host = static_cast<std::uint32_t>(host),
                                    .hosts = static_cast<std::uint32_t>(options_.parts.size()),
                                    .traffic_wanted = options_.traffic_wanted ? 1u : 0u,
                                    .stats_wanted = options_.stats_wanted ? 1u : 0u,
                                    .answer_seconds_max = options_.answer_seconds_max,
                                    .keys = options_.keys};
    std::string body(text_of(bytes_of(welcome)));
    for (const Part& one : options_.parts) body.append(one.host).push_back('\0');
    std::vector<Reply> replies;
    replies.push_back(reply(node, Kind::welcome, bytes_of(std::string_view(body))));
    return replies;
}

std::vector<Reply> Rendezvous::on_fence(std::uint32_t node, const boot::Frame& frame) {
    std::vector<Reply> replies;
    auto fence = host::decode_fence(frame.body);
    if (!fence) return replies;
    const auto met = fences_.on_fence(node, *std::move(fence));
    if (!met) return replies;
    const Reply whole = reply(0, Kind::fenced, host::encode(met->fence));
    for (const std::uint32_t one : met->nodes) replies.push_back({one, whole.frame});
    return replies;
}

/// Passes a question or an answer on to the host that it is for.
std::vector<Reply> Rendezvous::on_fetch(const boot::Frame& frame) const {
    std::vector<Reply> replies;
    const auto fetch = host::decode_fetch(frame.body);
    if (!fetch || fetch->asker >= nodes_ || fetch->target >= nodes_) return replies;
    replies.push_back(reply(frame.kind == Kind::fetch ? fetch->target : fetch->asker, frame.kind, frame.body));
    return replies;
}

std::vector<Reply> Rendezvous::on_exchange(std::uint32_t node, boot::Frame frame) {
    exchanging_.set(node);
    exchanged_[node] = std::move(frame.body);
    std::vector<Reply> replies;
    if (exchanging_.count() < nodes_) return replies;
    std::vector<std::byte> all;
    for (const auto& bytes : exchanged_) {
        const auto length = static_cast<std::uint32_t>(bytes.size());
        const std::size_t at = all.size();
        all.resize(at + sizeof length + length);
        std::memcpy(all.data() + at, &length, sizeof length);
        if (length > 0) std::memcpy(all.data() + at + sizeof length, bytes.data(), length);
    }
    replies.push_back(reply(host::every_node, Kind::exchanged, all));
    exchanging_.clear();
    return replies;
}

void Rendezvous::on_traffic(std::uint32_t node, const boot::Frame& frame) {
    auto& entries = traffic_[node];
    entries.resize(frame.body.size() / sizeof(boot::TrafficEntry));
    if (!entries.empty()) std::memcpy(entries.data(), frame.body.data(), entries.size() * sizeof entries[0]);
    std::erase_if(entries, [&](const boot::TrafficEntry& entry) { return entry.to >= nodes_; });
}

void Rendezvous::on_stats(std::uint32_t node, const boot::Frame& frame) {
    const std::size_t count = frame.body.size() / sizeof(boot::StatsEntry);
    const std::size_t count_max = (std::size_t{nodes_} + 1) * boot::stats_per_peer_max;
    if (frame.body.size() % sizeof(boot::StatsEntry) != 0 || count > count_max) return;
    auto& entries = stats_[node].emplace(count);
    if (count != 0) std::memcpy(entries.data(), frame.body.data(), frame.body.size());
    std::erase_if(entries, [&](const boot::StatsEntry& entry) {
        return entry.peer >= nodes_ && entry.peer != boot::whole_channel;
    });
}

std::string Rendezvous::missing() const {
    constexpr std::size_t named_max = 8;
    const std::size_t count = nodes_ - arrived_.count();
    std::string text;
    std::size_t named = 0;
    for (const Part& part : options_.parts) {
        const std::size_t before = named;
        const std::size_t end = part.first + part.count;
        for (std::size_t node = arrived_.next_clear(part.first); node < end && named < named_max;
             node = arrived_.next_clear(node + 1), ++named)
            text += fmt::format("{}{}", named == 0 ? "" : ", ", node);
        if (named != before) text += fmt::format(" on {}", part.host);
    }
    if (count > named) text += fmt::format(" and {} more", count - named);
    return text;
}

} // namespace kumi::launch
