#include "kumi/cluster/file.hpp"

#include "kumi/base/net/ip_address.hpp"
#include "kumi/base/text/number_text.hpp"
#include "kumi/cluster/ranges.hpp"
#include "kumi/cluster/rate.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <toml++/toml.h>
#include <utility>

namespace kumi::cluster {
namespace {

constexpr std::int64_t slots_max = 1 << 20;
constexpr char shared_memory_letter = 'S';

bool is_name(std::string_view text) noexcept {
    return !text.empty() && text.front() != '-' && std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return std::isalnum(c) || c == '-' || c == '_' || c == '.';
    });
}

/// Edit distance of two words (insertions, deletions, changes), for "did you mean".
std::size_t difference(std::string_view one, std::string_view other) {
    std::vector<std::size_t> row(other.size() + 1);
    for (std::size_t i = 0; i <= other.size(); ++i) row[i] = i;
    for (std::size_t i = 1; i <= one.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i);
        for (std::size_t k = 1; k <= other.size(); ++k) {
            const std::size_t changed = diagonal + (one[i - 1] == other[k - 1] ? 0 : 1);
            diagonal = row[k];
            row[k] = std::min({row[k] + 1, row[k - 1] + 1, changed});
        }
    }
    return row.back();
}

template <class Names>
std::string did_you_mean(std::string_view word, const Names& names) {
    for (const auto& name : names)
        if (difference(word, name) <= 2) return fmt::format("did you mean \"{}\"?", name);
    return fmt::format("write one of: {}", fmt::join(names, ", "));
}

/// Reads the tables of a file into a Cluster. Stops at the first error.
class Reader {
public:
    explicit Reader(std::string file) : file_(std::move(file)) {}

    Result<Cluster> read(const toml::table& root) {
        static constexpr std::string_view known[] = {"network", "host", "silence"};
        if (auto good = refuse_others(root, known); !good) return good.error();
        if (root.contains("silence"))
            if (auto good = take_number(root, "silence", 0, 1'000'000, cluster_.silence_seconds.emplace()); !good)
                return good.error();
        if (auto good = read_each(root, "network", [&](const toml::table& one) { return read_network(one); }); !good)
            return good.error();
        sort_networks();
        if (auto good = read_each(root, "host", [&](const toml::table& one) { return read_host(one); }); !good)
            return good.error();
        if (cluster_.hosts.empty()) return error("{}: no hosts; write [[host]] and name = \"...\" for each", file_);
        if (auto good = check_networks(); !good) return good.error();
        return std::move(cluster_);
    }

private:
    template <class... Arguments>
    Error wrong(const toml::node& where, fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
        const toml::source_position at = where.source().begin;
        return error("{}:{}:{}: {}", file_, at.line, at.column,
                     fmt::format(format, std::forward<Arguments>(arguments)...));
    }

    template <std::size_t count>
    Result<void> refuse_others(const toml::table& table, const std::string_view (&known)[count]) const {
        for (const auto& [key, value] : table) {
            if (std::find(std::begin(known), std::end(known), key.str()) != std::end(known)) continue;
            const toml::source_position at = key.source().begin;
            return error("{}:{}:{}: \"{}\" means nothing here; {}", file_, at.line, at.column, key.str(),
                         did_you_mean(key.str(), known));
        }
        return {};
    }

    template <class ReadOne>
    Result<void> read_each(const toml::table& root, const char* name, ReadOne&& read_one) {
        const toml::node* all = root.get(name);
        if (all == nullptr) return {};
        if (!all->is_array_of_tables())
            return wrong(*all, "write [[{}]] with two brackets, once for each {}", name, name);
        for (const toml::node& one : *all->as_array())
            if (auto good = read_one(*one.as_table()); !good) return good;
        return {};
    }

    /// Reads the value of `key`, if it is there. `what` names the expected value in errors.
    template <class T, class Value>
    Result<void> take(const toml::table& table, const char* key, const char* what, Value& into) {
        const toml::node* node = table.get(key);
        if (node == nullptr) return {};
        const auto value = node->value_exact<T>();
        if (!value) return wrong(*node, "{} is to be {}", key, what);
        into = *value;
        return {};
    }

    Result<void> take_number(const toml::table& table, const char* key, std::int64_t least, std::int64_t most,
                             std::uint32_t& into) {
        std::int64_t number = into;
        if (auto good = take<std::int64_t>(table, key, "a whole number", number); !good) return good;
        if (number < least || number > most)
            return wrong(*table.get(key), "{} = {}: write {} to {}", key, number, least, most);
        into = static_cast<std::uint32_t>(number);
        return {};
    }

    Result<void> read_network(const toml::table& table) {
        static constexpr std::string_view known[] = {"name",     "device",  "priority", "letter", "encrypt",
                                                     "topology", "options", "rate",     "mtu"};
        if (auto good = refuse_others(table, known); !good) return good;
        Network network;
        // the first network is the best, unless the file has priorities
        network.priority = -static_cast<std::int64_t>(cluster_.networks.size());
        std::string letter, topology = "all", rate = "none";
        for (const auto& [key, what, into] : {std::tuple{"name", "a text", &network.name},
                                              {"device", "a text, like \"udp\"", &network.device},
                                              {"letter", "a text of one letter", &letter},
                                              {"topology", "a text, like \"ring\"", &topology},
                                              {"rate", "a text, like \"1gbit\"", &rate}})
            if (auto good = take<std::string>(table, key, what, *into); !good) return good;
        if (auto good = take<std::int64_t>(table, "priority", "a whole number", network.priority); !good) return good;
        if (auto good = take<bool>(table, "encrypt", "true or false", network.encrypt); !good) return good;
        if (auto good = take_number(table, "mtu", 576, 65'535, network.mtu); !good) return good;
        if (network.name.empty()) return wrong(table, "this network has no name; write name = \"...\"");
        if (!is_name(network.name))
            return wrong(*table.get("name"), "\"{}\" is no name; use letters, digits, - and _", network.name);
        if (cluster_.find_network(network.name))
            return wrong(*table.get("name"), "there are two networks \"{}\"; call one of them otherwise", network.name);
        if (network.device != "udp")
            return wrong(*table.get("device"), "no device \"{}\"; a network is driven by \"udp\"", network.device);
        if (auto good = read_letter(table, letter, network); !good) return good;
        auto parsed = Topology::parse(topology);
        if (!parsed) return wrong(*table.get("topology"), "{}", parsed.error().text());
        network.topology = *parsed;
        const auto bits_per_second = parse_rate(rate);
        if (!bits_per_second) return wrong(*table.get("rate"), "{}", bits_per_second.error().text());
        network.bits_per_second = *bits_per_second;
        if (auto good = read_options(table, network); !good) return good;
        cluster_.networks.push_back(std::move(network));
        return {};
    }

    /// Maps show a network as one letter: the one in the file, or the first free letter of the name.
    Result<void> read_letter(const toml::table& table, const std::string& told, Network& network) {
        const auto taken = [&](char letter) {
            return letter == shared_memory_letter ||
                   std::any_of(cluster_.networks.begin(), cluster_.networks.end(),
                               [&](const Network& other) { return other.letter == letter; });
        };
        if (!told.empty()) {
            const bool good = told.size() == 1 && std::isupper(static_cast<unsigned char>(told[0]));
            if (!good) return wrong(*table.get("letter"), "letter = \"{}\": write one capital letter", told);
            if (taken(told[0]))
                return wrong(*table.get("letter"), "the letter {} stands for {} already; take another", told,
                             told[0] == shared_memory_letter ? "shared memory" : "another network");
            network.letter = told[0];
            return {};
        }
        for (const std::string_view letters :
             {std::string_view(network.name), std::string_view("ABCDEFGHIJKLMNOPQRTUVWXYZ")})
            for (const char c : letters) {
                const char letter = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
                if (letter < 'A' || letter > 'Z' || taken(letter)) continue;
                network.letter = letter;
                return {};
            }
        return wrong(table, "no letter is left for this network: {} are the most", 25);
    }

    Result<void> read_options(const toml::table& table, Network& network) {
        const toml::node* options = table.get("options");
        if (options == nullptr) return {};
        if (!options->is_table())
            return wrong(*options, "options are to be written like options = {{ buffer = \"4M\" }}");
        for (const auto& [key, value] : *options->as_table()) {
            std::string text;
            if (const auto word = value.value_exact<std::string>()) text = *word;
            else if (const auto number = value.value_exact<std::int64_t>()) text = fmt::format("{}", *number);
            else return wrong(value, "the option {} is to be a text or a whole number", key.str());
            network.options.push_back({std::string(key.str()), std::move(text)});
        }
        return {};
    }

    void sort_networks() {
        std::stable_sort(cluster_.networks.begin(), cluster_.networks.end(),
                         [](const Network& one, const Network& other) { return one.priority > other.priority; });
    }

    Result<void> read_host(const toml::table& table) {
        static constexpr std::string_view known[] = {"name", "slots", "address"};
        if (auto good = refuse_others(table, known); !good) return good;
        Host host;
        if (auto good = take<std::string>(table, "name", "a text", host.name); !good) return good;
        if (host.name.empty()) return wrong(table, "this host has no name; write name = \"...\"");
        if (auto good = take_number(table, "slots", 1, slots_max, host.slots); !good) return good;
        auto names = expand(host.name);
        if (!names) return wrong(*table.get("name"), "{}", names.error().text());
        const std::size_t first = cluster_.hosts.size();
        for (std::string& name : *names) {
            if (!is_name(name))
                return wrong(*table.get("name"), "\"{}\" is no host name; use letters, digits, - and .", name);
            if (!host_names_.insert(name).second) return wrong(*table.get("name"), "there are two hosts \"{}\"", name);
            host.name = std::move(name);
            host.addresses.assign(cluster_.networks.size(), {});
            cluster_.hosts.push_back(host);
        }
        return read_addresses(table, first);
    }

    Result<void> read_addresses(const toml::table& table, std::size_t first) {
        const toml::node* addresses = table.get("address");
        if (addresses == nullptr) return {};
        if (!addresses->is_table())
            return wrong(*addresses, "write address.NETWORK = \"...\" for each network of the host");
        for (const auto& [key, value] : *addresses->as_table()) {
            const auto network = cluster_.find_network(key.str());
            if (!network) {
                std::vector<std::string> names;
                for (const Network& one : cluster_.networks) names.push_back(one.name);
                const toml::source_position at = key.source().begin;
                return error("{}:{}:{}: no network \"{}\" is described; {}", file_, at.line, at.column, key.str(),
                             names.empty() ? "write [[network]] and its name" : did_you_mean(key.str(), names));
            }
            const auto pattern = value.value_exact<std::string>();
            if (!pattern) return wrong(value, "an address is to be a text, like \"10.0.0.1\"");
            auto expanded = expand(*pattern);
            if (!expanded) return wrong(value, "{}", expanded.error().text());
            if (expanded->size() != cluster_.hosts.size() - first)
                return wrong(value, "\"{}\" is {} addresses for {} hosts; write one for each", *pattern,
                             expanded->size(), cluster_.hosts.size() - first);
            for (std::size_t i = 0; i < expanded->size(); ++i)
                if (auto good = set_address(cluster_.hosts[first + i], *network, (*expanded)[i], value); !good)
                    return good;
        }
        return {};
    }

    Result<void> set_address(Host& host, NetworkIndex network, std::string& address, const toml::node& where) {
        const auto parsed = base::IpAddress::parse(address.substr(0, address.find('%')));
        // After a % an IPv6 address has the name of an interface.
        const bool is_scope_good =
            address.find('%') == std::string::npos || (parsed && parsed->size == 16 && !address.ends_with('%'));
        if (!parsed || !is_scope_good)
            return wrong(where, "\"{}\" is no address; write it in numbers, like \"10.0.0.1\" or \"fd00::1\"", address);
        if (!parsed->is_of_one_host())
            return wrong(where, "{} is no address of one host; write that of its interface on {}", address,
                         cluster_.networks[network].name);
        const auto version = [](unsigned bytes) { return bytes == 4 ? 4 : 6; };
        const auto& [size, first] = families_.try_emplace(network, parsed->size, host.name).first->second;
        if (size != parsed->size)
            return wrong(where, "{} has an IPv{} address on {} and {} an IPv{} one; use one kind on each network",
                         first, version(size), cluster_.networks[network].name, host.name, version(parsed->size));
        const auto [other, is_new] = hosts_by_address_.try_emplace({network, address}, host.name);
        if (!is_new)
            return wrong(where, "{} and {} have the same address {} on {}", other->second, host.name, address,
                         cluster_.networks[network].name);
        host.addresses[network] = std::move(address);
        return {};
    }

    Result<void> check_networks() const {
        for (NetworkIndex network = 0; network < cluster_.networks.size(); ++network) {
            const auto members = static_cast<std::uint32_t>(std::count_if(
                cluster_.hosts.begin(), cluster_.hosts.end(), [&](const Host& host) { return host.is_on(network); }));
            const Network& one = cluster_.networks[network];
            if (auto good = one.topology.check(members); !good)
                return error("{}: network \"{}\": {}", file_, one.name, good.error().text());
        }
        return {};
    }

    std::string file_;
    Cluster cluster_;
    std::set<std::string, std::less<>> host_names_;
    std::map<std::pair<NetworkIndex, std::string>, std::string> hosts_by_address_;
    // size of its addresses, and the first host that has one
    std::map<NetworkIndex, std::pair<unsigned, std::string>> families_;
};

} // namespace

Result<Cluster> parse_cluster(std::string_view text, const std::string& name) {
    try {
        return Reader(name).read(toml::parse(text, name));
    } catch (const toml::parse_error& wrong) {
        const toml::source_position at = wrong.source().begin;
        return error("{}:{}:{}: {}", name, at.line, at.column, wrong.description());
    }
}

Result<Cluster> read_cluster_file(const std::string& path) {
    std::ifstream stream(path);
    if (!stream) return system_error(errno, fmt::format("reading the cluster file {}", path));
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    return parse_cluster(text, path);
}

Result<Cluster> parse_host_list(std::string_view text) {
    Cluster cluster;
    for (const std::string_view part : split_list(text)) {
        const std::size_t colon = part.rfind(':');
        std::uint32_t slots = 1;
        if (colon != std::string_view::npos) {
            const std::string_view number = part.substr(colon + 1);
            const auto read = base::number_in<std::uint32_t>(number);
            if (!read || *read == 0 || *read > slots_max)
                return error("\"{}\": \"{}\" is no number of slots; write it like a:2", part, number);
            slots = *read;
        }
        auto names = expand(part.substr(0, colon));
        if (!names) return names.error();
        for (std::string& name : *names) {
            if (!is_name(name)) return error("\"{}\" is no host name; write hosts like a,b:2,c[0-3]:4", name);
            if (cluster.find_host(name))
                return error("the host \"{}\" is there twice; write {}:2 for two slots", name, name);
            cluster.hosts.push_back({.name = std::move(name), .slots = slots, .addresses = {}});
        }
    }
    return cluster;
}

} // namespace kumi::cluster
