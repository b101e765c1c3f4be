#pragma once

#include "kumi/device/shmem/options.hpp"
#include "kumi/pm/device.hpp"

#include <memory>
#include <span>
#include <vector>

namespace kumi::device::shmem {

/// Connects the nodes of one host through shared memory, which is handed over as a descriptor.
class ShmemDevice final : public pm::Device {
public:
    explicit ShmemDevice(Options options = {}) : options_(options) {}

    std::string_view name() const noexcept override { return "shmem"; }
    Result<std::unique_ptr<pm::Channel>> open(const pm::Opening& opening) override;

private:
    Options options_;
};

/// Opens a channel for all nodes in this process, over one mapping: for threads as nodes, and for race detectors, which
/// see a race only at equal addresses. `wakers` has one per node, as in pm::Opening, or is empty.
Result<std::vector<std::unique_ptr<pm::Channel>>> open_in_one_process(pm::Node nodes, const Options& options = {},
                                                                      std::span<pm::Waker* const> wakers = {});

/// The default options, changed by KUMI_SHMEM_MEMORY, KUMI_SHMEM_EXPOSED (sizes such as 64M) and KUMI_SHMEM_FENCING
/// (reader or writer).
Result<Options> options_from_environment();

} // namespace kumi::device::shmem
