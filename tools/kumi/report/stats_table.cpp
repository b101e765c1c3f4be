#include "report/stats_table.hpp"

#include "kumi/base/system/machine.hpp"
#include "kumi/base/text/number_text.hpp"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <map>
#include <span>
#include <string_view>

namespace kumi::tools {
namespace {

/// Larger jobs show the sum over a node's peers instead of each pair.
constexpr std::size_t pairs_nodes_max = 8;
constexpr std::size_t missing_named_max = 8;
/// What is wider goes on in lines below.
constexpr std::size_t line_width_max = 120;

/// "1,234,567".
std::string grouped(std::uint64_t number) {
    const std::string digits = std::to_string(number);
    std::string text;
    for (std::size_t at = 0; at < digits.size(); ++at) {
        if (at > 0 && (digits.size() - at) % 3 == 0) text += ',';
        text += digits[at];
    }
    return text;
}

/// Numbers by row and column, both in the order in which they are first named.
class Table {
public:
    bool empty() const { return columns_.empty(); }
    bool has_column(std::string_view column) const {
        return std::find(columns_.begin(), columns_.end(), column) != columns_.end();
    }

    void name_column(std::string_view column) { (void)index_of(column); }

    void add(const std::string& label, std::string_view column, std::uint64_t value) {
        const std::size_t index = index_of(column);
        auto row = std::find_if(rows_.rbegin(), rows_.rend(), [&](const Row& old) { return old.label == label; });
        Row& mine = row != rows_.rend() ? *row : rows_.emplace_back(Row{label, {}});
        if (mine.values.size() <= index) mine.values.resize(index + 1);
        mine.values[index] += value;
        total_.values.resize(columns_.size());
        total_.values[index] += value;
    }

    std::string draw(const std::string& title) const {
        std::vector<std::size_t> shown;
        std::string zeros;
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            if (value(total_, i) != 0) shown.push_back(i);
            else zeros += fmt::format("{}{}", zeros.empty() ? "" : ", ", columns_[i]);
        }
        std::size_t label_width = std::max(title.size(), total_.label.size());
        for (const Row& row : rows_) label_width = std::max(label_width, row.label.size());
        std::string text = shown.empty() ? fmt::format("  {}\n", title) : "";
        for (std::span<const std::size_t> left = shown; !left.empty();) {
            std::size_t count = 0;
            for (std::size_t width = label_width; count < left.size(); ++count) {
                width += 2 + width_of(left[count]);
                if (count > 0 && width > line_width_max) break;
            }
            text += draw_columns(title, label_width, left.first(count));
            left = left.subspan(count);
        }
        if (!zeros.empty()) text += fmt::format("  always 0: {}\n", zeros);
        return text;
    }

private:
    struct Row {
        std::string label;
        std::vector<std::uint64_t> values; // by column; what is missing is 0
    };

    static std::uint64_t value(const Row& row, std::size_t column) {
        return column < row.values.size() ? row.values[column] : 0;
    }

    std::size_t index_of(std::string_view column) {
        const auto found = std::find(columns_.begin(), columns_.end(), column);
        if (found != columns_.end()) return static_cast<std::size_t>(found - columns_.begin());
        columns_.emplace_back(column);
        return columns_.size() - 1;
    }

    std::size_t width_of(std::size_t column) const {
        return std::max(columns_[column].size(), grouped(value(total_, column)).size());
    }

    std::string draw_columns(const std::string& title, std::size_t label_width,
                             std::span<const std::size_t> columns) const {
        std::string text = fmt::format("  {:<{}}", title, label_width);
        for (const std::size_t i : columns) text += fmt::format("  {:>{}}", columns_[i], width_of(i));
        text += '\n';
        const auto draw_row = [&](const Row& row) {
            text += fmt::format("  {:<{}}", row.label, label_width);
            for (const std::size_t i : columns) text += fmt::format("  {:>{}}", grouped(value(row, i)), width_of(i));
            text += '\n';
        };
        for (const Row& row : rows_) draw_row(row);
        if (rows_.size() > 1) draw_row(total_);
        return text;
    }

    std::vector<std::string> columns_;
    std::vector<Row> rows_;
    Row total_{"total", {}};
};

/// Messages by their size, of all nodes together.
class SizeTable {
public:
    /// False: that is no counter of sizes.
    bool add(std::string_view name, std::uint64_t value) {
        for (const auto& [start, sum] : {std::pair{std::string_view(boot::size_messages), &Class::messages},
                                         {std::string_view(boot::size_nanoseconds), &Class::nanoseconds}}) {
            if (!name.starts_with(start)) continue;
            const auto bytes = base::number_in<std::uint64_t>(name.substr(start.size()));
            if (bytes) classes_[*bytes == 0 ? ~std::uint64_t{0} : *bytes].*sum += value;
            return true;
        }
        return false;
    }

    std::string draw(const std::string& device) const {
        if (classes_.empty()) return "";
        std::uint64_t all = 0;
        for (const auto& [bytes, one] : classes_) all += one.messages;
        std::string text =
            fmt::format("  {:<24}  {:>15}  {:>6}  {:>10}\n", device + ", by size", "messages sent", "share", "ns each");
        for (const auto& [bytes, one] : classes_) {
            const std::string label =
                bytes == ~std::uint64_t{0} ? "larger" : fmt::format("up to {}", base::readable_bytes(bytes));
            text += fmt::format("  {:<24}  {:>15}  {:>5.1f}%  {:>10}\n", label, grouped(one.messages),
                                100.0 * static_cast<double>(one.messages) /
                                    static_cast<double>(std::max<std::uint64_t>(all, 1)),
                                grouped(one.nanoseconds / std::max<std::uint64_t>(one.messages, 1)));
        }
        return text;
    }

private:
    struct Class {
        std::uint64_t messages = 0;
        std::uint64_t nanoseconds = 0;
    };
    std::map<std::uint64_t, Class> classes_; // by the largest size
};

struct DeviceTables {
    std::string device;
    Table by_node;
    Table by_peer;
    SizeTable by_size;
};

DeviceTables& tables_of(std::vector<DeviceTables>& all, std::string_view device) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const DeviceTables& old) { return old.device == device; });
    return found != all.end() ? *found : all.emplace_back(DeviceTables{std::string(device), {}, {}, {}});
}

std::string draw_missing(const StatsReports& reports) {
    std::string text;
    std::size_t missing = 0;
    for (std::size_t node = 0; node < reports.size(); ++node)
        if (!reports[node] && ++missing <= missing_named_max) text += fmt::format("  node {}: no report\n", node);
    if (missing == reports.size()) return "  no node reported: only those that join and leave do\n";
    if (missing > missing_named_max) text += fmt::format("  and {} more: no report\n", missing - missing_named_max);
    return text;
}

} // namespace

std::string draw_stats(const StatsReports& reports) {
    const bool by_pair = reports.size() <= pairs_nodes_max;
    std::vector<DeviceTables> devices;
    for (std::size_t node = 0; node < reports.size(); ++node) {
        if (!reports[node]) continue;
        const std::string label = fmt::format("node {}", node);
        for (const boot::StatsEntry& entry : *reports[node]) {
            DeviceTables& tables = tables_of(devices, boot::text_in(entry.device));
            const std::string_view name = boot::text_in(entry.name);
            if (name.empty() || tables.by_size.add(name, entry.value)) continue; // no name: the device counts nothing
            if (entry.peer == boot::whole_channel) tables.by_node.add(label, name, entry.value);
            else if (!by_pair && tables.by_node.has_column(name)) continue; // the sum is there already
            else if (!by_pair) tables.by_peer.add(label, name, entry.value);
            else if (entry.value == 0) tables.by_peer.name_column(name); // no row for pairs that had nothing to do
            else tables.by_peer.add(fmt::format("{} -> {}", node, entry.peer), name, entry.value);
        }
    }
    std::string text = "what the nodes counted\n";
    for (const DeviceTables& tables : devices) {
        const std::string by_size = tables.by_size.draw(tables.device);
        if (tables.by_node.empty() && tables.by_peer.empty() && by_size.empty())
            text += fmt::format("  no counters from {}\n", tables.device);
        if (!tables.by_node.empty()) text += tables.by_node.draw(tables.device);
        if (!tables.by_peer.empty())
            text += tables.by_peer.draw(tables.device + (by_pair ? ", by pair" : ", all peers"));
        text += by_size;
    }
    return text + draw_missing(reports);
}

} // namespace kumi::tools
