#include "kumi/launch/host/processes/process.hpp"

#include "kumi/base/system/descriptor.hpp"
#include "kumi/launch/host/processes/environment.hpp"

#include <array>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <cstdio>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kumi::launch::host {
namespace {

/// What a program that is started so prints; its descriptors from 3 on are `more`.
std::string printed_by(const std::string& program, const std::vector<std::string>& arguments,
                       const std::vector<std::string>& environment = own_environment(),
                       const std::vector<int>& more = {}) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    base::Descriptor in(ends[0]), out(ends[1]);
    const base::Descriptor nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
    ProcessOptions options{.program = program,
                           .arguments = arguments,
                           .environment = environment,
                           .binding = {},
                           .descriptors = {nowhere.get(), out.get(), nowhere.get()}};
    options.descriptors.insert(options.descriptors.end(), more.begin(), more.end());
    const auto process = start_process(options);
    EXPECT_TRUE(process);
    out.reset();
    std::string text;
    std::array<char, 4096> buffer;
    for (ssize_t got = 0; (got = ::read(in.get(), buffer.data(), buffer.size())) > 0;)
        text.append(buffer.data(), static_cast<std::size_t>(got));
    if (process) ::waitpid(process->pid, nullptr, 0);
    return text;
}

TEST(Process, it_gets_its_words_and_its_environment_and_nothing_else) {
    const std::string script = "echo \"$0|$1|$#\"; env | grep -c KUMI_TEST_; echo $KUMI_TEST_A";
    EXPECT_EQ(printed_by("/bin/sh", {"-c", script, "name", "two words"}, {"KUMI_TEST_A=x y", "PATH=/usr/bin:/bin"}),
              "name|two words|1\n1\nx y\n");
}

TEST(Process, it_starts_with_no_signal_blocked_or_ignored) {
    const auto grep = find_program("grep"); // not by a shell, which would unblock signals itself
    ASSERT_TRUE(grep);
    sigset_t usual, blocked;
    sigemptyset(&blocked);
    for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGUSR1}) sigaddset(&blocked, number);
    ::sigprocmask(SIG_BLOCK, &blocked, &usual);
    const auto before = ::signal(SIGPIPE, SIG_IGN); // as whoever writes to nodes has it
    const std::string text = printed_by(*grep, {"-E", "^Sig(Blk|Ign)", "/proc/self/status"});
    ::signal(SIGPIPE, before);
    ::sigprocmask(SIG_SETMASK, &usual, nullptr);
    unsigned long long is_blocked = 0, is_ignored = 0;
    ASSERT_EQ(std::sscanf(text.c_str(), "SigBlk: %llx SigIgn: %llx", &is_blocked, &is_ignored), 2) << text;
    EXPECT_EQ(is_blocked, 0u) << text;
    // 32 and 33 are the C library's own: no program can change what it inherited of them.
    EXPECT_EQ(is_ignored & ~0x180000000ull, 0u) << text;
}

TEST(Process, it_is_in_a_group_of_its_own) {
    const std::string text = printed_by("/bin/sh", {"-c", "cut -d' ' -f5 /proc/$$/stat; echo $$"});
    const std::size_t line = text.find('\n') + 1;
    EXPECT_EQ(text.substr(0, line), text.substr(line));
}

TEST(Process, its_group_is_killed_when_the_leash_is_closed) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const base::Descriptor in(ends[0]);
    base::Descriptor out(ends[1]);
    const base::Descriptor nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
    auto process = start_process({.program = "/bin/sh",
                                  .arguments = {"-c", "sleep 100 & exit 0"},
                                  .environment = own_environment(),
                                  .binding = {},
                                  .descriptors = {nowhere.get(), out.get(), nowhere.get()}});
    ASSERT_TRUE(process);
    out.reset();
    ASSERT_EQ(::waitpid(process->pid, nullptr, 0), process->pid);
    // The process has ended, and what it started has not: that still has the output open.
    pollfd end{in.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&end, 1, 100), 0);
    process->leash.reset();
    EXPECT_EQ(::poll(&end, 1, 5000), 1) << "the group was not killed";
    ::kill(-process->pid, SIGKILL);
}

TEST(Process, descriptors_arrive_in_order_though_their_numbers_cross) {
    int one[2], other[2];
    ASSERT_EQ(::pipe2(one, O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(other, O_CLOEXEC), 0);
    ASSERT_EQ(::write(one[1], "one", 3), 3);
    ASSERT_EQ(::write(other[1], "other", 5), 5);
    ::close(one[1]), ::close(other[1]);
    EXPECT_EQ(printed_by("/bin/sh", {"-c", "cat <&4; cat <&3"}, own_environment(), {one[0], other[0]}), "otherone");
    ::close(one[0]), ::close(other[0]);
}

TEST(Process, a_program_is_looked_for_as_a_shell_does) {
    const auto folder = std::filesystem::temp_directory_path() / ("kumi-test-process-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder / "here" / "tool"); // a folder is no program
    std::filesystem::create_directories(folder / "there");
    std::ofstream(folder / "there" / "tool") << "#!/bin/sh\n";
    std::ofstream(folder / "there" / "text") << "text\n";
    std::filesystem::permissions(folder / "there" / "tool", std::filesystem::perms(0755));
    const std::string path = std::getenv("PATH"), before = std::filesystem::current_path();
    const std::string here = folder / "here", there = folder / "there";
    const auto found = [](const std::string& name) {
        const auto program = find_program(name);
        return program ? *program : program.error().text();
    };
    std::filesystem::current_path(folder / "there");
    ::setenv("PATH", (here + ":" + there).c_str(), 1);
    EXPECT_EQ(found("tool"), there + "/tool");
    EXPECT_EQ(found("text"), "text: no such program in PATH; for the one here write ./text");
    for (const std::string& with_empty : {":" + here, here + "::" + here, here + ":"}) {
        ::setenv("PATH", with_empty.c_str(), 1);
        EXPECT_EQ(found("tool"), "./tool") << with_empty;
    }
    ::setenv("PATH", here.c_str(), 1);
    EXPECT_EQ(found("tool"), "tool: no such program in PATH; for the one here write ./tool");
    EXPECT_EQ(found("none"), "none: no such program in PATH");
    ::unsetenv("PATH");
    EXPECT_EQ(found("none"), "none: no such program in PATH");
    EXPECT_EQ(found(there + "/tool/none"), there + "/tool/none: no such program");
    std::filesystem::current_path(before);
    ::setenv("PATH", path.c_str(), 1);
    std::filesystem::remove_all(folder);
}

} // namespace
} // namespace kumi::launch::host
