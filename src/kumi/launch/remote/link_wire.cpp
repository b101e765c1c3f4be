#include "kumi/launch/remote/link_wire.hpp"

#include "kumi/base/text/number_text.hpp"
#include "kumi/boot/wire.hpp"

#include <algorithm>
#include <cstring>

namespace kumi::launch::remote {
namespace {

constexpr std::string_view hello_mark = "kumi-host-helper ";

struct OrderHead {
    std::uint32_t first, count, bind, is_terminal, rows, columns, arguments, environment, has_cluster, nodes, parts,
        mpi_over_kumi;
};

void put(std::vector<std::byte>& bytes, Bytes more) { bytes.insert(bytes.end(), more.begin(), more.end()); }

/// Texts that end in a zero.
void put_text(std::vector<std::byte>& bytes, const std::string& text) {
    put(bytes, std::as_bytes(std::span(text.c_str(), text.size() + 1)));
}

bool take_text(Bytes& bytes, std::string& text) {
    const auto end = std::find(bytes.begin(), bytes.end(), std::byte{0});
    if (end == bytes.end()) return false;
    const auto count = static_cast<std::size_t>(end - bytes.begin());
    text = text_of(bytes.first(count));
    bytes = bytes.subspan(count + 1);
    return true;
}

bool take_texts(Bytes& bytes, std::uint32_t count, std::vector<std::string>& texts) {
    while (count-- > 0)
        if (!take_text(bytes, texts.emplace_back())) return false;
    return true;
}

/// Hosts in the order of their nodes.
bool take_parts(Bytes& bytes, std::uint32_t count, std::vector<host::Part>& parts) {
    std::uint32_t first = 0;
    while (count-- > 0) {
        host::Part& part = parts.emplace_back();
        if (!take_text(bytes, part.host) || !read_value(bytes, part.count)) return false;
        bytes = bytes.subspan(sizeof part.count);
        part.first = first;
        first += part.count;
    }
    return true;
}

/// The next of several words, which one blank parts.
std::string_view take_word(std::string_view& line) {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(word.size() + 1, line.size()));
    return word;
}

} // namespace

std::vector<std::byte> encode(LinkKind kind, std::uint32_t node, std::uint32_t value, Bytes body) {
    const LinkHeader header{kind, node, value, static_cast<std::uint32_t>(body.size())};
    std::vector<std::byte> bytes(sizeof header + body.size());
    std::memcpy(bytes.data(), &header, sizeof header);
    if (!body.empty()) std::memcpy(bytes.data() + sizeof header, body.data(), body.size());
    return bytes;
}

std::string full_version(std::string_view version) {
    return fmt::format("{}-{}.{}", version, boot::wire_version, link_version);
}

std::string encode(const Hello& hello) {
    return fmt::format("\n{}{} {} {}\n", hello_mark, hello.version, hello.wall_clock_ns, hello.cores);
}

std::int64_t clock_difference_ns(std::int64_t theirs, std::int64_t before, std::int64_t after) noexcept {
    if (theirs > after) return theirs - after;
    return theirs < before ? theirs - before : 0;
}

std::vector<std::byte> encode(const JobOrder& order) {
    const OrderHead head{.first = order.first,
                         .count = order.count,
                         .bind = order.bind,
                         .is_terminal = order.is_terminal,
                         .rows = order.rows,
                         .columns = order.columns,
                         .arguments = static_cast<std::uint32_t>(order.arguments.size()),
                         .environment = static_cast<std::uint32_t>(order.environment.size()),
                         .has_cluster = order.cluster_text.has_value(),
                         .nodes = order.nodes,
                         .parts = static_cast<std::uint32_t>(order.parts.size()),
                         .mpi_over_kumi = order.mpi_over_kumi};
    std::vector<std::byte> bytes(sizeof head);
    std::memcpy(bytes.data(), &head, sizeof head);
    put_text(bytes, order.folder);
    put_text(bytes, order.program);
    for (const std::string& text : order.arguments) put_text(bytes, text);
    for (const std::string& text : order.environment) put_text(bytes, text);
    put_text(bytes, order.job_name);
    for (const host::Part& part : order.parts) {
        put_text(bytes, part.host);
        put(bytes, bytes_of(part.count));
    }
    if (order.cluster_text) put(bytes, bytes_of(std::string_view(*order.cluster_text)));
    return bytes;
}

Result<JobOrder> decode_order(Bytes bytes) {
    OrderHead head{};
    JobOrder order;
    const bool has_head = read_value(bytes, head);
    Bytes left = bytes.subspan(has_head ? sizeof head : 0);
    if (!has_head || !take_text(left, order.folder) || !take_text(left, order.program) ||
        !take_texts(left, head.arguments, order.arguments) || !take_texts(left, head.environment, order.environment) ||
        !take_text(left, order.job_name) || !take_parts(left, head.parts, order.parts))
        return error("what kumi run orders is cut short");
    order.first = head.first;
    order.count = head.count;
    order.nodes = head.nodes;
    order.bind = head.bind != 0;
    order.mpi_over_kumi = head.mpi_over_kumi != 0;
    order.is_terminal = head.is_terminal != 0;
    order.rows = static_cast<std::uint16_t>(head.rows);
    order.columns = static_cast<std::uint16_t>(head.columns);
    if (head.has_cluster != 0) order.cluster_text = text_of(left);
    return order;
}

void LinkReader::add(Bytes bytes) { put(bytes_, bytes); }

void LinkReader::take(std::size_t bytes) {
    taken_bytes_ += bytes;
    if (taken_bytes_ <= bytes_.size() / 2) return; // moving the rest each time would take long for many small frames
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(taken_bytes_));
    taken_bytes_ = 0;
}

std::optional<Hello> LinkReader::next_hello() {
    const std::string_view text = text_of(left());
    const std::size_t mark = text.find(hello_mark);
    const std::size_t end = mark == std::string_view::npos ? mark : text.find('\n', mark);
    if (end == std::string_view::npos) return std::nullopt;
    std::string_view line = text.substr(mark + hello_mark.size(), end - mark - hello_mark.size());
    Hello hello;
    hello.version = take_word(line);
    // Words that are no numbers come from another version of Kumi; the caller will refuse that version.
    hello.wall_clock_ns = base::number_in<std::int64_t>(take_word(line)).value_or(0);
    hello.cores = base::number_in<std::uint32_t>(take_word(line)).value_or(1);
    take(end + 1);
    return hello;
}

Result<std::optional<LinkFrame>> LinkReader::next() {
    LinkHeader header{};
    if (!read_value(left(), header)) return std::optional<LinkFrame>{};
    if (header.kind < LinkKind::job || header.kind > LinkKind::done || header.body_bytes > boot::body_bytes_max)
        return error("what came is no frame of this version of Kumi");
    const std::size_t whole = sizeof header + header.body_bytes;
    if (left().size() < whole) return std::optional<LinkFrame>{};
    const Bytes body = left().subspan(sizeof header, header.body_bytes);
    LinkFrame frame{header.kind, header.node, header.value, {body.begin(), body.end()}};
    take(whole);
    return std::optional<LinkFrame>(std::move(frame));
}

} // namespace kumi::launch::remote
