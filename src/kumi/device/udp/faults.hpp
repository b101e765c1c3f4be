#pragma once

// Faults made on purpose, for users' own tests: KUMI_FAULT=udp.loss=0.01,udp.reorder=0.05.

#include "kumi/base/function_ref.hpp"
#include "kumi/base/result.hpp"
#include "kumi/base/bytes.hpp"
#include "kumi/device/udp/options.hpp"
#include "kumi/pm/node.hpp"

#include <random>
#include <string_view>
#include <vector>

namespace kumi::device::udp {

/// Parses "udp.loss=0.01,udp.duplicate=0.01,udp.reorder=0.05,udp.corrupt=0.001,udp.truncate=0.001,udp.largest=1472,
/// udp.burst=vanish,udp.seed=7". Ignores parts that do not start with "udp.".
Result<Faults> parse_faults(std::string_view text);

/// Decides what happens to each packet that is sent.
class FaultyWire {
public:
    using Send = base::FunctionRef<void(pm::Node, Bytes)>;

    explicit FaultyWire(const Faults& faults) : faults_(faults), random_(faults.seed) {}

    const Faults& faults() const noexcept { return faults_; }
    void seed(std::uint64_t seed) { random_.seed(seed); }
    /// Passes the packet to `send` once, twice, changed, later or never.
    void pass(pm::Node to, Bytes packet, Send send);
    /// Sends the packets that were held back to be overtaken.
    void flush(Send send);

private:
    bool happens(double chance) { return chance > 0 && std::uniform_real_distribution<double>()(random_) < chance; }

    struct Held {
        pm::Node to;
        std::vector<std::byte> packet;
        unsigned overtakers; // packets that are still to overtake it
    };

    Faults faults_;
    std::mt19937_64 random_;
    std::vector<Held> held_;
};

} // namespace kumi::device::udp
