#include "harness/command.hpp"

#include "kumi/base/clock.hpp"
#include "kumi/base/system/descriptor.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace kumi::bench {
namespace {

[[noreturn]] void turn_into(const std::vector<std::string>& words, const std::vector<std::string>& environment_added,
                            int out) {
    ::setpgid(0, 0);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(::open("/dev/null", O_RDWR), STDIN_FILENO);
    ::dup2(out, STDERR_FILENO);
    for (const std::string& setting : environment_added) ::putenv(const_cast<char*>(setting.c_str()));
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
}

/// Reads until the other end closes; false at the deadline.
bool read_all(int from, std::string& text, Instant deadline) {
    std::array<char, 4096> buffer;
    while (true) {
        pollfd readable{from, POLLIN, 0};
        if (now() >= deadline || ::poll(&readable, 1, milliseconds_until(deadline)) == 0) return false;
        const ssize_t got = ::read(from, buffer.data(), buffer.size());
        if (got == 0) return true;
        if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
    }
}

/// The first line that a failed command printed which is not empty and no result.
std::string complaint(const std::string& text) {
    constexpr std::string_view ours = "kumi: ";
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const bool has_word =
            std::any_of(line.begin(), line.end(), [](unsigned char c) { return std::isalpha(c) != 0; });
        if (has_word && !line.starts_with("result ")) return line.starts_with(ours) ? line.substr(ours.size()) : line;
    }
    return "failed";
}

} // namespace

Result<std::string> output_of(const std::vector<std::string>& words, const std::vector<std::string>& environment_added,
                              std::chrono::seconds seconds_max) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return system_error(errno, "starting a benchmark (pipe)");
    base::Descriptor in(ends[0]);
    base::Descriptor out(ends[1]);
    const pid_t pid = ::fork();
    if (pid < 0) return system_error(errno, "starting a benchmark (fork)");
    if (pid == 0) turn_into(words, environment_added, out.get());
    out.reset();
    std::string text;
    const bool ended = read_all(in.get(), text, now() + seconds_max);
    if (!ended) ::kill(-pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (!ended) return error("{}: not done within {} s", words.front(), seconds_max.count());
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127 && text.empty()) return error("{}: not found", words.front());
    if (status != 0) return error("{}", complaint(text));
    return text;
}

Result<Heard> run_contestant(const std::vector<std::string>& words, const std::vector<std::string>& environment_added,
                             std::chrono::seconds seconds_max) {
    const Instant start = now();
    const auto text = output_of(words, environment_added, seconds_max);
    if (!text) return text.error();
    Heard heard{.results = {}, .seconds = std::chrono::duration<double>(now() - start).count()};
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream fields(line);
        std::string word, id;
        double value = 0;
        if (fields >> word >> id >> value && word == "result") heard.results[id] = value;
    }
    return heard;
}

} // namespace kumi::bench
