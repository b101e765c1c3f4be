// scripts/install-packages.sh, with stand-ins for dpkg-query and apt-get: no network, nothing is installed.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

namespace kumi::tree {
namespace {

namespace fs = std::filesystem;

class Packages : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (fs::temp_directory_path() / "kumi-packages-XXXXXX").string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        work_ = pattern;
        // Root in name: whoever runs the tests, the script must not ask for sudo.
        stand_in("id", "echo 0");
    }

    void TearDown() override {
        if (!work_.empty()) fs::remove_all(work_);
    }

    void stand_in(const std::string& command, const std::string& script) {
        std::ofstream(work_ / command) << "#!/bin/sh\n" << script << "\n";
        fs::permissions(work_ / command, fs::perms::owner_all);
    }

    /// A machine that has every package but one.
    void all_but(const std::string& missing) {
        stand_in("dpkg-query",
                 "for name in \"$@\"; do [ \"$name\" = '" + missing + "' ] || printf 'installed=%s ' \"$name\"; done");
    }

    /// True: the script was content.
    bool install(const std::string& sections) {
        return std::system(("env -u KUMI_PACKAGES PATH='" + work_.string() +
                            "':\"$PATH\" '" KUMI_SOURCE_DIR "/scripts/install-packages.sh' " + sections + " >'" +
                            file("said") + "' 2>&1")
                               .c_str()) == 0;
    }

    std::string file(const std::string& name) const { return (work_ / name).string(); }
    std::string text(const std::string& name) const {
        std::ifstream stream(file(name));
        return {std::istreambuf_iterator<char>(stream), {}};
    }

private:
    fs::path work_;
};

TEST_F(Packages, where_all_are_there_nothing_is_done) {
    all_but("");
    stand_in("apt-get", "touch '" + file("called") + "'");
    EXPECT_TRUE(install("core test bench format")) << text("said");
    EXPECT_FALSE(fs::exists(file("called")));
    EXPECT_EQ(text("said"), "");
}

TEST_F(Packages, only_the_missing_one_is_installed_and_lists_are_fetched_only_when_that_fails) {
    all_but("libgtest-dev");
    stand_in("apt-get", "echo \"$*\" | sed 's/.* \\(install\\|update\\)/\\1/' >>'" + file("calls") + "'\n" +
                            "[ $(wc -l <'" + file("calls") + "') -ge 2 ]");
    EXPECT_TRUE(install("core test")) << text("said");
    const std::string installing = "install --no-install-recommends libgtest-dev\n";
    EXPECT_EQ(text("calls"), installing + "update\n" + installing);
}

TEST_F(Packages, a_failure_shows_why_and_what_to_type) {
    all_but("mpich");
    stand_in("apt-get", "echo no network; exit 100");
    EXPECT_FALSE(install("bench"));
    EXPECT_NE(text("said").find("no network"), std::string::npos) << text("said");
    EXPECT_NE(text("said").find("apt-get install -y --no-install-recommends mpich\n"), std::string::npos)
        << text("said");
}

TEST_F(Packages, an_unknown_section_is_refused) {
    all_but("");
    EXPECT_FALSE(install("tset"));
    EXPECT_NE(text("said").find("no section 'tset'"), std::string::npos) << text("said");
}

} // namespace
} // namespace kumi::tree
