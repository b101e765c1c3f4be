#include "kumi/launch/host/processes/core_claims.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kumi::launch::host {
namespace {

using Indices = std::vector<std::size_t>;

TEST(ChooseCores, nodes_are_spread_evenly_over_the_free_cores) {
    EXPECT_EQ(choose_cores(std::vector<bool>(8), 2), (Indices{0, 4}));
    EXPECT_EQ(choose_cores(std::vector<bool>(8), 3), (Indices{0, 2, 5}));
    EXPECT_EQ(choose_cores({true, false, false, true, false, false}, 2), (Indices{1, 4}));
    EXPECT_EQ(choose_cores({true, false, true, false}, 1), (Indices{1}));
}

TEST(ChooseCores, as_many_nodes_as_free_cores_have_all_of_them) {
    EXPECT_EQ(choose_cores({false, true, false, false, true}, 3), (Indices{0, 2, 3}));
    EXPECT_EQ(choose_cores({false}, 1), (Indices{0}));
}

TEST(ChooseCores, one_node_more_than_free_cores_has_none) {
    EXPECT_EQ(choose_cores({false, true, false, false, true}, 4), Indices{});
    EXPECT_EQ(choose_cores({true, true}, 1), Indices{});
    EXPECT_EQ(choose_cores({}, 1), Indices{});
}

TEST(ChooseCores, a_node_for_every_core_has_a_core_though_all_are_taken_but_not_if_some_are) {
    EXPECT_EQ(choose_cores({true, true, true}, 3), (Indices{0, 1, 2}));
    EXPECT_EQ(choose_cores({true, true, true}, 2), Indices{});
    EXPECT_EQ(choose_cores({true, true, true}, 4), Indices{});
    EXPECT_EQ(choose_cores({true, false, true}, 3), Indices{});
}

/// A folder with files for cores, as /sys/devices/system/cpu has them.
class CoreClaims : public testing::Test {
protected:
    CoreClaims() {
        char name[] = "/tmp/kumi-test-claims-XXXXXX";
        if (::mkdtemp(name) == nullptr) std::abort();
        folder_ = name;
        for (const unsigned number : numbers_) std::ofstream(folder_ + "/cpu" + std::to_string(number));
    }
    ~CoreClaims() override { std::filesystem::remove_all(folder_); }

    std::vector<ClaimedCore> claim(std::size_t nodes) const { return claim_cores(folder_, numbers_, nodes); }

    std::string folder_;
    const std::vector<unsigned> numbers_{0, 2, 5, 7};
};

Indices indices_of(const std::vector<ClaimedCore>& claimed) {
    Indices indices;
    for (const ClaimedCore& core : claimed) indices.push_back(core.index);
    return indices;
}

std::size_t claims_in(const std::vector<ClaimedCore>& claimed) {
    std::size_t count = 0;
    for (const ClaimedCore& core : claimed) count += core.claim ? 1 : 0;
    return count;
}

TEST_F(CoreClaims, a_core_has_one_owner_until_its_claim_is_closed) {
    auto first = claim(2);
    EXPECT_EQ(indices_of(first), (Indices{0, 2}));
    const auto second = claim(1);
    EXPECT_EQ(indices_of(second), (Indices{1}));
    first[1].claim.reset();
    EXPECT_EQ(indices_of(claim(2)), (Indices{2, 3}));
    first.clear();
    EXPECT_EQ(indices_of(claim(3)), (Indices{0, 2, 3}));
}

TEST_F(CoreClaims, a_job_that_finds_too_few_free_cores_claims_none) {
    const auto first = claim(3);
    EXPECT_EQ(indices_of(claim(2)), Indices{});
    EXPECT_EQ(indices_of(claim(1)), (Indices{3})) << "the last one is still free";
}

TEST_F(CoreClaims, a_job_that_shares_all_cores_claims_none) {
    auto first = claim(4);
    const auto second = claim(4);
    EXPECT_EQ(indices_of(second), (Indices{0, 1, 2, 3}));
    EXPECT_EQ(claims_in(second), 0u);
    first.clear();
    EXPECT_EQ(claims_in(claim(4)), 4u);
}

TEST_F(CoreClaims, the_claims_of_a_process_that_was_killed_are_gone) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t owner = ::fork();
    ASSERT_GE(owner, 0);
    if (owner == 0) {
        ::alarm(60); // if the test ends early
        const auto claimed = claim(4);
        const char count = static_cast<char>(claimed.size());
        if (::write(ends[1], &count, 1) != 1) ::_exit(1);
        while (true) ::pause();
    }
    char count = 0;
    ASSERT_EQ(::read(ends[0], &count, 1), 1);
    EXPECT_EQ(count, 4);
    EXPECT_EQ(indices_of(claim(1)), Indices{});
    ::kill(owner, SIGKILL);
    ASSERT_EQ(::waitpid(owner, nullptr, 0), owner);
    EXPECT_EQ(indices_of(claim(4)), (Indices{0, 1, 2, 3}));
    ::close(ends[0]), ::close(ends[1]);
}

TEST_F(CoreClaims, programs_that_a_job_starts_do_not_inherit_its_claims) {
    for (const ClaimedCore& core : claim(4)) {
        ASSERT_TRUE(core.claim);
        EXPECT_EQ(::fcntl(core.claim.get(), F_GETFD), FD_CLOEXEC);
    }
}

TEST_F(CoreClaims, of_jobs_that_want_all_cores_at_once_one_has_them) {
    constexpr int jobs = 3;
    for (int round = 0; round < 100; ++round) {
        std::atomic<int> ready{0};
        std::vector<ClaimedCore> claimed[jobs]; // stay until all have tried
        std::vector<std::thread> threads;
        for (auto& of_job : claimed)
            threads.emplace_back([&] {
                for (++ready; ready != jobs;) std::this_thread::yield();
                of_job = claim(4);
            });
        for (std::thread& thread : threads) thread.join();
        std::size_t owned = 0;
        for (const auto& of_job : claimed) owned += claims_in(of_job);
        ASSERT_EQ(owned, 4u) << "round " << round;
    }
}

TEST_F(CoreClaims, a_job_waits_for_another_that_claims_cores_at_this_moment) {
    bool has_waited = false;
    for (int attempt = 0; attempt < 10 && !has_waited; ++attempt) { // it waits for 100 ms only, and we may be slow
        auto claimed_by_other = claim(4);
        base::Descriptor turn(::open(folder_.c_str(), O_RDONLY | O_CLOEXEC));
        ASSERT_EQ(::flock(turn.get(), LOCK_EX | LOCK_NB), 0);
        std::thread other([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            claimed_by_other.clear(); // it gives up
            turn.reset();
        });
        has_waited = claims_in(claim(4)) == 4;
        other.join();
    }
    EXPECT_TRUE(has_waited);
}

TEST_F(CoreClaims, a_process_that_stands_still_while_it_claims_does_not_hold_up_others) {
    const base::Descriptor turn(::open(folder_.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(::flock(turn.get(), LOCK_EX | LOCK_NB), 0);
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(indices_of(claim(1)), (Indices{0}));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(CoreClaims, where_nothing_can_be_locked_all_cores_are_free) {
    const auto claimed = claim_cores(folder_ + "/missing", numbers_, 4);
    EXPECT_EQ(indices_of(claimed), (Indices{0, 1, 2, 3}));
    for (const ClaimedCore& core : claimed) EXPECT_FALSE(core.claim);
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/missing"));
}

} // namespace
} // namespace kumi::launch::host
