#pragma once

#include "kumi/base/function_ref.hpp"
#include "kumi/device/udp/options.hpp"
#include "kumi/pm/device.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kumi::device::udp {

/// Connects nodes over any IP network, with one UDP port for each node.
class UdpDevice final : public pm::Device {
public:
    explicit UdpDevice(Options options = {}) : options_(std::move(options)) {}

    std::string_view name() const noexcept override { return "udp"; }
    Result<std::unique_ptr<pm::Channel>> open(const pm::Opening& opening) override;

private:
    Options options_;
};

/// Opens a channel for all nodes in this process, one per address: for threads as nodes, or to be shared out by fork().
/// `before_open` is called before the socket of each node is made, and may enter a network namespace.
Result<std::vector<std::unique_ptr<pm::Channel>>> open_in_one_process(
    std::span<const std::string> addresses, const Options& options = {},
    base::FunctionRef<Result<void>(pm::Node)> before_open = [](pm::Node) { return Result<void>{}; });

/// Sets one option by its name: address, port, encrypt or check (yes or no), or buffer (a size such as 4M).
Result<void> set_option(Options& options, const std::string& name, const std::string& value);

/// The default options, changed by KUMI_UDP_ADDRESS, KUMI_UDP_PORT, KUMI_UDP_ENCRYPT and KUMI_UDP_CHECK (yes or no),
/// KUMI_UDP_BUFFER (a size such as 4M), KUMI_SILENCE (seconds) and KUMI_FAULT.
Result<Options> options_from_environment();

} // namespace kumi::device::udp
