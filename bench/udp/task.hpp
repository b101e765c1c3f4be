#pragma once

// One measurement of `kumi bench udp`: what is measured, of which contestant, on which network. These are the words of
// `kumi-bench node udp`.

#include "contestant/measure.hpp"
#include "contestant/work.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kumi::bench {

struct Task {
    std::string what;         // "latency.64", "loss.0.1", "encrypted.bulk"; the row is this and the network
    std::string who;          // "kumi", "limit" or a peer
    std::string network;      // "loopback" or "veth"
    std::string peers_folder; // where the peers' programs are

    std::vector<std::string> words() const { return {what, who, network, peers_folder}; }
    static std::optional<Task> from(std::span<const std::string> words) {
        if (words.size() != 4) return std::nullopt;
        return Task{words[0], words[1], words[2], words[3]};
    }

    std::string row() const { return "udp." + what + "." + network; }
    /// Whether the processor time of a stream is measured, and not how fast it is.
    bool is_processor_time() const { return what.ends_with(".cpu"); }
    bool is_encrypted() const { return what.starts_with(encrypted); }
    bool is_checked() const { return what.starts_with(checked); }
    /// Whether this measures `name`: plain, encrypted or checked.
    bool is(const char* name) const {
        const std::string bare = what.substr(is_encrypted() ? encrypted.size() : is_checked() ? checked.size() : 0);
        return bare == name || bare.starts_with(std::string(name) + ".");
    }

private:
    static constexpr std::string_view encrypted = "encrypted.";
    static constexpr std::string_view checked = "checked.";
};

/// How many units of a stream there are in a second, or the processor time of both ends for each: nanoseconds of a
/// message, where the unit is a million of them, or microseconds of a megabyte.
inline void report_stream(const Task& task, const Growth& bytes, double unit) {
    const double processor = bytes.metered_each * unit * (task.is("rate") ? 1e3 : 1e6);
    report(task.row().c_str(), task.is_processor_time() ? processor : bytes.per_second / unit);
}

} // namespace kumi::bench
