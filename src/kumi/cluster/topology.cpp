#include "kumi/cluster/topology.hpp"

#include <charconv>
#include <utility>

namespace kumi::cluster {
namespace {

constexpr std::pair<std::string_view, Topology::Kind> names[] = {{"all", Topology::Kind::all},
                                                                 {"chain", Topology::Kind::chain},
                                                                 {"ring", Topology::Kind::ring},
                                                                 {"tree", Topology::Kind::tree},
                                                                 {"torus", Topology::Kind::torus}};
constexpr std::uint32_t side_max = 65'536;

/// Reads a number at the front of `text`, and removes it. 0: there is none.
std::uint32_t take_number(std::string_view& text) noexcept {
    std::uint32_t number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (status != std::errc{} || number > side_max) return 0;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

bool are_beside(std::uint32_t one, std::uint32_t other, std::uint32_t count) noexcept {
    return (one + 1) % count == other || (other + 1) % count == one;
}

} // namespace

Result<Topology> Topology::parse(std::string_view text) {
    Topology made;
    std::string_view rest = text;
    bool known = false;
    for (const auto& [name, kind] : names)
        if (const std::string_view word = text.substr(0, text.find(' ')); word == name) {
            made.kind_ = kind;
            rest.remove_prefix(word.size());
            known = true;
        }
    if (known && made.kind_ == Kind::torus && rest.starts_with(' ')) {
        rest.remove_prefix(1);
        made.columns_ = take_number(rest);
        const bool has_rows = made.columns_ != 0 && rest.starts_with('x');
        if (has_rows) rest.remove_prefix(1), made.rows_ = take_number(rest);
    }
    const bool whole = rest.empty() && (made.kind_ != Kind::torus || made.rows_ != 0);
    if (!known || !whole)
        return error("\"{}\" is no topology; write \"all\", \"chain\", \"ring\", \"tree\" or \"torus 4x2\"", text);
    return made;
}

std::string Topology::text() const {
    if (kind_ == Kind::torus) return fmt::format("torus {}x{}", columns_, rows_);
    for (const auto& [name, kind] : names)
        if (kind == kind_) return std::string(name);
    return {};
}

Result<void> Topology::check(std::uint32_t members) const {
    if (kind_ != Kind::torus || std::uint64_t{columns_} * rows_ == members) return {};
    return error("a torus of {}x{} has {} hosts, and {} are on this network", columns_, rows_,
                 std::uint64_t{columns_} * rows_, members);
}

bool Topology::joins(std::uint32_t one, std::uint32_t other, std::uint32_t members) const noexcept {
    if (one == other) return false;
    switch (kind_) {
    case Kind::all: return true;
    case Kind::chain: return one + 1 == other || other + 1 == one;
    case Kind::ring: return are_beside(one, other, members);
    case Kind::tree: return (one != 0 && (one - 1) / 2 == other) || (other != 0 && (other - 1) / 2 == one);
    case Kind::torus:
        if (one / columns_ == other / columns_) return are_beside(one % columns_, other % columns_, columns_);
        return one % columns_ == other % columns_ && are_beside(one / columns_, other / columns_, rows_);
    }
    return false;
}

} // namespace kumi::cluster
