#include "composite/soak.hpp"

#include "harness/command.hpp"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <fstream>
#include <future>
#include <numeric>
#include <random>
#include <thread>

namespace kumi::bench {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr std::chrono::seconds soak_seconds_max{1800};
// faults that may last when another begins; with more, hardly a network would be left
constexpr std::size_t faults_max = 2;
constexpr unsigned pause_ms_max = 150;
constexpr Milliseconds recovery_time{500}; // for hosts that no network joined

struct Fault {
    bool mute;
    std::string host;
    std::string network;

    bool operator==(const Fault&) const = default;
    std::vector<std::string> words(bool begins) const {
        return {mute ? "mute" : "link", host, network, mute ? (begins ? "on" : "off") : (begins ? "down" : "up")};
    }
};

/// Faults of a lab, some of them at the same time. While several faults last, the networks that are left still join all
/// hosts. A fault after which no network joins all hosts lasts alone, and the hosts have time to recover from it.
class Storm {
public:
    Storm(const OwnLab& lab, const cluster::Cluster& cluster, std::uint64_t seed)
        : lab_(lab), hosts_(cluster.hosts.size()), random_(seed) {
        for (std::size_t host = 0; host < cluster.hosts.size(); ++host)
            for (std::size_t network = 0; network < cluster.networks.size(); ++network)
                if (!cluster.hosts[host].addresses[network].empty())
                    cables_.push_back({host, network, cluster.hosts[host].name, cluster.networks[network].name});
    }

    /// Begins one more fault. Ends others first if there would be too many.
    Result<void> blow() {
        Fault fault = draw();
        while (std::find(faults_.begin(), faults_.end(), fault) != faults_.end()) fault = draw();
        while (!faults_.empty() && !are_joined_with(fault))
            if (auto ended = end_oldest(); !ended) return ended;
        const bool parts = !are_joined_with(fault);
        if (auto begun = lab_.ask(fault.words(true)); !begun) return begun;
        faults_.push_back(fault);
        std::this_thread::sleep_for(Milliseconds(random_() % pause_ms_max));
        if (parts) {
            auto ended = end_oldest();
            std::this_thread::sleep_for(recovery_time);
            return ended;
        }
        return faults_.size() > faults_max ? end_oldest() : Result<void>{};
    }
    Result<void> end() {
        while (!faults_.empty())
            if (auto ended = end_oldest(); !ended) return ended;
        return {};
    }

private:
    struct Cable {
        std::size_t host_index;
        std::size_t network_index;
        std::string host;
        std::string network;
    };

    Fault draw() {
        const bool mute = random_() % 2 == 0;
        const Cable& cable = cables_[random_() % cables_.size()];
        return {mute, cable.host, cable.network};
    }
    bool is_cut(const Cable& cable, const Fault& more) const {
        const auto is_of = [&](const Fault& fault) {
            return fault.host == cable.host && fault.network == cable.network;
        };
        return is_of(more) || std::any_of(faults_.begin(), faults_.end(), is_of);
    }
    /// Whether networks join all hosts during the present faults and one more.
    bool are_joined_with(const Fault& more) const {
        std::vector<std::size_t> group(hosts_); // for each host
        std::iota(group.begin(), group.end(), std::size_t{0});
        for (const Cable& one : cables_)
            for (const Cable& other : cables_) {
                if (one.network_index != other.network_index || is_cut(one, more) || is_cut(other, more)) continue;
                std::replace(group.begin(), group.end(), group[one.host_index], std::size_t{group[other.host_index]});
            }
        return std::all_of(group.begin(), group.end(), [&](std::size_t one) { return one == group.front(); });
    }
    Result<void> end_oldest() {
        const Fault fault = faults_.front();
        faults_.pop_front();
        return lab_.ask(fault.words(false));
    }

    const OwnLab& lab_;
    std::size_t hosts_;
    std::vector<Cable> cables_;
    std::mt19937_64 random_;
    std::deque<Fault> faults_;
};

} // namespace

Result<Soaked> soak(const OwnLab& lab, const cluster::Cluster& cluster, const std::vector<std::string>& job,
                    std::uint64_t seed, const std::function<void(const Step&)>& on_progress) {
    const std::string end_file = lab.folder() + "/over";
    std::vector<std::string> words = job;
    words.push_back(end_file);
    auto running =
        std::async(std::launch::async, [&] { return run_contestant(words, lab.environment(), soak_seconds_max); });
    const auto has_ended = [&] { return running.wait_for(Milliseconds(0)) == std::future_status::ready; };
    Soaked soaked;
    Storm storm(lab, cluster, seed);
    Result<void> blown;
    while (soaked.cycles < soak_cycles && blown && !has_ended()) {
        on_progress({fmt::format("fault {} of {}", soaked.cycles + 1, soak_cycles), 1, 1,
                     static_cast<double>(soaked.cycles) / soak_cycles});
        blown = storm.blow();
        if (blown) ++soaked.cycles;
    }
    const bool ended_early = has_ended();
    const auto calm = storm.end();
    std::ofstream(end_file).close();
    const auto heard = running.get();
    if (!heard) return error("after {} cycles: {}", soaked.cycles, heard.error().text());
    if (ended_early) return error("the nodes ended after {} cycles", soaked.cycles);
    if (!blown) return blown.error();
    if (!calm) return calm.error();
    for (const auto& [name, value] : heard->results) {
        if (name.starts_with("pause")) soaked.longest_pause = std::max(soaked.longest_pause, value);
        else
            (name.starts_with("wrong")      ? soaked.wrong
             : name.starts_with("messages") ? soaked.messages
                                            : soaked.failovers) += value;
    }
    return soaked;
}

} // namespace kumi::bench
