#include "kumi/launch/rendezvous.hpp"

#include <cstring>
#include <fmt/format.h>

namespace kumi::launch {
namespace {

using boot::Kind;

Reply reply(std::uint32_t node, Kind kind, Bytes body, std::shared_ptr<base::Descriptor> descriptor = nullptr) {
    auto frame = boot::encode(kind, body, descriptor != nullptr);
    return {node, std::move(frame), std::move(descriptor)};
}

} // namespace

Rendezvous::Rendezvous(RendezvousOptions options)
    : options_(std::move(options)), joined_(options_.nodes), left_(options_.nodes), waiting_for_share_(options_.nodes),
      exchanging_(options_.nodes), exchanged_(options_.nodes), traffic_(options_.nodes), stats_(options_.nodes),
      failures_(options_.nodes) {}

std::vector<Reply> Rendezvous::on_frame(std::uint32_t node, boot::Frame frame) {
    switch (frame.kind) {
    case Kind::join: return on_join(node, frame);
    case Kind::share: return on_share(node, std::move(frame));
    case Kind::exchange: return on_exchange(node, std::move(frame));
    case Kind::traffic: return on_traffic(node, frame), std::vector<Reply>{};
    case Kind::stats: return on_stats(node, frame), std::vector<Reply>{};
    case Kind::leave: return left_.set(node), std::vector<Reply>{};
    case Kind::failed: return failures_[node] = std::string(text_of(frame.body)), std::vector<Reply>{};
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
    const boot::WelcomeBody welcome{.node = node,
                                    .nodes = options_.nodes,
                                    .slot = node,
                                    .nodes_on_host = options_.nodes,
                                    .cores_on_host = options_.cores,
                                    .traffic_wanted = options_.traffic_wanted ? 1u : 0u,
                                    .stats_wanted = options_.stats_wanted ? 1u : 0u,
                                    .answer_seconds_max = options_.answer_seconds_max,
                                    .keys = options_.keys};
    std::vector<std::byte> body(sizeof welcome + options_.host.size());
    std::memcpy(body.data(), &welcome, sizeof welcome);
    std::memcpy(body.data() + sizeof welcome, options_.host.data(), options_.host.size());
    std::vector<Reply> replies;
    replies.push_back(reply(node, Kind::welcome, body));
    return replies;
}

std::vector<Reply> Rendezvous::on_share(std::uint32_t node, boot::Frame frame) {
    waiting_for_share_.set(node);
    if (node == 0) shared_ = std::make_shared<base::Descriptor>(std::move(frame.descriptor));
    std::vector<Reply> replies;
    if (!shared_) return replies;
    for (std::size_t i = waiting_for_share_.next_set(0); i < options_.nodes; i = waiting_for_share_.next_set(i + 1)) {
        const auto to = static_cast<std::uint32_t>(i);
        waiting_for_share_.clear(to);
        replies.push_back(reply(to, Kind::shared, {}, to == 0 ? nullptr : shared_));
    }
    return replies;
}

std::vector<Reply> Rendezvous::on_exchange(std::uint32_t node, boot::Frame frame) {
    exchanging_.set(node);
    exchanged_[node] = std::move(frame.body);
    std::vector<Reply> replies;
    if (exchanging_.count() < options_.nodes) return replies;
    std::vector<std::byte> all;
    for (const auto& bytes : exchanged_) {
        const auto length = static_cast<std::uint32_t>(bytes.size());
        const std::size_t at = all.size();
        all.resize(at + sizeof length + length);
        std::memcpy(all.data() + at, &length, sizeof length);
        if (length > 0) std::memcpy(all.data() + at + sizeof length, bytes.data(), length);
    }
    for (std::uint32_t to = 0; to < options_.nodes; ++to) replies.push_back(reply(to, Kind::exchanged, all));
    exchanging_.clear();
    return replies;
}

void Rendezvous::on_traffic(std::uint32_t node, const boot::Frame& frame) {
    auto& entries = traffic_[node];
    entries.resize(frame.body.size() / sizeof(boot::TrafficEntry));
    if (!entries.empty()) std::memcpy(entries.data(), frame.body.data(), entries.size() * sizeof entries[0]);
    std::erase_if(entries, [&](const boot::TrafficEntry& entry) { return entry.to >= options_.nodes; });
}

void Rendezvous::on_stats(std::uint32_t node, const boot::Frame& frame) {
    const std::size_t count = frame.body.size() / sizeof(boot::StatsEntry);
    const std::size_t count_max = (std::size_t{options_.nodes} + 1) * boot::stats_per_peer_max;
    if (frame.body.size() % sizeof(boot::StatsEntry) != 0 || count > count_max) return;
    auto& entries = stats_[node].emplace(count);
    if (count != 0) std::memcpy(entries.data(), frame.body.data(), frame.body.size());
    std::erase_if(entries, [&](const boot::StatsEntry& entry) {
        return entry.peer >= options_.nodes && entry.peer != boot::whole_channel;
    });
}

std::string Rendezvous::missing() const {
    constexpr std::size_t named_max = 8;
    const std::size_t count = options_.nodes - joined_.count();
    std::string text;
    std::size_t named = 0;
    for (std::size_t node = joined_.next_clear(0); node < options_.nodes && named < named_max;
         node = joined_.next_clear(node + 1), ++named)
        text += fmt::format("{}{}", named == 0 ? "" : ", ", node);
    if (count > named) text += fmt::format(" and {} more", count - named);
    return text;
}

} // namespace kumi::launch
