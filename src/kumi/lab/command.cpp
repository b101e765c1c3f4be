#include "kumi/lab/command.hpp"

#include "kumi/base/descriptor.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kumi::lab {
namespace {

constexpr int not_found = 127;

/// Only calls that a child of a process with threads may make.
[[noreturn]] void become(char* const* arguments, const char* elsewhere, int said) {
    ::dup2(said, STDOUT_FILENO);
    ::dup2(said, STDERR_FILENO);
    ::execvp(arguments[0], arguments);
    ::execv(elsewhere, arguments);
    ::_exit(not_found);
}

std::string read_to_end(int from) {
    std::string text;
    std::array<char, 1024> buffer;
    while (true) {
        const ssize_t got = ::read(from, buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return text;
        text.append(buffer.data(), static_cast<std::size_t>(got));
    }
}

/// Which Debian package has the command.
std::string package_of(const std::string& command) {
    if (command == "ip" || command == "tc") return "iproute2";
    if (command == "nft") return "nftables";
    return command;
}

} // namespace

Result<void> run_command(const std::vector<std::string>& words) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return system_error(errno, fmt::format("starting {} (pipe)", words.front()));
    base::Descriptor in(ends[0]);
    base::Descriptor out(ends[1]);
    const std::string elsewhere = "/usr/sbin/" + words.front(); // which is not on an ordinary user's PATH
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const pid_t pid = ::fork();
    if (pid < 0) return system_error(errno, fmt::format("starting {} (fork)", words.front()));
    if (pid == 0) become(arguments.data(), elsewhere.c_str(), out.get());
    out.reset();
    const std::string said = read_to_end(in.get());
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (status == 0) return {};
    if (WIFEXITED(status) && WEXITSTATUS(status) == not_found)
        return error("{}: not found; install {}", words.front(), package_of(words.front()));
    return error("{}: {}", fmt::join(words, " "), said.empty() ? "failed" : said.substr(0, said.find('\n')));
}

} // namespace kumi::lab
