#include "kumi/launch/host/pmi/pmi_servers.hpp"

#include "kumi/base/clock.hpp"
#include "kumi/base/system/machine.hpp"
#include "kumi/launch/host/pmi/over_kumi.hpp"
#include "kumi/launch/host/pmi/pmi_frames.hpp"
#include "kumi/launch/host/processes/environment.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kumi::launch::host {
namespace {

using boot::Kind;

constexpr std::chrono::seconds pmix_start_max{10}; // of a loaded machine

/// Where the PMIx server's program is: beside the other programs that the command starts.
std::string pmix_program() {
    std::error_code wrong;
    const auto own = std::filesystem::read_symlink("/proc/self/exe", wrong);
    return own.parent_path().parent_path() / "libexec/kumi/kumi-pmix";
}

/// The texts, each ended by a zero, that a body consists of.
std::vector<std::string> texts_in(Bytes body) {
    std::vector<std::string> texts;
    std::string_view left = text_of(body);
    for (std::size_t end = 0; (end = left.find('\0')) != std::string_view::npos; left.remove_prefix(end + 1))
        texts.emplace_back(left.substr(0, end));
    return texts;
}

/// Unless the user has set them. Answers the names of those that were added, each ended by a comma.
std::string add_defaults(std::vector<std::string>& variables, const std::vector<std::string>& defaults) {
    std::string names;
    for (const std::string& one : defaults) {
        if (std::ranges::any_of(variables, [&](const auto& set) { return name_of(set) == name_of(one); })) continue;
        variables.push_back(one);
        names += fmt::format("{},", name_of(one));
    }
    return names;
}

} // namespace

bool has_pmix_server() { return ::access(pmix_program().c_str(), X_OK) == 0; }

PmiServers::PmiServers(JobMap map, Poller& poller, Children& children, Listener& listener)
    : map_(std::move(map)), poller_(poller), children_(children), listener_(listener), server_(map_),
      processes_(map_.here().count) {}

// ---- starting

Result<void> PmiServers::start(const std::string& program, MpiNeed need) {
    if (map_.mpi_over_kumi && need == MpiNeed::pmi)
        return error("{} uses MPICH, which runs over its own networks; --mpi kumi is for Open MPI", program);
    if (need == MpiNeed::none || need == MpiNeed::pmi) return {};
    if (map_.mpi_over_kumi) {
        auto variables = variables_for_mpi_over_kumi();
        if (!variables) return variables.error();
        over_kumi_ = *std::move(variables);
    }
    if (has_pmix_server()) {
        auto started = start_pmix(pmix_program());
        if (started || need == MpiNeed::pmix) return started;
        stop(); // it has said why; the program may well do without
        return {};
    }
    if (need == MpiNeed::maybe) return {};
    return error("{} uses Open MPI, which asks its launcher through PMIx, and this Kumi was built without it: install "
                 "libpmix-dev and build again, or start the program with mpirun",
                 program);
}

Result<void> PmiServers::start_pmix(const std::string& program) {
    auto folder = children_.own_folder();
    if (!folder) return folder.error();
    folder_ = *folder;
    int sockets[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        return system_error(errno, "making a socket for the PMIx server");
    pmix_socket_.reset(sockets[0]);
    base::Descriptor theirs(sockets[1]);
    const base::Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    std::vector<std::string> words{folder_, map_.name, std::to_string(map_.own)};
    for (const Part& part : map_.parts) words.push_back(fmt::format("{}:{}", part.host, part.count));
    const auto pid = children_.start({.program = program,
                                      .arguments = std::move(words),
                                      .environment = without_other_launchers(own_environment()),
                                      .binding = {},
                                      .descriptors = {nothing.get(), STDERR_FILENO, STDERR_FILENO, theirs.get()},
                                      .is_leashed = false});
    if (!pid) return pid.error();
    pmix_ = *pid;
    theirs.reset(); // so that its end is seen
    return await_pmix();
}

Result<void> PmiServers::await_pmix() {
    for (const Instant deadline = now() + pmix_start_max; !pmix_variables_;) {
        pollfd ready{pmix_socket_.get(), POLLIN, 0};
        if (::poll(&ready, 1, milliseconds_until(deadline)) == 0)
            return error("the PMIx server, which MPI programs ask, was not ready within {} s", pmix_start_max.count());
        const bool open = pmix_frames_.read_from(pmix_socket_.get());
        while (true) {
            auto frame = pmix_frames_.next();
            if (!frame || !*frame) break;
            on_pmix_frame(std::move(**frame));
        }
        if (!open && !pmix_variables_) return error("the PMIx server, which MPI programs ask, did not start");
    }
    poller_.watch(pmix_socket_.get(), {Source::pmix, 0}, EPOLLIN);
    return {};
}

Result<base::Descriptor> PmiServers::open_slot(std::uint32_t slot, int number, std::vector<std::string>& variables) {
    int sockets[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        return system_error(errno, "making a socket for a node");
    processes_[slot].socket.reset(sockets[0]);
    base::Descriptor theirs(sockets[1]);
    poller_.watch(sockets[0], {Source::pmi, slot}, EPOLLIN);

    const std::uint32_t node = map_.here().first + slot;
    variables =
        with(std::move(variables), {fmt::format("PMI_FD={}", number), fmt::format("PMI_RANK={}", node),
                                    fmt::format("PMI_SIZE={}", map_.nodes()), fmt::format("MPI_LOCALRANKID={}", slot),
                                    fmt::format("MPI_LOCALNRANKS={}", map_.here().count)});
    if (!pmix_variables_) return theirs;
    variables = with(std::move(variables), *pmix_variables_);
    variables = with(std::move(variables), {fmt::format("PMIX_RANK={}", node)});
    // Without the first of these, Open MPI takes each process for a job of its own.
    const std::vector<std::string> needed{"OMPI_MCA_schizo=ompi", "OMPI_MCA_ess=pmi",
                                          "OMPI_MCA_orte_externally_bound=1"};
    std::vector<std::string> defaults{"OMPI_MCA_hwloc_base_binding_policy=none",
                                      // so that a killed job leaves nothing behind
                                      fmt::format("OMPI_MCA_btl_vader_backing_directory={}", folder_)};
    // Processes that wait for each other on one core.
    if (map_.here().count > base::cores_allowed()) {
        defaults.push_back("OMPI_MCA_mpi_yield_when_idle=1");
        defaults.push_back("OMPI_MCA_mpi_oversubscribe=1");
    }
    defaults.insert(defaults.end(), over_kumi_.begin(), over_kumi_.end());
    const std::string names = add_defaults(variables, defaults);
    variables = with(std::move(variables), needed);
    variables = with(
        std::move(variables),
        {fmt::format("{}={}OMPI_MCA_schizo,OMPI_MCA_ess,OMPI_MCA_orte_externally_bound", mpi_names_variable, names)});
    return theirs;
}

// ---- what they ask

void PmiServers::on_event(Source source, std::uint32_t slot) {
    if (source == Source::pmi) on_pmi(slot);
    if (source == Source::pmix) on_pmix();
}

void PmiServers::on_pmi(std::uint32_t slot) {
    Process& process = processes_[slot];
    std::array<std::byte, 16384> buffer;
    while (process.socket) {
        const ssize_t got = ::recv(process.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (got <= 0) return cut_off(slot);
        process.lines.take(Bytes(buffer).first(static_cast<std::size_t>(got)));
        while (process.socket) {
            auto line = process.lines.next_text();
            if (!line) {
                const Bytes why = bytes_of(std::string_view(line.error().text()));
                tell(slot, {Kind::failed, {why.begin(), why.end()}, {}});
                return cut_off(slot);
            }
            if (!*line) break;
            auto answer = server_.on_line(slot, **line);
            send_lines(answer.lines);
            if (answer.frame) tell(slot, std::move(*answer.frame));
        }
    }
}

/// A process asks, and reads the answer before it asks again: what does not fit in its socket, it has not read.
void PmiServers::send_lines(const std::vector<PmiServer::Line>& lines) {
    for (const PmiServer::Line& line : lines) {
        const base::Descriptor& socket = processes_[line.slot].socket;
        if (!socket) continue;
        const ssize_t sent = ::send(socket.get(), line.text.data(), line.text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent != static_cast<ssize_t>(line.text.size())) cut_off(line.slot);
    }
}

void PmiServers::cut_off(std::uint32_t slot) {
    base::Descriptor& socket = processes_[slot].socket;
    if (socket) poller_.forget(socket.get());
    socket.reset();
}

void PmiServers::on_pmix() {
    if (!pmix_socket_) return;
    const bool open = pmix_frames_.read_from(pmix_socket_.get());
    bool sound = true;
    while (sound) {
        auto frame = pmix_frames_.next();
        sound = frame.has_value();
        if (!sound || !*frame) break;
        sound = on_pmix_frame(std::move(**frame));
    }
    if (open && sound) return send_pmix_letters();
    poller_.forget(pmix_socket_.get());
    pmix_socket_.reset();
    if (open) tell_failed("what the PMIx server of this host says is no frame of this version of Kumi");
    children_.signal(pmix_, SIGKILL); // if it has not ended, which on_child_end() tells
}

void PmiServers::tell_failed(const std::string& why) {
    const Bytes text = bytes_of(std::string_view(why));
    tell(0, {Kind::failed, {text.begin(), text.end()}, {}});
}

bool PmiServers::on_pmix_frame(boot::Frame frame) {
    const Part& here = map_.here();
    switch (frame.kind) {
    case Kind::environment: pmix_variables_ = texts_in(frame.body); return true;
    case Kind::fence:
    case Kind::fetch:
    case Kind::fetched: listener_.on_frame(here.first, std::move(frame)); return true;
    case Kind::mpi_joined:
    case Kind::mpi_left:
    case Kind::mpi_aborted:
    case Kind::output: break;
    default: return false;
    }
    std::uint32_t node = 0;
    if (!read_value(frame.body, node) || node - here.first >= here.count) return false;
    frame.body.erase(frame.body.begin(), frame.body.begin() + sizeof node);
    if (frame.kind != Kind::output) listener_.on_frame(node, std::move(frame));
    else if (!frame.body.empty()) listener_.on_output(node, Stream::err, text_of(frame.body));
    return true;
}

// ---- what they are answered

void PmiServers::on_answer(const SharedFrame& frame) {
    boot::FrameHeader header{};
    if (!read_value(*frame, header)) return;
    const Bytes body = Bytes(*frame).subspan(sizeof header);
    if (header.kind == Kind::fenced)
        if (const auto fence = decode_fence(body); fence && fence->key == PmiServer::fence_key)
            return send_lines(server_.on_fenced(fence->content));
    if (!pmix_socket_) return;
    pmix_letters_.add(frame);
    send_pmix_letters();
}

void PmiServers::send_pmix_letters() {
    const bool wants_room = pmix_letters_.send(pmix_socket_.get());
    poller_.watch(pmix_socket_.get(), {Source::pmix, 0}, wants_room ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

// ---- ends

void PmiServers::read_last_words(std::uint32_t slot) {
    on_pmi(slot);
    on_pmix();
}

void PmiServers::on_child_end(pid_t pid, int status) {
    if (pid != pmix_ || is_stopped_) return;
    const std::string how = WIFSIGNALED(status) ? fmt::format("was killed by signal {} ({})", WTERMSIG(status),
                                                              ::strsignal(WTERMSIG(status)))
                                                : fmt::format("ended with code {}", WEXITSTATUS(status));
    tell_failed(fmt::format("the PMIx server of this host {}", how));
}

void PmiServers::stop() {
    is_stopped_ = true;
    if (pmix_socket_) poller_.forget(pmix_socket_.get());
    pmix_socket_.reset();
    children_.signal(pmix_, SIGKILL); // its files are in the folder of the Children
}

} // namespace kumi::launch::host
