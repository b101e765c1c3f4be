#pragma once

// A lab for a test: it comes up, it is used, it is gone.

#include "cluster/command.hpp"

#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>

namespace kumi::cluster_test {

inline const std::string figure3 = KUMI_SOURCE_DIR "/lab/figure3.toml";

class Lab : public testing::Test {
protected:
    void SetUp() override {
        if (sanitized) KUMI_SKIP(skips::plain_build_only);
        std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
        runtime_ = folder_.path() + "/run";
        ::mkdir(runtime_.c_str(), 0700);
    }
    void TearDown() override {
        if (!mark_.empty()) run({.words = kumi_lab({"down"}), .environment = environment()});
        EXPECT_TRUE(comes_true([&] { return mark_.empty() || processes_marked(mark_).empty(); }, 5s))
            << "the lab is not gone";
        std::error_code ignored;
        EXPECT_FALSE(std::filesystem::exists(runtime_ + "/kumi-lab", ignored)) << "state is left";
    }

    std::vector<std::string> environment() const { return {"XDG_RUNTIME_DIR=" + runtime_, "KUMI_LAB=lab"}; }
    static Words kumi_lab(const Words& words) {
        Words all{kumi_command, "lab"};
        all.insert(all.end(), words.begin(), words.end());
        return all;
    }

    Outcome lab(const Words& words) {
        return run({.words = as_user(kumi_lab(words)), .environment = environment(), .folder = folder_.path()});
    }
    Outcome exec(const std::string& host, const Words& words) { return run(on(host, words)); }
    Command on(const std::string& host, const Words& words) {
        Words all = kumi_lab({"exec", host});
        all.insert(all.end(), words.begin(), words.end());
        return {.words = as_user(all), .environment = environment(), .folder = folder_.path()};
    }
    /// `kumi run --rsh 'kumi lab exec' WORDS` on the lab's front end.
    Command from_front(const Words& words) {
        Words all = kumi_run({"--rsh", kumi_command + " lab exec"});
        all.insert(all.end(), words.begin(), words.end());
        return on("front", all);
    }
    Words as_user(const Words& words) const {
        if (user_ < 0) return words;
        const std::string id = std::to_string(user_);
        Words all{"setpriv", "--reuid", id, "--regid", id, "--clear-groups"};
        all.insert(all.end(), words.begin(), words.end());
        return all;
    }

    Outcome up(const std::string& file = figure3) {
        Running starting({.words = as_user(kumi_lab({"up", file})),
                          .environment = environment(),
                          .folder = folder_.path(),
                          .leaves_processes = true});
        const Outcome outcome = starting.finish();
        if (outcome.code == 0) mark_ = starting.mark();
        return outcome;
    }

    pid_t keeper() const { return std::atoi(file_text(runtime_ + "/kumi-lab/lab/pid").c_str()); }

    /// How many of `count` datagrams come back from `address`, sent by `host`, each within `wait_ms`.
    int answers(const std::string& host, const std::string& address, int count = 5, int bytes = 8, int wait_ms = 2000) {
        const Outcome outcome = exec(host, {program("probe"), "ask", address, "7000", std::to_string(count),
                                            std::to_string(bytes), std::to_string(wait_ms)});
        EXPECT_EQ(outcome.err, "");
        int found = -1;
        EXPECT_EQ(std::sscanf(outcome.out.c_str(), "%d %ld", &found, &fastest_us_), 2) << outcome.out;
        return found;
    }
    bool is_silent(const std::string& host, const std::string& address) {
        return answers(host, address, 2, 8, 200) == 0;
    }
    /// Soon: after a change the system may take a while to see a carrier, or to ask for the other's hardware address.
    bool carries(const std::string& host, const std::string& address) {
        return comes_true([&] { return answers(host, address, 1, 8, 200) == 1; }, 10s);
    }

    Folder folder_;
    std::string runtime_;
    std::string mark_;
    int user_ = -1;
    long fastest_us_ = 0;
};

/// Brings the lab up. Skips the test only where the machine can have none; see skips.hpp.
#define LAB_OR_SKIP(...)                                                                                               \
    do {                                                                                                               \
        if (const auto reason = probes::no_lab(user_)) KUMI_SKIP(*reason);                                             \
        const Outcome started = up(__VA_ARGS__);                                                                       \
        ASSERT_EQ(started.code, 0) << started.err;                                                                     \
        ASSERT_EQ(started.err, "");                                                                                    \
    } while (false)

} // namespace kumi::cluster_test
