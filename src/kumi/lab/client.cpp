#include "kumi/lab/client.hpp"

#include "kumi/base/clock.hpp"
#include "kumi/base/system/descriptor.hpp"
#include "kumi/cluster/file.hpp"
#include "kumi/lab/keeper/keeper.hpp"
#include "kumi/lab/keeper/request.hpp"
#include "kumi/lab/keeper/state.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace kumi::lab {
namespace {

constexpr std::chrono::seconds up_max{40};
constexpr std::chrono::seconds down_max{20};

/// All that comes until the other end is closed; false if that takes too long.
bool read_to_end(int from, std::string& text, Instant deadline) {
    char buffer[1024];
    while (true) {
        pollfd readable{from, POLLIN, 0};
        const int found = ::poll(&readable, 1, milliseconds_until(deadline));
        if (found == 0) return false;
        const ssize_t got = found < 0 ? -1 : ::read(from, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return true;
        text.append(buffer, static_cast<std::size_t>(got));
    }
}

/// Folders that hosts shall see although they lie in /tmp: this one, those told, that of the cluster file, which jobs
/// read, and where this command and its libraries are.
Result<std::vector<std::string>> folders_for_all(const UpOptions& options) {
    std::error_code wrong;
    std::vector<std::string> folders{
        std::filesystem::current_path(wrong),
        std::filesystem::absolute(options.cluster_file, wrong).lexically_normal().parent_path()};
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", wrong);
    folders.push_back(program.parent_path());
    if (program.parent_path().filename() == "bin") folders.push_back(program.parent_path().parent_path());
    for (const std::string& folder : options.shared) {
        folders.push_back(std::filesystem::canonical(folder, wrong));
        if (wrong || !std::filesystem::is_directory(folders.back(), wrong))
            return error("{}: there is no such folder to share", folder);
    }
    return folders;
}

Request request_for(const std::string& verb, const std::vector<std::string>& words) {
    std::error_code ignored;
    Request request;
    request.verb = verb;
    request.words = words;
    request.folder = std::filesystem::current_path(ignored);
    for (char** variable = environ; *variable != nullptr; ++variable) request.environment.emplace_back(*variable);
    return request;
}

/// Passes on signals until the answer is there.
Result<Answer> wait_for_answer(int connection, int signals) {
    while (true) {
        pollfd news[] = {{connection, POLLIN, 0}, {signals, POLLIN, 0}};
        if (::poll(news, 2, -1) < 0) continue;
        if (news[0].revents != 0) return receive_answer(connection);
        signalfd_siginfo signal;
        if (news[1].revents == 0 || ::read(signals, &signal, sizeof signal) != sizeof signal) continue;
        const auto number = static_cast<unsigned char>(signal.ssi_signo);
        ::send(connection, &number, 1, MSG_NOSIGNAL);
    }
}

} // namespace

Result<std::string> up(const UpOptions& options) {
    const auto cluster = cluster::read_cluster_file(options.cluster_file);
    if (!cluster) return cluster.error();
    auto plan = Plan::make(*cluster);
    if (!plan) return error("{}: {}", options.cluster_file, plan.error().text());
    auto folders = folders_for_all(options);
    if (!folders) return folders.error();
    auto state = StateFolder::claim(options.name);
    if (!state) return state.error();
    const KeeperOptions keeper{options.name, *std::move(plan), *std::move(folders)};
    const auto report = start_keeper(keeper, *std::move(state));
    if (!report) return report.error();
    std::string said;
    if (!read_to_end(report->get(), said, now() + up_max))
        return error("the lab was not up within {} s; it goes down again", up_max.count());
    if (said.empty()) return error("the lab's keeper was killed before the lab was up");
    if (said != lab_is_up) return Error(said);
    const std::string& first = keeper.plan.hosts.front().name;
    return fmt::format("The lab \"{}\" is up: {} hosts, {} networks. Try: kumi lab {}exec {} hostname\n", options.name,
                       keeper.plan.hosts.size(), keeper.plan.networks.size(),
                       options.name == "lab" ? "" : fmt::format("--name {} ", options.name), first);
}

int ask(const std::string& name, const std::string& verb, const std::vector<std::string>& words) {
    const auto connection = connect_to_keeper(name);
    if (!connection) return fail(connection.error());
    if (auto sent = send_request(connection->get(), request_for(verb, words)); !sent) return fail(sent.error());
    const auto answer = receive_answer(connection->get());
    if (!answer) return fail(answer.error());
    if (answer->code != 0) return fail(Error(answer->text)), answer->code;
    std::fputs(answer->text.c_str(), stdout);
    return std::fflush(stdout) == 0 ? 0 : fail(system_error(errno, "writing the answer"));
}

int exec(const std::string& name, const std::vector<std::string>& host_and_command) {
    const auto refuse = [](const Error& why) { return fail(why), not_reached; };
    sigset_t passed_on;
    sigemptyset(&passed_on);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH})
        sigaddset(&passed_on, number);
    ::sigprocmask(SIG_BLOCK, &passed_on, nullptr);
    const base::Descriptor signals(::signalfd(-1, &passed_on, SFD_CLOEXEC));
    if (!signals) return refuse(system_error(errno, "watching for signals"));
    const auto connection = connect_to_keeper(name);
    if (!connection) return refuse(connection.error());
    if (auto sent = send_request(connection->get(), request_for("exec", host_and_command)); !sent)
        return refuse(sent.error());
    const auto answer = wait_for_answer(connection->get(), signals.get());
    if (!answer)
        return refuse(
            error("{}: {} while {} ran", host_and_command.front(), answer.error().text(), host_and_command.at(1)));
    if (!answer->text.empty()) fail(Error(answer->text));
    return answer->code;
}

Result<void> down(const std::string& name) {
    const auto connection = connect_to_keeper(name);
    if (!connection) {
        const auto folder = state_folder(name);
        if (!folder || ::access(folder->c_str(), F_OK) != 0) return connection.error();
        auto leftover = StateFolder::claim(name); // its keeper was killed
        if (!leftover) return leftover.error();
        leftover->remove();
        return {};
    }
    if (auto sent = send_request(connection->get(), request_for("down", {})); !sent) return sent;
    std::string nothing;
    if (read_to_end(connection->get(), nothing, now() + down_max)) return {};
    std::string pid;
    std::getline(std::ifstream(*state_folder(name) + "/pid"), pid);
    return error("the lab's keeper does not answer; this ends everything: kill -9 {}", pid);
}

} // namespace kumi::lab
