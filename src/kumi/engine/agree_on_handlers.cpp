#include "kumi/engine/agree_on_handlers.hpp"

#include "kumi/base/text/fnv.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace kumi::engine {
namespace {

/// What each node tells the others of itself.
struct Hello {
    std::uint64_t digest; // of its handlers and functions
    Node first_on_host;
    std::array<char, 52> host; // ends with a zero
};

/// "name(parameters)" of each, and each one's place in the order of names: its number on the wire.
struct Names {
    std::vector<std::string> sorted;
    std::vector<std::uint32_t> numbers;
};
template <class Entries>
Names names_of(const Entries& entries) {
    std::vector<std::uint32_t> order(entries.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::sort(order, {}, [&](std::uint32_t i) -> const std::string& { return entries[i].name; });
    Names names;
    names.numbers.resize(entries.size());
    for (std::uint32_t place = 0; place < order.size(); ++place) {
        names.numbers[order[place]] = place;
        names.sorted.push_back(fmt::format("{}({})", entries[order[place]].name, entries[order[place]].signature));
    }
    return names;
}

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    for (std::size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1))
        lines.push_back(text.substr(0, end));
    return lines;
}

/// The handler or function among `others` that has the name of the one in `line`; empty: there is none.
std::string_view namesake_of(std::string_view line, const std::vector<std::string_view>& others) {
    const auto name_of = [](std::string_view one) { return one.substr(0, one.find('(')); };
    const auto found = std::ranges::find(others, name_of(line), name_of);
    return found == others.end() ? std::string_view{} : *found;
}

/// The error that `other` lacks the handler or function in `line`, which `owner` has.
Error difference(Node owner, std::string_view line, Node other, const std::vector<std::string_view>& of_other) {
    if (const std::string_view theirs = namesake_of(line, of_other); !theirs.empty())
        return error(
            ErrorCode::misuse,
            "node {} has {}, and node {} has {}: all nodes must have the same handlers and functions, with the "
            "same parameters",
            owner, line, other, theirs);
    return error(ErrorCode::misuse,
                 "node {} has {}, and node {} has nothing of that name: all nodes must have the same handlers and "
                 "functions",
                 owner, line, other);
}

/// The nodes' lists are not alike: finds one difference and names it.
Error explain(const std::string& mine, Node self, pm::Meeting& meeting) {
    const auto all = meeting.exchange(bytes_of(std::string_view(mine)));
    if (!all) return all.error();
    const auto ours = lines_of(mine);
    for (Node node = 0; node < all->size(); ++node) {
        const auto theirs = lines_of(text_of((*all)[node]));
        for (const std::string_view line : ours)
            if (std::ranges::find(theirs, line) == theirs.end()) return difference(self, line, node, theirs);
        for (const std::string_view line : theirs)
            if (std::ranges::find(ours, line) == ours.end()) return difference(node, line, self, ours);
    }
    return error(ErrorCode::misuse, "other nodes differ in their handlers and functions: all must have the same");
}

} // namespace

Result<void> agree_on_handlers(Dispatcher& dispatcher, pm::Meeting& meeting, std::string_view host) {
    Names handlers = names_of(dispatcher.messages().handlers().entries());
    Names functions = names_of(dispatcher.messages().handlers().functions());
    std::string mine;
    for (const std::string& name : handlers.sorted) mine += fmt::format("handler {}\n", name);
    for (const std::string& name : functions.sorted) mine += fmt::format("function {}\n", name);
    Hello hello{base::fnv1a(mine), dispatcher.segments().map().first_mapped(), {}};
    std::ranges::copy(host.substr(0, hello.host.size() - 1), hello.host.begin());
    const auto told = meeting.exchange(bytes_of(hello));
    if (!told) return told.error();
    Agreed agreed{std::move(handlers.numbers), std::move(functions.numbers), {}, {}};
    bool are_alike = true;
    for (Node node = 0; node < dispatcher.nodes(); ++node) {
        Hello other{};
        if (!read_value((*told)[node], other))
            return error(ErrorCode::misuse, "node {} runs another version of Kumi: run the same on all nodes", node);
        are_alike &= other.digest == hello.digest;
        other.host.back() = '\0';
        agreed.hosts.emplace_back(other.host.data());
        agreed.firsts.push_back(other.first_on_host);
    }
    if (!are_alike) return explain(mine, dispatcher.node(), meeting);
    const auto has_twice = [](const std::vector<std::string>& sorted) {
        return std::ranges::adjacent_find(sorted, {},
                                          [](const std::string& line) { return line.substr(0, line.rfind('(')); });
    };
    for (const Names* names : {&handlers, &functions})
        if (const auto twice = has_twice(names->sorted); twice != names->sorted.end())
            return error(ErrorCode::misuse, "two handlers or functions have one name: {}", *twice);
    dispatcher.set_agreement(std::move(agreed));
    return {};
}

} // namespace kumi::engine
