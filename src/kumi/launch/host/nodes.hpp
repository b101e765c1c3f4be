#pragma once

#include "kumi/base/system/descriptor.hpp"
#include "kumi/launch/host/host.hpp"
#include "kumi/launch/host/letters.hpp"
#include "kumi/launch/host/pmi/pmi_servers.hpp"
#include "kumi/launch/host/processes/binding.hpp"
#include "kumi/launch/host/processes/children.hpp"
#include "kumi/launch/host/sharing.hpp"

#include <deque>
#include <optional>
#include <string>
#include <sys/ioctl.h>
#include <vector>

namespace kumi::launch::host {

struct NodesOptions {
    std::uint32_t first = 0; // the number in the job of the first node; the others follow
    std::uint32_t count = 1;
    std::uint32_t nodes = 1; // of the whole job
    std::string program;     // a path
    std::vector<std::string> arguments;
    std::vector<std::string> environment;
    bool bind = true;                // a core for each node, where enough are free
    std::optional<winsize> terminal; // size of the terminal that shows the output; none: the output goes elsewhere
    base::Descriptor input;          // standard input of node 0, if that is here; none: empty
    base::Descriptor cluster;        // a file with the cluster file's text, if nodes shall not look for the file itself
    std::optional<JobMap> mpi;       // for MPI processes; none: they get no server
};

/// The nodes of a job that run on this host: starts them, serves their boot sockets, reads what they print.
class Nodes final : public Host {
public:
    /// Requires that all arguments but the options outlive it.
    Nodes(NodesOptions options, Poller& poller, Children& children, Listener& listener);
    Nodes(const Nodes&) = delete;
    Nodes& operator=(const Nodes&) = delete;

    /// Starts all nodes. After an error some may run. Waits for the PMIx server, if the program may need one.
    Result<void> start();

    void send(std::uint32_t node, const SharedFrame& frame) override;
    void signal(int number) override;
    void hold_output(bool hold) override;
    void on_event(Source source, std::uint32_t slot) override;
    void on_child_end(pid_t pid, int status) override;
    bool is_over() const override { return ended_count_ == options_.count; }

    /// Whether more output may come.
    bool is_output_open() const;
    /// Reads what nodes that have ended have printed, without waiting for more.
    void read_rest();

private:
    struct NodeProcess {
        pid_t pid = -1;
        bool ended = false;
        base::Descriptor boot;
        boot::FrameReader frames;
        Letters letters;
        bool wants_room = false; // to send them
        base::Descriptor out;
        base::Descriptor err;
        base::Descriptor core_claim; // until the node ends
    };

    /// `core`: the node's, whose claim it takes; null: the system places the node.
    Result<void> start_node(std::uint32_t slot, BoundCore* core);
    void on_boot(std::uint32_t slot);
    void on_output(std::uint32_t slot, Stream stream);
    void say_failed(std::uint32_t slot, const std::string& why);
    void on_share(std::uint32_t slot, base::Descriptor descriptor);
    void post(std::uint32_t slot, SharedFrame frame, std::shared_ptr<base::Descriptor> descriptor = nullptr);
    void send_letters(std::uint32_t slot);
    void want_room(std::uint32_t slot, bool wanted);

    NodesOptions options_;
    Poller& poller_;
    Children& children_;
    Listener& listener_;
    Sharing sharing_;
    std::optional<PmiServers> pmi_;
    std::deque<NodeProcess> nodes_; // by slot
    std::uint32_t ended_count_ = 0;
    bool held_ = false;
};

} // namespace kumi::launch::host
