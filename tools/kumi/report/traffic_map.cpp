#include "report/traffic_map.hpp"

#include "kumi/base/system/machine.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <string_view>

namespace kumi::tools {
namespace {

/// Wider matrices are shown by their busiest pairs instead.
constexpr std::size_t matrix_nodes_max = 16;
constexpr std::size_t busiest_max = 20;

std::string short_count(std::uint64_t count) {
    constexpr std::string_view units = " kMGT";
    std::size_t unit = 0;
    auto value = static_cast<double>(count);
    while (value >= 999.5 && unit + 1 < units.size()) value /= 1000, ++unit;
    if (unit == 0) return fmt::format("{}", count);
    return value < 9.95 ? fmt::format("{:.1f}{}", value, units[unit]) : fmt::format("{:.0f}{}", value, units[unit]);
}

std::string_view device_of(const boot::TrafficEntry& entry) {
    return boot::text_in(entry.device);
}

/// The paper's notation: S for shmem, U for udp, ...; another letter where that is taken, or is none.
class Letters {
public:
    char operator[](const boot::TrafficEntry& entry) { return of(std::string(device_of(entry))); }
    char of(const std::string& device) {
        const auto known = letters_.find(device);
        if (known != letters_.end()) return known->second;
        const unsigned char first =
            device.empty() ? '?' : static_cast<unsigned char>(std::toupper(static_cast<unsigned char>(device.front())));
        char letter = static_cast<char>(first);
        for (char next = 'A'; next <= 'Z' && (std::isalpha(first) == 0 || is_taken(letter)); ++next)
            if (!is_taken(next)) {
                letter = next;
                break;
            }
        return letters_[device] = letter;
    }

private:
    bool is_taken(char letter) const {
        return std::any_of(letters_.begin(), letters_.end(), [&](const auto& one) { return one.second == letter; });
    }

    std::map<std::string, char> letters_; // by device
};

/// Darker for more, by powers: traffic spans many of them.
std::string_view shade(std::uint64_t bytes, std::uint64_t bytes_max) {
    constexpr std::string_view shades[] = {"░░", "▒▒", "▓▓", "██"};
    const double share = std::log2(1.0 + static_cast<double>(bytes)) / std::log2(2.0 + static_cast<double>(bytes_max));
    return shades[std::min<std::size_t>(3, static_cast<std::size_t>(share * 4))];
}

std::string draw_matrix(const launch::TrafficReports& sent, std::uint64_t bytes_max, Letters& letters) {
    constexpr std::size_t cell = 9;
    std::string text = "  from \\ to";
    for (std::size_t to = 0; to < sent.size(); ++to) text += fmt::format("{:>{}}", to, cell);
    text += '\n';
    for (std::size_t from = 0; from < sent.size(); ++from) {
        text += fmt::format("  {:>9}", from);
        for (std::size_t to = 0; to < sent.size(); ++to) {
            const auto entry = std::find_if(sent[from].begin(), sent[from].end(),
                                            [&](const boot::TrafficEntry& e) { return e.to == to && e.messages > 0; });
            if (entry == sent[from].end()) {
                text += fmt::format("{:>{}}", ".", cell);
                continue;
            }
            const std::string count = fmt::format("{}{}", letters[*entry], short_count(entry->messages));
            text += std::string(cell - std::min(cell, count.size() + 3), ' ');
            text += fmt::format("{} {}", shade(entry->bytes, bytes_max), count);
        }
        text += '\n';
    }
    return text;
}

std::string draw_busiest(const launch::TrafficReports& sent, Letters& letters) {
    std::vector<std::pair<std::size_t, boot::TrafficEntry>> pairs;
    for (std::size_t from = 0; from < sent.size(); ++from)
        for (const boot::TrafficEntry& entry : sent[from])
            if (entry.messages > 0) pairs.emplace_back(from, entry);
    std::sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
    std::string text;
    for (std::size_t i = 0; i < std::min(pairs.size(), busiest_max); ++i)
        text += fmt::format("  {:>5} -> {:<5} {} {:>6} messages, {}\n", pairs[i].first, pairs[i].second.to,
                            letters[pairs[i].second], short_count(pairs[i].second.messages),
                            base::readable_bytes(pairs[i].second.bytes));
    if (pairs.size() > busiest_max) text += fmt::format("  and {} quieter pairs\n", pairs.size() - busiest_max);
    return text;
}

} // namespace

std::string draw_traffic(const launch::TrafficReports& sent_by_node) {
    std::map<std::string, boot::TrafficEntry> totals; // by device
    std::uint64_t bytes_max = 0;
    for (const auto& entries : sent_by_node)
        for (const boot::TrafficEntry& entry : entries) {
            if (entry.messages == 0) continue;
            boot::TrafficEntry& total =
                totals.try_emplace(std::string(device_of(entry)), boot::TrafficEntry{}).first->second;
            total.messages += entry.messages;
            total.bytes += entry.bytes;
            bytes_max = std::max(bytes_max, entry.bytes);
        }
    std::string text = "who talks to whom: messages sent, darker for more bytes\n";
    Letters letters;
    for (const auto& [device, total] : totals) letters.of(device);
    text += sent_by_node.size() <= matrix_nodes_max ? draw_matrix(sent_by_node, bytes_max, letters)
                                                    : draw_busiest(sent_by_node, letters);
    if (totals.empty()) text += "  nobody sent anything\n";
    for (const auto& [device, total] : totals)
        text += fmt::format("  {} = {}: {} messages, {}\n", letters.of(device), device, total.messages,
                            base::readable_bytes(total.bytes));
    return text;
}

} // namespace kumi::tools
