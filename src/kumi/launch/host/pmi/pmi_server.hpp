#pragma once

// PMI-1 for the processes of one host (boot/store/pmi_line.hpp has the protocol): what MPICH and its relatives ask
// their launcher. Pure: lines in, lines out. What a process puts is sent to the other hosts by a fence when all
// processes of this host have come to a barrier; so it can be got after that, which is all that PMI-1 promises.

#include "kumi/base/data/bitmap.hpp"
#include "kumi/boot/store/pmi_line.hpp"
#include "kumi/boot/wire.hpp"
#include "kumi/launch/host/job_map.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kumi::launch::host {

class PmiServer {
public:
    explicit PmiServer(const JobMap& map);

    /// A line for the process in `slot`, with its newline.
    struct Line {
        std::uint32_t slot;
        std::string text;
    };
    struct Answer {
        std::vector<Line> lines;
        std::optional<boot::Frame> frame; // for `kumi run`, in the name of the process that has spoken
    };
    /// Takes a line, without its newline.
    Answer on_line(std::uint32_t slot, const std::string& text);

    /// All hosts have come to the barrier; `contents` is what their processes have put.
    std::vector<Line> on_fenced(Bytes contents);

    /// The key of its fences.
    static constexpr const char* fence_key = "1*";

private:
    Answer on_command(std::uint32_t slot, const boot::PmiLine& line);
    std::string on_put(const boot::PmiLine& line);
    std::string on_get(const boot::PmiLine& line) const;
    std::optional<boot::Frame> on_barrier(std::uint32_t slot);

    std::uint32_t count_;
    std::uint32_t nodes_;
    std::string name_;
    std::map<std::string, std::string, std::less<>> values_;
    std::string put_; // since the last barrier: a line for each key
    base::Bitmap in_barrier_;
    base::Bitmap spawning_; // between the first and the last line of a spawn
};

/// Which node runs on which host, as MPICH reads it: "(vector,(0,2,4))" are two hosts with four nodes each, beginning
/// with host 0.
std::string process_mapping(const std::vector<Part>& parts);

} // namespace kumi::launch::host
