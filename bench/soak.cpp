#include "soak.hpp"

#include "command.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <fmt/format.h>
#include <fstream>
#include <future>
#include <random>
#include <thread>

namespace kumi::bench {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr std::chrono::seconds soak_seconds_max{1800};
constexpr std::size_t faults_max = 2; // at once: more, and there is hardly a network left to go by
constexpr unsigned pause_ms_max = 150;

struct Fault {
    bool mute;
    std::string host;
    std::string network;

    bool operator==(const Fault&) const = default;
    std::vector<std::string> words(bool begins) const {
        return {mute ? "mute" : "link", host, network, mute ? (begins ? "on" : "off") : (begins ? "down" : "up")};
    }
};

/// Faults of a lab, one after the other, some of them at the same time.
class Storm {
public:
    Storm(const OwnLab& lab, std::uint64_t seed) : lab_(lab), random_(seed) {}

    /// Begins one more fault, and ends the oldest when there are too many.
    Result<void> blow() {
        Fault fault = draw();
        while (std::find(faults_.begin(), faults_.end(), fault) != faults_.end()) fault = draw();
        if (auto begun = lab_.ask(fault.words(true)); !begun) return begun;
        faults_.push_back(fault);
        std::this_thread::sleep_for(Milliseconds(random_() % pause_ms_max));
        return faults_.size() > faults_max ? end_oldest() : Result<void>{};
    }
    Result<void> end() {
        while (!faults_.empty())
            if (auto ended = end_oldest(); !ended) return ended;
        return {};
    }

private:
    Fault draw() {
        constexpr std::array networks{"fast", "slow"};
        const bool mute = random_() % 2 == 0;
        const auto host = fmt::format("c{}", random_() % 4);
        return {mute, host, networks[random_() % networks.size()]};
    }
    Result<void> end_oldest() {
        const Fault fault = faults_.front();
        faults_.pop_front();
        return lab_.ask(fault.words(false));
    }

    const OwnLab& lab_;
    std::mt19937_64 random_;
    std::deque<Fault> faults_;
};

} // namespace

Result<Soaked> soak(const OwnLab& lab, const std::vector<std::string>& job, std::uint64_t seed,
                    const std::function<void(const std::string&)>& on_progress) {
    const std::string end_file = lab.folder() + "/over";
    std::vector<std::string> words = job;
    words.push_back(end_file);
    auto running =
        std::async(std::launch::async, [&] { return run_contestant(words, lab.environment(), soak_seconds_max); });
    const auto has_ended = [&] { return running.wait_for(Milliseconds(0)) == std::future_status::ready; };
    Soaked soaked;
    Storm storm(lab, seed);
    Result<void> blown;
    while (soaked.cycles < soak_cycles && blown && !has_ended()) {
        on_progress(fmt::format("soak: cycle {} of {}", soaked.cycles + 1, soak_cycles));
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
    for (const auto& [name, count] : heard->results)
        (name.starts_with("wrong")      ? soaked.wrong
         : name.starts_with("messages") ? soaked.messages
                                        : soaked.failovers) += count;
    return soaked;
}

} // namespace kumi::bench
