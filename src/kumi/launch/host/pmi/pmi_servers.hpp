#pragma once

#include "kumi/base/system/descriptor.hpp"
#include "kumi/launch/host/host.hpp"
#include "kumi/launch/host/job_map.hpp"
#include "kumi/launch/host/letters.hpp"
#include "kumi/launch/host/pmi/pmi_server.hpp"
#include "kumi/launch/host/pmi/program.hpp"
#include "kumi/launch/host/processes/children.hpp"

#include <optional>
#include <string>
#include <vector>

namespace kumi::launch::host {

/// What the MPI processes of one host ask their launcher: PMI-1 over a socket for each (PmiServer), and PMIx, which a
/// process of its own serves (libexec/kumi/kumi-pmix, launch/pmix), so that no other program loads libpmix. Tells the
/// listener by frames in the processes' names.
class PmiServers {
public:
    /// Requires that all arguments but the map outlive it.
    PmiServers(JobMap map, Poller& poller, Children& children, Listener& listener);
    PmiServers(const PmiServers&) = delete;
    PmiServers& operator=(const PmiServers&) = delete;

    /// Starts the PMIx server, if `program`, a path, may need one. Waits until it is ready, which takes some 20 ms; for
    /// 10 s at most.
    Result<void> start(const std::string& program, MpiNeed need);

    /// A socket for the process in `slot`, which will find it under `number`. Adds to its variables how it finds the
    /// servers.
    Result<base::Descriptor> open_slot(std::uint32_t slot, int number, std::vector<std::string>& variables);

    void on_event(Source source, std::uint32_t slot);
    /// A frame from `kumi run`: fenced, fetch or fetched.
    void on_answer(const SharedFrame& frame);
    void on_child_end(pid_t pid, int status);
    /// Takes what the process in `slot` has said before it ended.
    void read_last_words(std::uint32_t slot);
    /// All processes have ended.
    void stop();

private:
    struct Process {
        base::Descriptor socket;
        boot::PmiLineReader lines;
    };

    Result<void> start_pmix(const std::string& program);
    Result<void> await_pmix();
    void on_pmi(std::uint32_t slot);
    void on_pmix();
    /// False: the frame is invalid.
    bool on_pmix_frame(boot::Frame frame);
    void send_lines(const std::vector<PmiServer::Line>& lines);
    void send_pmix_letters();
    void cut_off(std::uint32_t slot);
    void tell_failed(const std::string& why);
    void tell(std::uint32_t slot, boot::Frame frame) { listener_.on_frame(map_.here().first + slot, std::move(frame)); }

    const JobMap map_;
    Poller& poller_;
    Children& children_;
    Listener& listener_;
    PmiServer server_;
    std::vector<Process> processes_; // by slot

    // The PMIx server's process, if there is one.
    pid_t pmix_ = -1;
    base::Descriptor pmix_socket_;
    boot::FrameReader pmix_frames_;
    Letters pmix_letters_;
    std::optional<std::vector<std::string>> pmix_variables_; // once it is ready
    std::string folder_;                                     // for files of its own and of MPI
    std::vector<std::string> over_kumi_; // variables, if Open MPI is to run over Kumi
    bool is_stopped_ = false;
};

/// Whether the PMIx server's program is installed with this one.
bool has_pmix_server();

} // namespace kumi::launch::host
