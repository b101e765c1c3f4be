#include "kumi/launch/remote/agent.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace kumi::launch::remote {
namespace {

using Words = std::vector<std::string>;

TEST(Agent, words_are_parted_at_blanks) {
    const auto agent = find_agent(" /bin/sh  -c x ", std::chrono::seconds{30});
    ASSERT_TRUE(agent) << agent.error().text();
    EXPECT_EQ(agent->program, "/bin/sh");
    EXPECT_EQ(agent->words, (Words{"-c", "x"}));
}

TEST(Agent, what_does_not_exist_is_refused) {
    EXPECT_EQ(find_agent("no-such-agent a", {}).error().text(), "--rsh: no-such-agent: no such program in PATH");
    EXPECT_EQ(find_agent("  ", {}).error().text(), "--rsh: name a program, like ssh, that takes a host and a command");
}

TEST(Agent, the_command_is_one_word_that_a_shell_understands) {
    EXPECT_EQ(words_for("a0", "/opt/kumi/bin/kumi"), (Words{"a0", "exec '/opt/kumi/bin/kumi' host-helper"}));
    EXPECT_EQ(words_for("a0", "/it's/kumi"), (Words{"a0", "exec '/it'\\''s/kumi' host-helper"}));
}

TEST(Agent, ssh_asks_for_nothing_and_gives_up_in_time_and_the_users_options_come_first) {
    const auto folder = std::filesystem::temp_directory_path() / ("kumi-test-agent-" + std::to_string(::getpid()));
    std::filesystem::create_directory(folder);
    for (const char* const name : {"ssh", "myssh"}) {
        std::ofstream(folder / name) << "#!/bin/sh\n";
        std::filesystem::permissions(folder / name, std::filesystem::perms(0755));
    }
    const std::string ssh = (folder / "ssh").string();
    const Words always{"-p", "2222", "-T", "-oBatchMode=yes", "-oServerAliveInterval=15", "-oServerAliveCountMax=4"};
    EXPECT_EQ(find_agent(ssh + " -p 2222", {})->words, always);
    Words limited = always;
    limited.push_back("-oConnectTimeout=40");
    EXPECT_EQ(find_agent(ssh + " -p 2222", std::chrono::seconds{40})->words, limited);
    EXPECT_EQ(find_agent(ssh, {})->program, ssh);
    EXPECT_EQ(find_agent(ssh, {})->text, ssh);
    EXPECT_EQ(find_agent((folder / "myssh").string() + " -p 1", std::chrono::seconds{40})->words, (Words{"-p", "1"}))
        << "not ssh";
    std::filesystem::remove_all(folder);
}

} // namespace
} // namespace kumi::launch::remote
