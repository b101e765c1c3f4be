#pragma once

// One measurement of `kumi bench udp`: what is measured, of which contestant, on which network. These are the words of
// `kumi-bench node udp`.

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

} // namespace kumi::bench
