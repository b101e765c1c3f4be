#include "kumi/launch/remote/agent.hpp"

#include <algorithm>
#include <gtest/gtest.h>

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

} // namespace
} // namespace kumi::launch::remote
