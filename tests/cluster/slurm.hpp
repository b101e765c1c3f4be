#pragma once

// A Slurm of one test: its own munged, slurmctld and two slurmd, in a folder of its own, on ports of its own. It is
// gone, with all its processes, at the end.

#include "cluster/command.hpp"

#include <arpa/inet.h>
#include <memory>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/socket.h>

namespace kumi::cluster_test {

/// TCP ports that nobody has at the moment.
inline std::vector<int> free_tcp_ports(std::size_t count) {
    std::vector<int> sockets, ports;
    for (std::size_t i = 0; i < count; ++i) {
        sockets.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_ANY);
        socklen_t bytes = sizeof address;
        EXPECT_EQ(::bind(sockets.back(), reinterpret_cast<sockaddr*>(&address), bytes), 0);
        EXPECT_EQ(::getsockname(sockets.back(), reinterpret_cast<sockaddr*>(&address), &bytes), 0);
        ports.push_back(ntohs(address.sin_port));
    }
    for (const int socket : sockets) ::close(socket);
    return ports;
}

class Slurm {
public:
    /// What is missing of it; empty when nothing is.
    static std::string missing() {
        for (const char* program : {"mungekey", "munged", "slurmctld", "slurmd", "srun", "sinfo"})
            if (!is_installed(path + program) && !is_installed(program)) return program;
        return "";
    }

    Slurm() {
        for (const char* name : {"run", "log", "state", "spool/n1", "spool/n2", "tmp/n1", "tmp/n2"})
            std::filesystem::create_directories(folder_.path() + "/" + name);
        std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755)); // munged insists
        write_configuration();
        start_munged();
        daemons_.push_back(start({path + "slurmctld", "-D", "-c"}));
        for (const char* host : {"n1", "n2"}) daemons_.push_back(start({path + "slurmd", "-D", "-N", host}));
        const Command idle{.words = {"sinfo", "-h", "-t", "idle", "-o", "%D"}, .environment = environment()};
        is_up_ = comes_true([&] { return run(idle).out == "2\n"; }, 20s);
        EXPECT_TRUE(is_up_) << "Slurm does not come up:\n" << file_text(folder_.path() + "/log/slurmctld.log");
    }

    bool is_up() const { return is_up_; }

    ~Slurm() {
        for (auto daemon = daemons_.rbegin(); daemon != daemons_.rend(); ++daemon) {
            (*daemon)->signal(SIGTERM);
            (*daemon)->finish();
        }
    }

    /// srun WORDS..., on both hosts.
    Outcome srun(const Words& words, Words more_environment = {}) const {
        Words all{"srun", "--quiet", "-N2", "-n4"};
        all.insert(all.end(), words.begin(), words.end());
        for (const std::string& variable : environment()) more_environment.push_back(variable);
        return run({.words = all, .environment = more_environment});
    }

private:
    static inline const std::string path = "/usr/sbin/";

    Words environment() const { return {"SLURM_CONF=" + folder_.path() + "/slurm.conf"}; }
    /// A daemon that ends with the test, also when the test is killed.
    std::unique_ptr<Running> start(const Words& words) const {
        Words all{"setpriv", "--pdeathsig", "KILL"};
        all.insert(all.end(), words.begin(), words.end());
        return std::make_unique<Running>(Command{.words = all, .environment = environment()});
    }

    void start_munged() {
        const std::string here = folder_.path();
        EXPECT_EQ(run({.words = {path + "mungekey", "-c", "-k", here + "/munge.key"}}).code, 0);
        daemons_.push_back(start({path + "munged", "-F", "--force", "-S", here + "/run/munge.sock",
                                  "--key-file=" + here + "/munge.key", "--log-file=" + here + "/log/munged.log",
                                  "--pid-file=" + here + "/run/munged.pid", "--seed-file=" + here + "/run/seed"}));
        EXPECT_TRUE(comes_true([&] { return std::filesystem::exists(here + "/run/munge.sock"); }, 10s));
    }

    void write_configuration() const {
        const auto ports = free_tcp_ports(3);
        const std::string here = folder_.path();
        const passwd* const user = ::getpwuid(::geteuid());
        const std::string name = user == nullptr ? "root" : user->pw_name;
        char host[256] = "localhost";
        ::gethostname(host, sizeof host - 1);
        std::string text =
            "ClusterName=kumi\nAuthType=auth/munge\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n"
            "JobAcctGatherType=jobacct_gather/none\nSelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\n"
            "MpiDefault=none\nReturnToService=2\nSlurmdParameters=config_overrides\n";
        text += "SlurmctldHost=" + std::string(host) + "(127.0.0.1)\nSlurmctldPort=" + std::to_string(ports[0]) + "\n";
        text += "SlurmUser=" + name + "\nSlurmdUser=" + name + "\nAuthInfo=socket=" + here + "/run/munge.sock\n";
        text +=
            "StateSaveLocation=" + here + "/state\nSlurmdSpoolDir=" + here + "/spool/%n\nTmpFS=" + here + "/tmp/%n\n";
        text += "SlurmctldPidFile=" + here + "/run/slurmctld.pid\nSlurmdPidFile=" + here + "/run/slurmd-%n.pid\n";
        text += "SlurmctldLogFile=" + here + "/log/slurmctld.log\nSlurmdLogFile=" + here + "/log/slurmd-%n.log\n";
        for (const int number : {1, 2})
            text += "NodeName=n" + std::to_string(number) + " NodeHostname=n" + std::to_string(number) +
                    " NodeAddr=127.0.0.1 Port=" + std::to_string(ports[static_cast<std::size_t>(number)]) +
                    " CPUs=2 State=UNKNOWN\n";
        folder_.write("slurm.conf", text + "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n",
                      false);
        folder_.write("cgroup.conf", "CgroupPlugin=cgroup/v1\n", false); // none is used, and looking for one may fail
    }

    Folder folder_;
    std::vector<std::unique_ptr<Running>> daemons_;
    bool is_up_ = false;
};

} // namespace kumi::cluster_test
