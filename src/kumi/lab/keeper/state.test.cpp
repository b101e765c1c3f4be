#include "kumi/lab/keeper/state.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kumi::lab {
namespace {

/// A runtime folder of the test's own.
class LabState : public testing::Test {
protected:
    LabState() {
        if (const char* const before = std::getenv("XDG_RUNTIME_DIR")) before_ = before;
        set_runtime(runtime_);
        std::filesystem::create_directory(runtime_);
    }
    ~LabState() override {
        if (before_) ::setenv("XDG_RUNTIME_DIR", before_->c_str(), 1);
        else ::unsetenv("XDG_RUNTIME_DIR");
        std::filesystem::remove_all(runtime_);
    }
    static void set_runtime(const std::string& path) { ::setenv("XDG_RUNTIME_DIR", path.c_str(), 1); }
    static std::string refusal_of(const auto& tried) { return tried ? "" : tried.error().text(); }

    const std::string runtime_ = "/tmp/kumi-test-state-" + std::to_string(::getpid());
    const std::string base_ = runtime_ + "/kumi-lab";
    std::optional<std::string> before_;
};

TEST_F(LabState, a_name_is_part_of_a_path_and_stays_one) {
    EXPECT_EQ(*state_folder("lab"), base_ + "/lab");
    EXPECT_EQ(*state_folder("a.b-c_9"), base_ + "/a.b-c_9");
    EXPECT_TRUE(state_folder(std::string(32, 'a')));
    for (const std::string& name :
         {std::string(), std::string(33, 'a'), std::string("."), std::string(".."), std::string(".hidden"),
          std::string("a/b"), std::string("a b"), std::string("\xc3\xa4"), std::string("a\0b", 3)})
        EXPECT_EQ(refusal_of(state_folder(name)),
                  fmt::format("\"{}\" is no name for a lab; use letters, digits, - and _, 32 at most", name));
    EXPECT_EQ(socket_path("/x"), "/x/socket");
}

TEST_F(LabState, without_a_runtime_folder_it_is_in_tmp) {
    const std::string expected = fmt::format("/tmp/kumi-lab-{}/lab", ::geteuid());
    set_runtime("relative");
    EXPECT_EQ(*state_folder("lab"), expected);
    ::unsetenv("XDG_RUNTIME_DIR");
    EXPECT_EQ(*state_folder("lab"), expected);
}

TEST_F(LabState, only_one_holds_it_and_the_next_takes_over_what_is_left) {
    {
        const auto first = StateFolder::claim("lab");
        ASSERT_TRUE(first) << first.error().text();
        EXPECT_EQ(first->path(), base_ + "/lab");
        EXPECT_EQ(first->parent(), base_);
        std::ofstream(first->path() + "/pid") << "1\n";
        std::ofstream(socket_path(first->path())) << "";
        EXPECT_EQ(refusal_of(StateFolder::claim("lab")),
                  "the lab \"lab\" is up already; end it with: kumi lab down, or choose another --name");
        EXPECT_TRUE(StateFolder::claim("other"));
    } // as if it were killed: nothing is removed
    EXPECT_TRUE(std::filesystem::exists(base_ + "/lab/pid"));
    auto next = StateFolder::claim("lab");
    ASSERT_TRUE(next) << next.error().text();
    EXPECT_TRUE(std::filesystem::is_empty(next->path())) << "what was left is gone";
    next->remove();
    EXPECT_FALSE(std::filesystem::exists(base_ + "/lab"));
    EXPECT_TRUE(std::filesystem::exists(base_ + "/other")) << "and its parent with it";
    StateFolder::claim("other")->remove();
    EXPECT_FALSE(std::filesystem::exists(base_)) << "this was the last one";
}

TEST_F(LabState, the_folders_are_the_users_alone) {
    auto state = StateFolder::claim("lab");
    ASSERT_TRUE(state);
    for (const std::string& folder : {base_, base_ + "/lab"}) {
        struct stat found {};
        ASSERT_EQ(::stat(folder.c_str(), &found), 0);
        EXPECT_EQ(found.st_mode & 0777, 0700u) << folder;
    }
}

TEST_F(LabState, a_base_that_others_can_use_or_that_is_none_is_refused) {
    const std::string refused =
        base_ + " is not a folder that only you can use; remove it, or set XDG_RUNTIME_DIR to a folder of your own";
    for (const mode_t mode : {0710u, 0701u, 0720u, 0777u}) {
        ASSERT_EQ(::mkdir(base_.c_str(), 0700), 0);
        ASSERT_EQ(::chmod(base_.c_str(), mode), 0);
        EXPECT_EQ(refusal_of(StateFolder::claim("lab")), refused) << mode;
        ASSERT_EQ(::mkdir((base_ + "/lab").c_str(), 0700), 0); // as if a lab were up
        EXPECT_EQ(refusal_of(connect_to_keeper("lab")), refused) << "nothing is sent there";
        std::filesystem::remove_all(base_);
    }
    std::ofstream(base_ + "").close();
    EXPECT_EQ(refusal_of(StateFolder::claim("lab")), refused) << "a file";
    std::filesystem::remove(base_);
    std::filesystem::create_directory(runtime_ + "/elsewhere");
    std::filesystem::permissions(runtime_ + "/elsewhere", std::filesystem::perms(0700));
    std::filesystem::create_directory_symlink(runtime_ + "/elsewhere", base_);
    EXPECT_EQ(refusal_of(StateFolder::claim("lab")), refused) << "a link to a folder that is right";
}

TEST_F(LabState, a_lab_that_is_a_link_to_elsewhere_is_not_used) {
    ASSERT_EQ(::mkdir(base_.c_str(), 0700), 0);
    std::filesystem::create_directory(runtime_ + "/elsewhere");
    std::filesystem::create_directory_symlink(runtime_ + "/elsewhere", base_ + "/lab");
    EXPECT_EQ(refusal_of(StateFolder::claim("lab")).find("making the folder " + base_ + "/lab: "), 0u);
    EXPECT_TRUE(std::filesystem::exists(runtime_ + "/elsewhere"));
}

TEST_F(LabState, a_keeper_that_listens_is_reached_one_that_died_is_told_from_none) {
    EXPECT_EQ(refusal_of(connect_to_keeper("lab")), "no lab \"lab\" is up; start it: kumi lab up FILE");
    auto state = StateFolder::claim("lab");
    ASSERT_TRUE(state);
    EXPECT_EQ(refusal_of(connect_to_keeper("lab")), "no lab \"lab\" is up; start it: kumi lab up FILE")
        << "it is not up yet";
    {
        const auto listener = listen_in(state->path());
        ASSERT_TRUE(listener) << listener.error().text();
        EXPECT_EQ(refusal_of(connect_to_keeper("lab")), "");
    }
    EXPECT_EQ(refusal_of(connect_to_keeper("lab")), "the lab \"lab\" has died; start it again: kumi lab up FILE");
}

TEST_F(LabState, a_path_must_fit_a_sockets_name) {
    // 108 bytes with the zero at its end; "/kumi-lab/lab/socket" is 20 of them.
    for (const auto& [bytes, fits] : {std::pair{std::size_t{107}, true}, {std::size_t{108}, false}}) {
        const std::string deep = runtime_ + "/" + std::string(bytes - 20 - runtime_.size() - 1, 'd');
        std::filesystem::create_directory(deep);
        set_runtime(deep);
        const auto state = StateFolder::claim("lab");
        ASSERT_TRUE(state) << state.error().text();
        EXPECT_EQ(socket_path(state->path()).size(), bytes);
        const std::string too_long =
            deep + "/kumi-lab/lab/socket is too long a name for a socket; set XDG_RUNTIME_DIR to a shorter one";
        EXPECT_EQ(refusal_of(listen_in(state->path())), fits ? "" : too_long);
        EXPECT_EQ(refusal_of(connect_to_keeper("lab")) == too_long, !fits);
    }
}

} // namespace
} // namespace kumi::lab
