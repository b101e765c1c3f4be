#include "checks.hpp"

#include "kumi/base/net/interfaces.hpp"
#include "kumi/base/sync/memory_policy.hpp"
#include "kumi/base/system/descriptor.hpp"
#include "kumi/base/system/machine.hpp"
#include "kumi/device/udp/options.hpp"
#include "kumi/launch/host/pmi/over_kumi.hpp"
#include "kumi/launch/host/pmi/pmi_servers.hpp"
#include "kumi/launch/host/processes/process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/ranges.h>
#include <fstream>
#include <hwloc.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace kumi::tools {
namespace {

constexpr std::string_view machine = "machine";
constexpr std::string_view shared_memory = "shared memory";
constexpr std::string_view networks = "networks";
constexpr std::string_view libraries = "optional libraries and programs";

/// The largest socket buffer that a user may have, by the setting of that name.
std::size_t limit_of(const std::string& name) {
    std::ifstream file("/proc/sys/net/core/" + name);
    std::size_t bytes = 0;
    file >> bytes;
    return bytes;
}

// ---- machine

Finding examine_system() {
    utsname system{};
    ::uname(&system);
    return {machine, "system", State::good,
            fmt::format("{} {} on {}, host {}", system.sysname, system.release, system.machine, base::host_name())};
}

Finding examine_cores() {
    hwloc_topology_t topology = nullptr;
    hwloc_topology_init(&topology);
    hwloc_topology_load(topology);
    const int cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    const int threads = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    const int memories = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
    hwloc_topology_destroy(topology);
    const unsigned allowed = base::cores_allowed();
    Finding finding{machine, "cores", State::good,
                    fmt::format("{} cores, {} hardware threads, {} memory {}; this process may use {}", cores, threads,
                                memories, memories == 1 ? "node" : "nodes", allowed)};
    if (allowed == 1) {
        finding.state = State::could_be_better;
        finding.remedy =
            "with one core nodes can only take turns: check taskset, the container's cpuset, or ask for more";
    }
    return finding;
}

Finding examine_memory() {
    const std::uint64_t available = base::memory_available_bytes();
    Finding finding{machine, "memory", State::good, fmt::format("{} to be had", base::readable_bytes(available))};
    if (available < (std::uint64_t{512} << 20)) {
        finding.state = State::could_be_better;
        finding.remedy = "16 nodes take about 300 MiB of shared memory; lower it with KUMI_SHMEM_MEMORY=64M";
    }
    return finding;
}

Finding examine_limits() {
    rlimit files{}, processes{}, addresses{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    ::getrlimit(RLIMIT_NPROC, &processes);
    ::getrlimit(RLIMIT_AS, &addresses);
    const auto show = [](rlim_t limit) {
        return limit == RLIM_INFINITY ? std::string("no limit") : std::to_string(limit);
    };
    Finding finding{machine, "limits", State::good,
                    fmt::format("open files {}, processes {}", show(files.rlim_max), show(processes.rlim_cur))};
    if (addresses.rlim_cur != RLIM_INFINITY) {
        finding.state = State::could_be_better;
        finding.remedy = fmt::format("addresses are limited to {} (ulimit -v): shared memory may not fit",
                                     base::readable_bytes(addresses.rlim_cur));
    }
    return finding;
}

/// Tried in a child, which is gone afterwards.
Finding examine_user_namespaces() {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(::unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 ? 0 : 1);
    int status = 1;
    if (child > 0) ::waitpid(child, &status, 0);
    if (status == 0) return {machine, "user namespaces", State::good, "a user may make networks of his own"};
    return {machine, "user namespaces", State::could_be_better, "refused: no test networks without root",
            "sysctl kernel.unprivileged_userns_clone=1, or user.max_user_namespaces above 0"};
}

// ---- shared memory

Finding examine_memfd() {
    constexpr std::size_t bytes = 1 << 20;
    base::Descriptor descriptor(::memfd_create("kumi-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const bool works = descriptor && ::ftruncate(descriptor.get(), bytes) == 0 &&
                       ::fcntl(descriptor.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0 &&
                       ::fallocate(descriptor.get(), 0, 0, bytes) == 0;
    if (works)
        return {shared_memory, "memfd", State::good,
                "works: nodes of this host talk through memory, nothing in /dev/shm"};
    return {shared_memory, "memfd", State::bad, fmt::format("refused: {}", std::strerror(errno)),
            "Kumi needs memfd_create with sealing (Linux 3.17) and fallocate on it; a sandbox may forbid them"};
}

Finding examine_membarrier() {
    if (base::register_for_heavy_fence())
        return {shared_memory, "membarrier", State::good, "works: a sender pays nothing for receivers that may sleep"};
    return {shared_memory, "membarrier", State::could_be_better, "refused: every message costs one more fence",
            "Linux 4.16 or later; a container's seccomp profile may forbid membarrier(2)"};
}

// ---- networks

/// What a job on several hosts would start from when no cluster file describes them.
Finding examine_addresses() {
    const auto interfaces = base::running_interfaces();
    if (!interfaces)
        return {networks, "addresses", State::could_be_better, interfaces.error().text(), "jobs stay on this host"};
    std::vector<std::string> texts;
    for (const base::Interface& interface : *interfaces)
        texts.push_back(fmt::format("{} ({})", interface.text(), interface.name));
    if (texts.empty())
        return {networks, "addresses", State::good, "none that other hosts could use: jobs stay on this host"};
    return {networks, "addresses", State::good, fmt::format("{}", fmt::join(texts, ", "))};
}

/// A UDP socket on the loopback that sends to itself, or none.
base::Descriptor open_udp_to_itself() {
    base::Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const where = reinterpret_cast<sockaddr*>(&address);
    socklen_t bytes = sizeof address;
    const bool works = socket && ::bind(socket.get(), where, bytes) == 0 &&
                       ::getsockname(socket.get(), where, &bytes) == 0 && ::connect(socket.get(), where, bytes) == 0;
    return works ? std::move(socket) : base::Descriptor();
}

/// Three datagrams sent in one go, and received in one go.
Finding examine_bursts() {
    constexpr std::string_view what = "UDP bursts";
    const base::Descriptor socket = open_udp_to_itself();
    if (!socket)
        return {networks, std::string(what), State::could_be_better,
                fmt::format("no socket on 127.0.0.1: {}", std::strerror(errno)),
                "KUMI_DEVICE=udp needs one: `ip link set lo up`, or a sandbox forbids it"};
    constexpr int packet_bytes = 1200;
    constexpr std::size_t burst_bytes = 3 * packet_bytes;
    const int on = 1;
    std::array<char, burst_bytes> burst{};
    const bool joins = ::setsockopt(socket.get(), IPPROTO_UDP, UDP_GRO, &on, sizeof on) == 0;
    const bool cuts = ::setsockopt(socket.get(), IPPROTO_UDP, UDP_SEGMENT, &packet_bytes, sizeof packet_bytes) == 0 &&
                      ::send(socket.get(), burst.data(), burst.size(), 0) == static_cast<ssize_t>(burst.size());
    const ssize_t got = cuts ? ::recv(socket.get(), burst.data(), burst.size(), 0) : 0;
    const bool arrives_whole = joins && got == static_cast<ssize_t>(burst.size());
    Finding finding{networks, std::string(what), State::good,
                    fmt::format("send (UDP_SEGMENT) {}, receive (UDP_GRO) {}", cuts ? "works" : "refused",
                                arrives_whole ? "works"
                                : !joins      ? "refused"
                                : cuts        ? "takes packets one by one"
                                              : "not tried")};
    if (!cuts || !arrives_whole) {
        finding.state = State::could_be_better;
        finding.remedy = "Linux 5.0 or later has both; without them long messages over UDP cost more processor time";
    }
    return finding;
}

/// What a socket gets that asks as device/udp does.
std::size_t granted_buffer_bytes(int socket, int name, int force_name, std::size_t bytes_wanted) {
    const int wanted = static_cast<int>(bytes_wanted);
    if (::setsockopt(socket, SOL_SOCKET, force_name, &wanted, sizeof wanted) != 0)
        ::setsockopt(socket, SOL_SOCKET, name, &wanted, sizeof wanted);
    int granted = 0;
    socklen_t bytes = sizeof granted;
    ::getsockopt(socket, SOL_SOCKET, name, &granted, &bytes);
    return static_cast<std::size_t>(granted) / 2; // the system tells twice of what it grants
}

Finding examine_socket_buffers() {
    const base::Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const std::size_t receive_wanted = device::udp::Options{}.buffer_bytes,
                      send_wanted = device::udp::send_buffer_bytes;
    const std::size_t receive = granted_buffer_bytes(socket.get(), SO_RCVBUF, SO_RCVBUFFORCE, receive_wanted);
    const std::size_t send = granted_buffer_bytes(socket.get(), SO_SNDBUF, SO_SNDBUFFORCE, send_wanted);
    const std::string line =
        fmt::format("sysctl -w net.core.rmem_max={} net.core.wmem_max={}",
                    std::max(receive_wanted, limit_of("rmem_max")), std::max(send_wanted, limit_of("wmem_max")));
    Finding finding{networks, "UDP buffers", State::good,
                    fmt::format("receive {} of {} wanted, send {} of {} wanted", base::readable_bytes(receive),
                                base::readable_bytes(receive_wanted), base::readable_bytes(send),
                                base::readable_bytes(send_wanted))};
    if (receive < receive_wanted || send < send_wanted) {
        finding.state = State::could_be_better;
        finding.remedy = line + "; many senders at once are held back less then";
    } else if (limit_of("rmem_max") < receive_wanted || limit_of("wmem_max") < send_wanted) {
        finding.found +=
            fmt::format(", by privilege: others get up to {} and {}", base::readable_bytes(limit_of("rmem_max")),
                        base::readable_bytes(limit_of("wmem_max")));
        finding.remedy = line + " grants it to all";
    }
    return finding;
}

// ---- libraries

Finding examine_library(const std::string& name, std::initializer_list<const char*> files, const std::string& use,
                        const std::string& package) {
    for (const char* file : files) {
        void* library = ::dlopen(file, RTLD_LAZY | RTLD_LOCAL);
        if (library == nullptr) continue;
        ::dlclose(library);
        return {libraries, name, State::good, fmt::format("{} found; {}", file, use)};
    }
    return {libraries, name, State::could_be_better, fmt::format("not found; {}", use),
            fmt::format("apt-get install {}", package)};
}

Finding examine_program(const std::string& program, const std::string& use, const std::string& package) {
    if (launch::host::find_program(program)) return {libraries, program, State::good, fmt::format("found; {}", use)};
    return {libraries, program, State::could_be_better, fmt::format("not found; {}", use),
            fmt::format("apt-get install {}", package)};
}

/// Whether `kumi run` can be the launcher of MPI programs.
Finding examine_mpi() {
    const std::string name = "MPI programs";
    if (launch::host::has_pmix_server())
        return {libraries, name, State::good, "kumi run starts those of MPICH (PMI-1) and of Open MPI (PMIx)"};
    return {libraries, name, State::could_be_better, "kumi run starts those of MPICH, not those of Open MPI",
            "apt-get install libpmix-dev, and build Kumi again"};
}

/// Whether Open MPI can run over Kumi.
Finding examine_mpi_over_kumi() {
    const std::string name = "MPI over Kumi";
    if (const auto variables = launch::host::variables_for_mpi_over_kumi(); !variables)
        return {libraries, name, State::could_be_better, "the provider libkumi-fi.so was not built",
                "apt-get install libfabric-dev, and build Kumi again"};
    return {libraries, name, State::good, "kumi run --mpi kumi; under mpirun and srun: eval \"$(kumi env mpi)\""};
}

} // namespace

std::vector<Finding> examine_machine() {
    return {examine_system(),
            examine_cores(),
            examine_memory(),
            examine_limits(),
            examine_user_namespaces(),
            examine_memfd(),
            examine_membarrier(),
            examine_addresses(),
            examine_bursts(),
            examine_socket_buffers(),
            examine_program("ssh", "for kumi run --hosts and --cluster", "openssh-client"),
            examine_program("mpirun.openmpi", "for kumi bench --against openmpi", "openmpi-bin libopenmpi-dev"),
            examine_program("mpiexec.mpich", "for kumi bench --against mpich", "mpich libmpich-dev"),
            examine_library("libfabric", {"libfabric.so.1"}, "for Open MPI over Kumi", "libfabric-dev"),
            examine_library("PMIx", {"libpmix.so.2"}, "for programs under mpirun and srun --mpi=pmix", "libpmix-dev"),
            examine_mpi(),
            examine_mpi_over_kumi(),
            examine_library("OpenSSL", {"libcrypto.so.3"}, "for KUMI_UDP_ENCRYPT=yes", "libssl-dev")};
}

} // namespace kumi::tools
