#include "kumi/launch/host/pmi/pmi_server.hpp"

#include "kumi/launch/host/pmi/pmi_frames.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace kumi::launch::host {
namespace {

using boot::Kind;
using boot::pmi_line;
using boot::PmiLine;

// What a process must have room for, as hydra says it.
constexpr std::size_t value_bytes_max = 1024;

/// What the processes of a host may put before a barrier: a thousand of them, 16 KiB each.
constexpr std::size_t put_bytes_max = std::size_t{16} << 20;

boot::Frame abort_frame(int code, std::string text) {
    return {Kind::mpi_aborted, encode(Abort{code, std::move(text)}), {}};
}

/// "a=b" of each key, each on a line of its own; neither has a space or newline.
template <class Take>
void for_each_pair(std::string_view lines, Take&& take) {
    while (!lines.empty()) {
        const std::string_view line = lines.substr(0, lines.find('\n'));
        const std::size_t equals = line.find('=');
        if (equals != std::string_view::npos) take(line.substr(0, equals), line.substr(equals + 1));
        lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    }
}

} // namespace

std::string process_mapping(const std::vector<Part>& parts) {
    std::string text = "(vector";
    for (std::size_t first = 0, after = 0; first < parts.size(); first = after) {
        while (after < parts.size() && parts[after].count == parts[first].count) ++after;
        text += fmt::format(",({},{},{})", first, after - first, parts[first].count);
    }
    return text + ")";
}

PmiServer::PmiServer(const JobMap& map)
    : count_(map.here().count), nodes_(map.nodes()), name_(map.name), in_barrier_(count_), spawning_(count_) {
    // Without it MPICH finds out by names of hosts which processes share memory.
    if (std::string mapping = process_mapping(map.parts); mapping.size() < value_bytes_max)
        values_.emplace("PMI_process_mapping", std::move(mapping));
}

PmiServer::Answer PmiServer::on_line(std::uint32_t slot, const std::string& text) {
    if (text.starts_with("mcmd=spawn")) spawning_.set(slot);
    if (spawning_.test(slot)) {
        if (text != "endcmd") return {};
        spawning_.clear(slot);
        return {{{slot, pmi_line("spawn_result", {{"rc", "-1"}, {"msg", "not_supported"}})}},
                abort_frame(1, spawn_refused)};
    }
    const auto line = PmiLine::parse(text);
    if (line) return on_command(slot, *line);
    const Bytes why = bytes_of(std::string_view(line.error().text()));
    return {{}, boot::Frame{Kind::failed, {why.begin(), why.end()}, {}}};
}

PmiServer::Answer PmiServer::on_command(std::uint32_t slot, const PmiLine& line) {
    const std::string& command = line.command();
    const auto say = [&](std::string text, std::optional<boot::Frame> frame = {}) {
        return Answer{{{slot, std::move(text)}}, std::move(frame)};
    };
    if (command == "init")
        return say(pmi_line("response_to_init", {{"pmi_version", "1"}, {"pmi_subversion", "1"}, {"rc", "0"}}),
                   boot::Frame{Kind::mpi_joined, {}, {}});
    if (command == "get_maxes")
        return say(pmi_line("maxes", {{"kvsname_max", "256"},
                                      {"keylen_max", "64"},
                                      {"vallen_max", std::to_string(value_bytes_max)},
                                      {"rc", "0"}}));
    if (command == "get_appnum") return say(pmi_line("appnum", {{"appnum", "0"}, {"rc", "0"}}));
    if (command == "get_my_kvsname") return say(pmi_line("my_kvsname", {{"kvsname", name_}, {"rc", "0"}}));
    if (command == "get_universe_size")
        return say(pmi_line("universe_size", {{"size", std::to_string(nodes_)}, {"rc", "0"}}));
    if (command == "put") return say(on_put(line));
    if (command == "get") return say(on_get(line));
    if (command == "barrier_in") return {{}, on_barrier(slot)};
    if (command == "finalize") return say(pmi_line("finalize_ack", {{"rc", "0"}}), boot::Frame{Kind::mpi_left, {}, {}});
    if (command == "abort") {
        const auto code = static_cast<int>(line.number("exitcode").value_or(1));
        return {{}, abort_frame(code, {})};
    }
    for (const std::string_view verb : {"publish", "unpublish", "lookup"})
        if (command == fmt::format("{}_name", verb))
            return say(pmi_line(fmt::format("{}_result", verb),
                                {{"rc", "-1"}, {"info", "not_supported"}, {"msg", "not_supported"}}));
    return say(pmi_line(fmt::format("{}_result", command), {{"rc", "-1"}, {"msg", "unknown_command"}}));
}

std::string PmiServer::on_put(const PmiLine& line) {
    const auto key = line.field("key"), value = line.field("value");
    // A pair is kept as "key=value".
    if (!key || !value || key->empty() || key->find('=') != key->npos)
        return pmi_line("put_result", {{"rc", "-1"}, {"msg", "no_key_or_no_value"}});
    if (put_.size() > put_bytes_max) return pmi_line("put_result", {{"rc", "-1"}, {"msg", "too_much"}});
    put_ += fmt::format("{}={}\n", *key, *value);
    return pmi_line("put_result", {{"rc", "0"}, {"msg", "success"}});
}

std::string PmiServer::on_get(const PmiLine& line) const {
    const auto found = values_.find(line.field("key").value_or(""));
    if (found == values_.end())
        return pmi_line("get_result", {{"rc", "-1"}, {"msg", "key_not_found"}, {"value", "unknown"}});
    return pmi_line("get_result", {{"rc", "0"}, {"msg", "success"}, {"value", found->second}});
}

std::optional<boot::Frame> PmiServer::on_barrier(std::uint32_t slot) {
    if (in_barrier_.test(slot)) return std::nullopt; // it waits already
    in_barrier_.set(slot);
    if (in_barrier_.count() < count_) return std::nullopt;
    const Bytes put = bytes_of(std::string_view(put_));
    boot::Frame frame{Kind::fence, encode(Fence{fence_key, {put.begin(), put.end()}}), {}};
    put_.clear();
    return frame;
}

std::vector<PmiServer::Line> PmiServer::on_fenced(Bytes contents) {
    for_each_pair(text_of(contents), [&](std::string_view key, std::string_view value) {
        values_.insert_or_assign(std::string(key), std::string(value));
    });
    std::vector<Line> lines;
    for (std::uint32_t slot = 0; slot < count_; ++slot) lines.push_back({slot, pmi_line("barrier_out", {{"rc", "0"}})});
    in_barrier_.clear();
    return lines;
}

} // namespace kumi::launch::host
