#include "kumi/boot/store/pmi_line.hpp"

#include "kumi/base/text/number_text.hpp"

#include <algorithm>

namespace kumi::boot {
namespace {

constexpr std::string_view digits = "0123456789abcdef";

std::optional<unsigned> digit_value(char digit) noexcept {
    if (digit >= '0' && digit <= '9') return static_cast<unsigned>(digit - '0');
    if (digit >= 'a' && digit <= 'f') return static_cast<unsigned>(digit - 'a') + 10;
    if (digit >= 'A' && digit <= 'F') return static_cast<unsigned>(digit - 'A') + 10;
    return std::nullopt;
}

} // namespace

Result<PmiLine> PmiLine::parse(std::string_view text) {
    PmiLine line;
    std::string_view left = text;
    while (!left.empty()) {
        const std::size_t space = std::min(left.find(' '), left.size());
        const std::string_view word = left.substr(0, space);
        left.remove_prefix(std::min(space + 1, left.size()));
        const std::size_t equals = word.find('=');
        // messages of some servers have spaces, which PMI-1 does not allow
        if (equals == std::string_view::npos) continue;
        const std::string_view name = word.substr(0, equals);
        const std::string_view value = word.substr(equals + 1);
        if (!line.command_.empty()) line.fields_.emplace_back(name, value);
        else if (name == "cmd" && !value.empty()) line.command_ = value;
        else break;
    }
    if (line.command_.empty()) return error("\"{}\" is no line of PMI-1", shown(text));
    return line;
}

std::optional<std::string_view> PmiLine::field(std::string_view name) const noexcept {
    for (const auto& [key, value] : fields_)
        if (key == name) return value;
    return std::nullopt;
}

std::optional<std::int64_t> PmiLine::number(std::string_view name) const noexcept {
    const auto text = field(name);
    return text ? base::number_in<std::int64_t>(*text) : std::nullopt;
}

std::string pmi_line(std::string_view command,
                     std::initializer_list<std::pair<std::string_view, std::string_view>> fields) {
    std::string line = "cmd=";
    line += command;
    for (const auto& [name, value] : fields) {
        KUMI_ASSERT(value.find_first_of(" \n") == std::string_view::npos);
        ((line += ' ') += name) += '=';
        line += value;
    }
    return line += '\n';
}

void PmiLineReader::take(Bytes bytes) { text_ += text_of(bytes); }

Result<std::optional<std::string>> PmiLineReader::next_text() {
    const std::size_t end = text_.find('\n');
    if (std::min(end, text_.size()) > pmi_line_bytes_max)
        return error("\"{}\" goes on for more than {} bytes: no line of PMI-1", shown(text_), pmi_line_bytes_max);
    if (end == std::string::npos) return std::optional<std::string>{};
    std::string line = text_.substr(0, end);
    text_.erase(0, end + 1);
    return std::optional<std::string>(std::move(line));
}

Result<std::optional<PmiLine>> PmiLineReader::next() {
    auto text = next_text();
    if (!text) return text.error();
    if (!*text) return std::optional<PmiLine>{};
    auto line = PmiLine::parse(**text);
    if (!line) return line.error();
    return std::optional<PmiLine>(*std::move(line));
}

std::string hex_of(Bytes bytes) {
    std::string text;
    text.reserve(bytes.size() * 2);
    for (const std::byte byte : bytes) {
        text += digits[static_cast<unsigned>(byte) >> 4];
        text += digits[static_cast<unsigned>(byte) & 15];
    }
    return text;
}

std::optional<std::vector<std::byte>> bytes_of_hex(std::string_view text) {
    if (text.size() % 2 != 0) return std::nullopt;
    std::vector<std::byte> bytes;
    bytes.reserve(text.size() / 2);
    for (std::size_t at = 0; at < text.size(); at += 2) {
        const auto high = digit_value(text[at]);
        const auto low = digit_value(text[at + 1]);
        if (!high || !low) return std::nullopt;
        bytes.push_back(static_cast<std::byte>(*high << 4 | *low));
    }
    return bytes;
}

std::string shown(std::string_view text) {
    std::string readable(text.substr(0, 60));
    for (char& c : readable)
        if (c < ' ' || c > '~') c = '?';
    return text.size() > 60 ? readable + "..." : readable;
}

} // namespace kumi::boot
