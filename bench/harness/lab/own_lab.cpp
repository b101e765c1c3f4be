#include "harness/lab/own_lab.hpp"

#include "harness/command.hpp"

#include "kumi/lab/client.hpp"
#include "kumi/lab/keeper/close_others.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kumi::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* lab_name = "bench";
constexpr std::chrono::seconds ask_seconds_max{10};

/// The whole life of the lab: brings it up, reports, waits until `lifeline` is closed at the other end, takes it down.
/// Runs in a process that a Ctrl-C at the terminal does not reach.
[[noreturn]] void watch_over(const std::string& folder, const std::string& cluster_file, const std::string& kumi_path,
                             int report, int lifeline) {
    ::setsid();
    ::signal(SIGPIPE, SIG_IGN); // the process that reads the report may be gone
    lab::close_others(report, lifeline);
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, stream);
    ::setenv("XDG_RUNTIME_DIR", folder.c_str(), 1);
    const auto up = lab::up({.name = lab_name,
                             .cluster_file = cluster_file,
                             .shared = {folder, fs::path(kumi_path).parent_path().parent_path()}});
    const std::string said = up ? "" : up.error().text();
    if (::write(report, said.data(), said.size()) < 0) {
    }
    ::close(report);
    char byte;
    while (::read(lifeline, &byte, 1) < 0 && errno == EINTR) {
    }
    if (up) (void)lab::down(lab_name);
    std::error_code ignored;
    fs::remove_all(folder, ignored);
    ::_exit(0);
}

} // namespace

Result<OwnLab> OwnLab::up(const std::string& cluster_file, const std::string& kumi_path) {
    std::string folder = fs::temp_directory_path() / "kumi-bench-XXXXXX";
    if (::mkdtemp(folder.data()) == nullptr) return system_error(errno, "making a folder for a lab");
    OwnLab lab(std::move(folder), kumi_path);
    if (auto written = lab.write_agent(); !written) return written.error();
    if (auto started = lab.start(cluster_file); !started) return started.error();
    return lab;
}

OwnLab::OwnLab(OwnLab&& other) noexcept
    : folder_(std::exchange(other.folder_, "")), kumi_path_(std::move(other.kumi_path_)),
      lifeline_(std::move(other.lifeline_)), watcher_(std::exchange(other.watcher_, -1)) {}

OwnLab::~OwnLab() {
    if (folder_.empty()) return;
    lifeline_.reset();
    if (watcher_ > 0) ::waitpid(watcher_, nullptr, 0);
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
}

Result<void> OwnLab::write_agent() const {
    // A launcher gives options, a host, and words for a shell of that host.
    std::ofstream(agent()) << "#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nhost=$1; shift\nexec '"
                           << kumi_path_ << "' lab exec \"$host\" \"$*\"\n";
    if (::chmod(agent().c_str(), 0755) != 0) return system_error(errno, "writing " + agent());
    return {};
}

Result<void> OwnLab::start(const std::string& cluster_file) {
    int report[2], lifeline[2];
    if (::pipe2(report, O_CLOEXEC) != 0) return system_error(errno, "starting a lab (pipe)");
    base::Descriptor told(report[0]), teller(report[1]);
    if (::pipe2(lifeline, O_CLOEXEC) != 0) return system_error(errno, "starting a lab (pipe)");
    base::Descriptor held(lifeline[0]);
    lifeline_ = base::Descriptor(lifeline[1]);
    watcher_ = ::fork();
    if (watcher_ < 0) return system_error(errno, "starting a lab (fork)");
    if (watcher_ == 0) watch_over(folder_, cluster_file, kumi_path_, teller.get(), held.get());
    teller.reset();
    std::string why_not;
    char buffer[512];
    for (ssize_t got; (got = ::read(told.get(), buffer, sizeof buffer)) > 0;)
        why_not.append(buffer, static_cast<std::size_t>(got));
    if (!why_not.empty()) return Error(why_not);
    return {};
}

std::vector<std::string> OwnLab::environment() const {
    return {"XDG_RUNTIME_DIR=" + folder_, std::string("KUMI_LAB=") + lab_name};
}

std::vector<std::string> OwnLab::on(const std::string& host, const std::vector<std::string>& words) const {
    std::vector<std::string> all{kumi_path_, "lab", "exec", host};
    all.insert(all.end(), words.begin(), words.end());
    return all;
}

Result<void> OwnLab::ask(std::vector<std::string> words) const {
    words.insert(words.begin(), {kumi_path_, "lab"});
    auto said = output_of(words, environment(), ask_seconds_max);
    if (!said) return said.error();
    return {};
}

} // namespace kumi::bench
