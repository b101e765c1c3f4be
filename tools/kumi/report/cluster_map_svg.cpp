// The cluster as a picture: hosts side by side with their nodes, networks as bars below that they hang on, and the
// routing table in the same colours.

#include "report/cluster_map.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>

namespace kumi::tools {
namespace {

using cluster::Cluster;
using cluster::HostIndex;
using cluster::NetworkIndex;
using cluster::Node;
using cluster::Route;
using cluster::Routing;

constexpr int margin = 16;
constexpr int names_width = 150;
constexpr int node_step = 30;
constexpr int host_height = 64;
constexpr int host_gap = 12;
constexpr int bar_step = 34;
constexpr int cell_width = 34;
constexpr int cell_height = 22;
constexpr std::string_view shared_memory_colour = "#f4d35e";

/// Colours that also people who cannot tell red from green can tell apart.
std::string_view colour_of(NetworkIndex network) noexcept {
    constexpr std::string_view colours[] = {"#4c9be8", "#e8924c", "#7bc8a4", "#c47ac0",
                                            "#9aa5b1", "#d9726e", "#6e7bd9", "#b5b35c"};
    return colours[network % std::size(colours)];
}

std::string escaped(std::string_view text) {
    std::string safe;
    for (const char c : text) {
        if (c == '<') safe += "&lt;";
        else if (c == '&') safe += "&amp;";
        else if (c == '"') safe += "&quot;";
        else safe += c;
    }
    return safe;
}

struct Box {
    int left;
    int width;
};

/// Where each host stands.
std::vector<Box> lay_out(const Cluster& cluster, const Routing& routing) {
    std::vector<int> nodes(cluster.hosts.size());
    for (const cluster::Seat& seat : routing.placement()) ++nodes[seat.host];
    std::vector<Box> boxes;
    int left = margin + names_width;
    for (HostIndex host = 0; host < cluster.hosts.size(); ++host) {
        const int name_width = static_cast<int>(cluster.hosts[host].name.size()) * 8 + 16;
        const int drops_width = static_cast<int>(cluster.networks.size() + 1) * 12;
        const int width = std::max({nodes[host] * node_step + 12, name_width, drops_width});
        boxes.push_back({left, width});
        left += width + host_gap;
    }
    return boxes;
}

std::string draw_hosts(const Cluster& cluster, const Routing& routing, const std::vector<Box>& boxes, int top) {
    std::string svg;
    std::vector<int> drawn(cluster.hosts.size());
    for (HostIndex host = 0; host < cluster.hosts.size(); ++host)
        svg += fmt::format("<rect x='{}' y='{}' width='{}' height='{}' rx='6' fill='#f6f7f9' stroke='#445'/>"
                           "<text x='{}' y='{}' class='name'>{}</text>\n",
                           boxes[host].left, top, boxes[host].width, host_height,
                           boxes[host].left + boxes[host].width / 2, top + 18, escaped(cluster.hosts[host].name));
    for (Node node = 0; node < routing.nodes(); ++node) {
        const HostIndex host = routing.placement()[node].host;
        const int x = boxes[host].left + 6 + node_step / 2 + drawn[host]++ * node_step;
        svg +=
            fmt::format("<circle cx='{0}' cy='{1}' r='12' fill='{2}' stroke='#445'/><text x='{0}' y='{3}'>{4}</text>\n",
                        x, top + 42, shared_memory_colour, top + 46, node);
    }
    return svg;
}

std::string draw_networks(const Cluster& cluster, const std::vector<Box>& boxes, int hosts_bottom) {
    std::string svg;
    for (NetworkIndex network = 0; network < cluster.networks.size(); ++network) {
        const int y = hosts_bottom + bar_step * static_cast<int>(network + 1);
        int first = 0, last = 0;
        for (HostIndex host = 0; host < cluster.hosts.size(); ++host) {
            if (!cluster.hosts[host].is_on(network)) continue;
            const int x = boxes[host].left + 12 * static_cast<int>(network + 1);
            if (first == 0) first = x;
            last = x;
            svg += fmt::format("<path d='M{} {}V{}' stroke='{}' stroke-width='4'><title>{}</title></path>\n", x,
                               hosts_bottom, y, colour_of(network), escaped(cluster.hosts[host].addresses[network]));
        }
        const cluster::Network& named = cluster.networks[network];
        svg += fmt::format("<path d='M{} {}H{}' stroke='{}' stroke-width='8' stroke-linecap='round'/>"
                           "<text x='{}' y='{}' class='label'>{} {}{}</text>\n",
                           first, y, last, colour_of(network), margin, y + 4, named.letter, escaped(named.name),
                           named.encrypt ? ", encrypted" : "");
    }
    return svg;
}

std::string draw_table(const Cluster& cluster, const Routing& routing, int top) {
    std::string svg = fmt::format("<text x='{}' y='{}' class='label'>routes: a row sends,</text><text x='{}' y='{}' "
                                  "class='label'>a column receives</text>\n",
                                  margin, top + 14, margin, top + 30);
    const auto column = [](Node node) { return margin + names_width + static_cast<int>(node) * cell_width; };
    const auto row = [&](Node node) { return top + static_cast<int>(node + 1) * cell_height; };
    for (Node node = 0; node < routing.nodes(); ++node)
        svg +=
            fmt::format("<text x='{}' y='{}' class='name'>{}</text><text x='{}' y='{}' class='name'>{}</text>\n",
                        column(node) + cell_width / 2, top + 15, node, margin + names_width - 14, row(node) + 15, node);
    for (Node from = 0; from < routing.nodes(); ++from)
        for (Node to = 0; to < routing.nodes(); ++to) {
            const Route route = routing.route(from, to);
            const bool on_network = route.kind == Route::Kind::direct || route.kind == Route::Kind::relayed;
            const std::string_view fill = on_network                                  ? colour_of(route.network)
                                          : route.kind == Route::Kind::shared_memory ? shared_memory_colour
                                          : route.kind == Route::Kind::none          ? std::string_view("#ff4d4d")
                                                                                     : std::string_view("#eeeeee");
            svg += fmt::format(
                "<rect x='{}' y='{}' width='{}' height='{}' fill='{}' stroke='white'><title>{}</title></rect>"
                "<text x='{}' y='{}'>{}</text>\n",
                column(to), row(from), cell_width, cell_height, fill,
                escaped(describe_route(cluster, routing, from, to)), column(to) + cell_width / 2, row(from) + 15,
                escaped(routing.text(route)));
        }
    return svg;
}

} // namespace

std::string map_as_svg(const Cluster& cluster, const Routing& routing) {
    const std::vector<Box> boxes = lay_out(cluster, routing);
    const int hosts_bottom = margin + host_height;
    const int table_top = hosts_bottom + bar_step * static_cast<int>(cluster.networks.size() + 1);
    const int table_right = margin + names_width + cell_width * static_cast<int>(routing.nodes());
    const int width = std::max(boxes.empty() ? 0 : boxes.back().left + boxes.back().width, table_right) + margin;
    const int height = table_top + cell_height * static_cast<int>(routing.nodes() + 1) + margin;
    return fmt::format(
        "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}'>\n"
        "<style>text{{font:12px "
        "sans-serif;text-anchor:middle;fill:#223}}.name{{font-weight:bold}}.label{{text-anchor:start}}</style>\n"
        "<rect width='{0}' height='{1}' fill='white'/>\n{2}{3}{4}</svg>\n",
        width, height, draw_networks(cluster, boxes, hosts_bottom), draw_hosts(cluster, routing, boxes, margin),
        draw_table(cluster, routing, table_top));
}

} // namespace kumi::tools
