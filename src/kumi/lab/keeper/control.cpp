#include "kumi/lab/keeper/control.hpp"

#include "kumi/cluster/rate.hpp"
#include "kumi/lab/network/carrier.hpp"
#include "kumi/lab/network/command.hpp"
#include "kumi/lab/plan/rate.hpp"

namespace kumi::lab {
namespace {

Result<bool> one_of_two(const std::string& word, const char* yes, const char* no) {
    if (word == yes) return true;
    if (word == no) return false;
    return error("\"{}\": write {} or {}", word, yes, no);
}

Result<void> set_mute(const Port& port, bool on) {
    // The states "disabled" and "forwarding": the cable stays in, and the switch takes no notice of it.
    return run_command({"bridge", "link", "set", "dev", port.name, "state", on ? "0" : "3"});
}

Result<Change> change_link(const Lab& lab, const Port& port, Change change, const std::string& word) {
    const auto up = one_of_two(word, "up", "down");
    if (!up) return up.error();
    change.kind = Change::Kind::link;
    change.on = *up;
    if (auto done = run_command({"ip", "link", "set", "dev", port.name, *up ? "up" : "down"}); !done)
        return done.error();
    if (!*up || !lab.conditions.mute.contains({change.host, change.network})) return change;
    // A port that gets its carrier forwards again, whatever it did before. A host that has taken its own end down gets
    // none: then this waits in vain.
    static_cast<void>(wait_for_carrier(port.name, now() + std::chrono::seconds(2)));
    if (auto done = set_mute(port, true); !done) return done.error();
    return change;
}

Result<Change> change_mute(const Lab& lab, const Port& port, Change change, const std::string& word) {
    const auto on = one_of_two(word, "on", "off");
    if (!on) return on.error();
    change.kind = Change::Kind::mute;
    change.on = *on;
    if (lab.conditions.down.contains({change.host, change.network})) return change; // carried out when it comes up
    if (auto done = set_mute(port, *on); !done) return done.error();
    return change;
}

/// On every host of the network that is alive.
Result<void> on_hosts(const Lab& lab, std::uint32_t network, const auto& action) {
    for (std::size_t host = 0; host < lab.hosts.size(); ++host)
        for (const Port& port : lab.plan.hosts[host].ports) {
            if (port.network != network || lab.hosts[host].pid == 0) continue;
            auto done = enter_network(lab.hosts[host]);
            if (done) done = action(port);
            if (!done) return error("host {}: {}", lab.plan.hosts[host].name, done.error().text());
        }
    return {};
}

Result<Change> change_loss(const Lab& lab, Change change, const std::string& word) {
    const auto percent = parse_percent(word);
    if (!percent) return percent.error();
    change.kind = Change::Kind::loss;
    change.loss_percent = *percent;
    if (auto done = run_lines({"nft", "-f", "-"}, loss_rules(lab.plan.networks[change.network], *percent)); !done)
        return done.error();
    Conditions after = lab.conditions;
    after.apply(change);
    const bool offloads = !after.by_the_frame(change.network);
    const auto done =
        on_hosts(lab, change.network, [&](const Port& port) { return set_offloads(port.interface, offloads); });
    return done ? Result<Change>(change) : done.error();
}

Result<Change> change_rate(const Lab& lab, Change change, const std::string& word) {
    const auto rate = cluster::parse_rate(word);
    if (!rate) return rate.error();
    change.kind = Change::Kind::rate;
    change.bits_per_second = *rate;
    Conditions after = lab.conditions;
    after.apply(change);
    const bool offloads = !after.by_the_frame(change.network);
    const std::uint32_t mtu = lab.plan.networks[change.network].mtu;
    std::string limits;
    for (std::size_t host = 0; host < lab.hosts.size(); ++host)
        for (const Port& port : lab.plan.hosts[host].ports)
            if (port.network == change.network && lab.hosts[host].pid != 0) limits += shaping(port.name, *rate, mtu);
    if (auto done = run_lines({"tc", "-batch", "-"}, limits); !done) return done.error();
    const auto done = on_hosts(lab, change.network, [&](const Port& port) -> Result<void> {
        if (auto set = set_offloads(port.interface, offloads); !set) return set;
        return run_lines({"tc", "-batch", "-"}, shaping(port.interface, *rate, mtu));
    });
    return done ? Result<Change>(change) : done.error();
}

} // namespace

Result<Change> change_network(const Lab& lab, const std::string& verb, const std::vector<std::string>& words) {
    const bool of_a_port = verb == "link" || verb == "mute";
    const bool of_a_network = verb == "loss" || verb == "rate";
    if (!of_a_port && !of_a_network) return error("the lab does not know \"{}\"", verb);
    if (words.size() != (of_a_port ? 3u : 2u)) return error("{}: the wrong number of words", verb);
    Change change;
    if (of_a_network) {
        const auto network = lab.plan.find_network(words[0]);
        if (!network) return network.error();
        change.network = *network;
        return verb == "loss" ? change_loss(lab, change, words[1]) : change_rate(lab, change, words[1]);
    }
    const auto port = lab.plan.find_port(words[0], words[1]);
    if (!port) return port.error();
    change.host = *lab.plan.find_host(words[0]);
    if (lab.hosts[change.host].pid == 0) return error("host {}: it has died, and its cables are gone", words[0]);
    change.network = port->network;
    return verb == "link" ? change_link(lab, *port, change, words[2]) : change_mute(lab, *port, change, words[2]);
}

} // namespace kumi::lab
