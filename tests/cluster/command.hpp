#pragma once

// Runs command lines in tests: what went in, what came out, how it ended. Never hangs: what is not over at its deadline
// is killed and fails the test. Nothing may be left of a command: every process that descends from it carries a mark in
// its environment, which is looked for at the end.

#include "loopback/sanitized.hpp"
#include "skips.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <poll.h>
#include <regex.h>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace kumi::cluster_test {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
// For those who are not in kumi.
using kumi::sanitized;
namespace skips = kumi::skips;
namespace probes = kumi::probes;

/// What must be over within a second; instrumented programs take longer to die.
inline constexpr std::chrono::milliseconds one_second = sanitized ? 3000ms : 1000ms;

/// A node as messages name it, to be matched.
inline const std::string any_node = "node [0-9]+ on [^ ]+ \\(pid [0-9]+\\) ";

struct Command {
    std::vector<std::string> words;
    std::string input;
    std::vector<std::string> environment; // "NAME=value", added to ours
    std::string folder;                   // to run in; empty: ours
    std::vector<int> ignored_signals;
    bool input_closed = false;
    bool leaves_processes = false; // on purpose
    std::function<bool()> prepare =
        {}; // done by the new process before it becomes the command; false: it ends with 125
};

struct Outcome {
    std::string out;
    std::string err;
    int code = -1; // as a shell has it: 128 + signal when it was killed
    Clock::time_point ended;
};

inline std::string file_text(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

/// The processes that carry a mark, without zombies, which have no environment any more.
inline std::vector<std::string> processes_marked(const std::string& mark) {
    std::vector<std::string> found;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
        const std::string folder = entry.path();
        if (folder.find_first_not_of("0123456789", 6) != std::string::npos) continue;
        if (('\0' + file_text(folder + "/environ")).find('\0' + mark + '\0') == std::string::npos) continue;
        std::string line = file_text(folder + "/cmdline");
        for (char& c : line)
            if (c == '\0') c = ' ';
        found.push_back(entry.path().filename().string() + " " + line);
    }
    return found;
}

/// Those of them that run `program`, by the path that they were started with.
inline std::vector<pid_t> processes_running(const std::string& program, const std::string& mark) {
    std::vector<pid_t> found;
    for (const std::string& process : processes_marked(mark)) // "PID WORD WORD ... "
        if (process.substr(process.find(' ') + 1).starts_with(program + " "))
            found.push_back(std::atoi(process.c_str()));
    return found;
}

/// Waits for `done` to become true; false when it has not in time.
template <class Done>
bool comes_true(Done&& done, std::chrono::milliseconds limit) {
    for (const auto deadline = Clock::now() + limit; !done(); ::poll(nullptr, 0, 5))
        if (Clock::now() > deadline) return done();
    return true;
}

class Running {
public:
    /// Benchmarks of many nodes take four times as long as usual while a compiler has both cores of a small machine.
    static constexpr std::chrono::seconds patience{60};
    static constexpr std::chrono::seconds patience_after{sanitized ? 10 : 3}; // its end, for what is left of it

    explicit Running(const Command& command) : input_(command.input), leaves_processes_(command.leaves_processes) {
        static int count = 0;
        mark_ = "KUMI_TEST_MARK=" + std::to_string(::getpid()) + "." + std::to_string(++count);
        int in[2], out[2], err[2];
        if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) std::abort();
        pid_ = ::fork();
        if (pid_ == 0) become(command, in[0], out[1], err[1]);
        for (const int theirs : {in[0], out[1], err[1]}) ::close(theirs);
        in_ = in[1], out_ = out[0], err_ = err[0];
        for (const int ours : {in_, out_, err_}) ::fcntl(ours, F_SETFL, O_NONBLOCK);
        pid_descriptor_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() {
        if (!ended_) finish();
        for (const int descriptor : {in_, out_, err_, pid_descriptor_})
            if (descriptor >= 0) ::close(descriptor);
    }

    void signal(int number) const { ::kill(pid_, number); }
    pid_t pid() const { return pid_; }
    const std::string& mark() const { return mark_; }
    /// What has come out so far.
    const std::string& out() {
        pump(Clock::now());
        return outcome_.out;
    }

    const std::string& err() {
        pump(Clock::now());
        return outcome_.err;
    }

    /// As far as out() has seen.
    bool has_ended() const { return ended_; }

    /// Waits until `text` has come out `times` times.
    bool printed(std::string_view text, unsigned times = 1, std::chrono::seconds limit = patience) {
        const auto enough = [&](const std::string& out) {
            unsigned found = 0;
            for (auto at = out.find(text); at != std::string::npos; at = out.find(text, at + 1)) ++found;
            return found >= times;
        };
        return shows(enough, "never printed: " + std::string(text), limit);
    }

    /// Waits until all that has come out so far satisfies `done`; `complaint` is for the case that it never does.
    bool shows(const std::function<bool(const std::string& out)>& done, const std::string& complaint,
               std::chrono::seconds limit = patience) {
        const auto deadline = Clock::now() + limit;
        bool is_done = done(outcome_.out);
        for (; !is_done && !ended_ && Clock::now() < deadline; is_done = done(outcome_.out)) pump(deadline);
        EXPECT_TRUE(is_done) << complaint << "\nout: " << outcome_.out << "\nerr: " << outcome_.err;
        return is_done;
    }

    /// Waits for its end, and checks that nothing is left of it.
    Outcome finish() {
        const auto deadline = Clock::now() + patience;
        while (!ended_ && Clock::now() < deadline) pump(deadline);
        if (!ended_) {
            ADD_FAILURE() << "not over in time; killed\nout: " << outcome_.out.substr(0, 2000)
                          << "\nerr: " << outcome_.err;
            ::kill(pid_, SIGKILL);
            while (!ended_) pump(Clock::now() + 1s);
        }
        // Whoever still holds the other ends is not part of the command any more.
        const auto last = Clock::now() + patience_after;
        while ((out_ >= 0 || err_ >= 0) && Clock::now() < last) pump(last);
        EXPECT_TRUE(out_ < 0 && err_ < 0) << "somebody still holds its output";
        EXPECT_TRUE(leaves_processes_ || comes_true([&] { return processes_marked(mark_).empty(); }, patience_after))
            << "left behind: " << left_behind();
        return outcome_;
    }

    std::string left_behind() const {
        std::string text;
        for (const std::string& process : processes_marked(mark_)) text += process + "\n";
        return text;
    }

private:
    [[noreturn]] void become(const Command& command, int in, int out, int err) {
        for (int number = 1; number < 32; ++number) ::signal(number, SIG_DFL);
        for (const int number : command.ignored_signals) ::signal(number, SIG_IGN);
        const rlimit no_core{0, 0};
        ::setrlimit(RLIMIT_CORE, &no_core);
        ::dup2(in, 0), ::dup2(out, 1), ::dup2(err, 2);
        if (command.input_closed) ::close(0);
        if (command.prepare && !command.prepare()) ::_exit(125);
        if (!command.folder.empty() && ::chdir(command.folder.c_str()) != 0) ::_exit(126);
        std::vector<std::string> environment = command.environment;
        environment.push_back(mark_);
        // A sanitizer that catches the signal would turn it into an exit code; and the search for leaks, which takes
        // seconds at the end of each process, belongs to the tests within one.
        environment.emplace_back(
            "ASAN_OPTIONS=handle_segv=0:handle_abort=0:handle_sigill=1:handle_sigtrap=1:detect_leaks=0");
        environment.emplace_back("TSAN_OPTIONS=handle_segv=0:handle_abort=0");
        for (std::string& variable : environment) ::putenv(variable.data());
        std::vector<std::string> words = command.words;
        std::vector<char*> pointers;
        for (std::string& word : words) pointers.push_back(word.data());
        pointers.push_back(nullptr);
        ::execvp(pointers[0], pointers.data());
        ::_exit(127);
    }

    void pump(Clock::time_point deadline) {
        if (input_.empty() && in_ >= 0) ::close(std::exchange(in_, -1));
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
        pollfd ready[] = {
            {out_, POLLIN, 0}, {err_, POLLIN, 0}, {in_, POLLOUT, 0}, {ended_ ? -1 : pid_descriptor_, POLLIN, 0}};
        ::poll(ready, 4, static_cast<int>(std::max<long>(left, 0)));
        if (ready[0].revents != 0) take(out_, outcome_.out);
        if (ready[1].revents != 0) take(err_, outcome_.err);
        if (ready[2].revents != 0) give();
        if (ready[3].revents != 0) reap();
    }

    static void take(int& from, std::string& into) {
        char buffer[65536];
        const ssize_t got = ::read(from, buffer, sizeof buffer);
        if (got > 0) into.append(buffer, static_cast<std::size_t>(got));
        else if (got == 0) ::close(std::exchange(from, -1));
    }

    void give() {
        struct sigaction ignore {
        }, before{};
        ignore.sa_handler = SIG_IGN;
        ::sigaction(SIGPIPE, &ignore, &before);
        const ssize_t count = ::write(in_, input_.data(), input_.size());
        ::sigaction(SIGPIPE, &before, nullptr);
        if (count > 0) input_.erase(0, static_cast<std::size_t>(count));
        else if (errno != EAGAIN) input_.clear(); // nobody wants it
    }

    void reap() {
        int status = 0;
        if (::waitpid(pid_, &status, WNOHANG) != pid_) return;
        outcome_.ended = Clock::now();
        outcome_.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        ended_ = true;
    }

    std::string input_;
    bool leaves_processes_;
    std::string mark_;
    pid_t pid_ = -1;
    int in_ = -1, out_ = -1, err_ = -1, pid_descriptor_ = -1;
    bool ended_ = false;
    Outcome outcome_;
};

inline Outcome run(Command command) { return Running(std::move(command)).finish(); }

/// Words of a command line.
using Words = std::vector<std::string>;

inline const std::string kumi_command = KUMI_BUILD_DIR "/bin/kumi";
inline bool is_installed(const std::string& program) { return probes::has_program(program); }

inline std::string example(const std::string& name) { return KUMI_BUILD_DIR "/examples/" + name; }
inline std::string program(const std::string& name) { return KUMI_BUILD_DIR "/tests/programs/" + name; }

inline Words kumi_run(const Words& words) {
    Words all{kumi_command, "run"};
    all.insert(all.end(), words.begin(), words.end());
    return all;
}

/// `kumi run OPTIONS actor STEPS`.
inline Words kumi_run_actor(Words options, const Words& steps) {
    options.push_back(program("actor"));
    options.insert(options.end(), steps.begin(), steps.end());
    return kumi_run(options);
}

inline std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

/// Does all of `text` match? Extended regular expressions; the system's, because std::regex takes long to compile.
inline bool matches(const std::string& text, const std::string& pattern) {
    regex_t compiled;
    if (::regcomp(&compiled, ("^(" + pattern + ")$").c_str(), REG_EXTENDED | REG_NOSUB) != 0) return false;
    const bool found = ::regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
    ::regfree(&compiled);
    return found;
}

/// All of `text` is one line that matches `pattern`.
inline testing::AssertionResult is_one_line(const std::string& text, const std::string& pattern) {
    const bool one_line = text.find('\n') + 1 == text.size() && !text.empty();
    if (one_line && matches(text.substr(0, text.size() - 1), pattern)) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "not one line like: " << pattern << "\nbut: " << text;
}

/// What is left of standard error without the backtraces of nodes that have crashed.
inline std::string without_backtraces(const std::string& err) {
    std::string left;
    for (const std::string& line : lines_of(err))
        if (!matches(line, "kumi: node [0-9]+ on [^ ]+: (#[0-9]+ .*|SIG[A-Z]+.*; the thread was in)"))
            left += line + "\n";
    return left;
}

inline bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// A folder that is gone after the test.
class Folder {
public:
    Folder() {
        char name[] = "/tmp/kumi-test-XXXXXX";
        if (::mkdtemp(name) == nullptr) std::abort();
        path_ = name;
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() { std::filesystem::remove_all(path_); }

    const std::string& path() const { return path_; }
    std::string write(const std::string& name, const std::string& text, bool executable = true) const {
        const std::string file = path_ + "/" + name;
        std::ofstream(file) << text;
        std::filesystem::permissions(file, std::filesystem::perms(executable ? 0755 : 0644));
        return file;
    }

private:
    std::string path_;
};

/// 4 greetings from 4 nodes.
inline void expect_hello(const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    auto lines = lines_of(outcome.out);
    std::sort(lines.begin(), lines.end());
    ASSERT_EQ(lines.size(), 4u) << outcome.out;
    for (std::size_t node = 0; node < 4; ++node)
        EXPECT_EQ(lines[node].find("hello from node " + std::to_string(node) + " of 4 on "), 0u) << lines[node];
}

/// What 02_ring says first: how often the token went round, and what it collected.
inline std::string ring_result(long nodes, long rounds) {
    return std::to_string(rounds) + " rounds over " + std::to_string(nodes) + " nodes: token is " +
           std::to_string(rounds * nodes * (nodes - 1) / 2) + ", ";
}

inline void expect_ring(const Outcome& outcome, long nodes, long rounds) {
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_TRUE(is_one_line(outcome.out, ring_result(nodes, rounds) + ".*"));
}

} // namespace kumi::cluster_test
