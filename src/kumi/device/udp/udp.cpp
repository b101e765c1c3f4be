#include "kumi/device/udp/udp.hpp"

#include "kumi/base/log.hpp"
#include "kumi/base/system/machine.hpp"
#include "kumi/base/text/number_text.hpp"
#include "kumi/base/text/size_text.hpp"
#include "kumi/device/udp/channel.hpp"

#include <cstdlib>

namespace kumi::device::udp {
namespace {

Result<std::uint64_t> whole_number(std::string_view digits, std::uint64_t most) {
    const auto number = base::number_in<std::uint64_t>(digits);
    if (!number || *number > most) return error("write a whole number from 0 to {}", most);
    return *number;
}

} // namespace

Result<std::unique_ptr<pm::Channel>> UdpDevice::open(const pm::Opening& opening) {
    Options options = options_;
    options.has_alternatives = opening.has_alternatives;
    options.network = opening.network;
    auto channel = UdpChannel::bind(options, opening.self, opening.nodes, opening.keys);
    if (!channel) return channel.error();
    const Hello mine = (*channel)->hello();
    auto told = opening.meeting.exchange(bytes_of(mine));
    if (!told) return told.error();
    std::vector<Hello> hellos(opening.nodes);
    for (pm::Node node = 0; node < opening.nodes; ++node)
        if (!read_value((*told)[node], hellos[node]))
            return error("udp: node {} opens another device: use udp on all nodes", node);
    if (auto met = (*channel)->meet(hellos); !met) return met.error();
    base::log_debug("udp: at {}, buffer {}, packets to node {} of {} bytes, {}", (*channel)->address().text(),
                    base::readable_bytes((*channel)->endpoint().options().receive_bytes), opening.nodes - 1,
                    (*channel)->endpoint().packet_bytes(opening.nodes - 1),
                    options_.encrypt ? "encrypted" : "not encrypted");
    return std::unique_ptr<pm::Channel>(*std::move(channel));
}

Result<std::vector<std::unique_ptr<pm::Channel>>>
open_in_one_process(std::span<const std::string> addresses, const Options& options,
                    base::FunctionRef<Result<void>(pm::Node)> before_open) {
    const auto keys = base::make_job_keys();
    if (!keys) return keys.error();
    const auto nodes = static_cast<pm::Node>(addresses.size());
    std::vector<std::unique_ptr<UdpChannel>> bound;
    std::vector<Hello> hellos;
    for (pm::Node node = 0; node < nodes; ++node) {
        if (auto ready = before_open(node); !ready) return ready.error();
        Options own = options;
        own.address = addresses[node];
        auto channel = UdpChannel::bind(own, node, nodes, *keys);
        if (!channel) return channel.error();
        hellos.push_back((*channel)->hello());
        bound.push_back(*std::move(channel));
    }
    std::vector<std::unique_ptr<pm::Channel>> channels;
    for (pm::Node node = 0; node < nodes; ++node) {
        if (auto ready = before_open(node); !ready) return ready.error(); // meet() looks up the routes to the others
        if (auto met = bound[node]->meet(hellos); !met) return met.error();
        channels.push_back(std::move(bound[node]));
    }
    return channels;
}

Result<void> set_option(Options& options, const std::string& name, const std::string& value) {
    if (name == "buffer") {
        const auto bytes = base::parse_size(value);
        if (!bytes) return bytes.error();
        options.buffer_bytes = *bytes;
    } else if (name == "port") {
        const auto port = whole_number(value, 65'535);
        if (!port) return port.error();
        options.port = static_cast<std::uint16_t>(*port);
    } else if (name == "address") {
        options.address = value;
    } else if (name == "encrypt" || name == "check") {
        if (value != "yes" && value != "no") return error("write yes or no");
        (name == "check" ? options.checks_all : options.encrypt) = value == "yes";
    } else {
        return error("udp knows address, port, encrypt, check and buffer");
    }
    return {};
}

Result<Options> options_from_environment() {
    Options options;
    for (const auto& [variable, name] : {std::pair{"KUMI_UDP_ADDRESS", "address"},
                                         {"KUMI_UDP_PORT", "port"},
                                         {"KUMI_UDP_ENCRYPT", "encrypt"},
                                         {"KUMI_UDP_CHECK", "check"},
                                         {"KUMI_UDP_BUFFER", "buffer"}})
        if (const char* text = std::getenv(variable))
            if (auto set = set_option(options, name, text); !set)
                return error("{}={}: {}", variable, text, set.error().text());
    if (const char* text = std::getenv("KUMI_SILENCE")) {
        const auto seconds = whole_number(text, 1'000'000);
        if (!seconds) return error("KUMI_SILENCE={}: {}", text, seconds.error().text());
        options.silence_max = std::chrono::seconds(*seconds);
    }
    if (const char* text = std::getenv("KUMI_FAULT")) {
        auto faults = parse_faults(text);
        if (!faults) return faults.error();
        options.faults = *faults;
    }
    return options;
}

} // namespace kumi::device::udp
