#include "kumi/lab/network/command.hpp"

#include "kumi/base/system/descriptor.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <fmt/ranges.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kumi::lab {
namespace {

constexpr int not_found = 127;

/// Only calls that a child of a process with threads may make.
[[noreturn]] void become(char* const* arguments, const char* elsewhere, int input, int said) {
    if (input >= 0) ::dup2(input, STDIN_FILENO);
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
    if (command == "ip" || command == "tc" || command == "bridge") return "iproute2";
    if (command == "nft") return "nftables";
    return command;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// The line of its input that the command gave up on: ip and tc say "Command failed -:3".
std::string failed_line(const std::string& said, const std::string& lines) {
    constexpr std::string_view mark = "Command failed -:";
    const std::size_t at = said.find(mark);
    std::size_t number = 0;
    if (at == std::string::npos) return first_line(lines);
    std::from_chars(said.data() + at + mark.size(), said.data() + said.size(), number);
    std::size_t start = 0;
    while (number-- > 1 && start != std::string::npos && start < lines.size()) start = lines.find('\n', start) + 1;
    return first_line(lines.substr(std::min(start, lines.size())));
}

/// All that was said; an empty one for a command that succeeded.
struct Failure {
    bool missing = false;
    std::string said;
};

Result<Failure> run(const std::vector<std::string>& words, int input) {
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
    if (pid == 0) become(arguments.data(), elsewhere.c_str(), input, out.get());
    out.reset();
    const std::string said = read_to_end(in.get());
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (status == 0) return Failure{};
    return Failure{WIFEXITED(status) && WEXITSTATUS(status) == not_found, said.empty() ? "failed" : said};
}

Result<void> judge(const Result<Failure>& ran, const std::vector<std::string>& words, const std::string& what) {
    if (!ran) return ran.error();
    if (ran->missing) return error("{}: not found; install {}", words.front(), package_of(words.front()));
    if (ran->said.empty()) return {};
    return error("{}: {}", what, first_line(ran->said));
}

} // namespace

Result<void> run_command(const std::vector<std::string>& words) {
    return judge(run(words, -1), words, fmt::format("{}", fmt::join(words, " ")));
}

Result<void> run_lines(const std::vector<std::string>& words, const std::string& lines) {
    if (lines.empty()) return {};
    // A file, not a pipe: nobody has to write while the command reads, and a command that gives up sends no SIGPIPE.
    const base::Descriptor input(::memfd_create("kumi-lab-lines", MFD_CLOEXEC));
    if (!input || ::write(input.get(), lines.data(), lines.size()) != static_cast<ssize_t>(lines.size()) ||
        ::lseek(input.get(), 0, SEEK_SET) != 0)
        return system_error(errno, fmt::format("writing what {} shall do", words.front()));
    const auto ran = run(words, input.get());
    return judge(ran, words, ran ? fmt::format("{} {}", words.front(), failed_line(ran->said, lines)) : "");
}

} // namespace kumi::lab
