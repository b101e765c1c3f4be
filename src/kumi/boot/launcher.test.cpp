#include "kumi/boot/launcher.hpp"

#include <gtest/gtest.h>
#include <map>
#include <string>

namespace kumi::boot {
namespace {

using Variables = std::map<std::string, std::string>;

Result<Launcher> found_in(const Variables& variables) {
    const auto lookup = [&](const char* name) -> const char* {
        const auto entry = variables.find(name);
        return entry == variables.end() ? nullptr : entry->second.c_str();
    };
    return find_launcher(lookup);
}

void expect_refused(const Variables& variables, const std::string& word) {
    const auto found = found_in(variables);
    ASSERT_FALSE(found);
    EXPECT_NE(found.error().text().find(word), std::string::npos) << found.error().text();
    EXPECT_NE(found.error().text().find("kumi run"), std::string::npos) << found.error().text();
}

TEST(Launcher, nothing_is_seen_where_nothing_is_set) { EXPECT_EQ(*found_in({}), Launcher::none); }

TEST(Launcher, each_is_known_by_what_it_leaves) {
    EXPECT_EQ(*found_in({{"KUMI_BOOT", "5"}}), Launcher::kumi_run);
    EXPECT_EQ(*found_in({{"PMIX_NAMESPACE", "prterun-1"}}), Launcher::pmix);
    EXPECT_EQ(*found_in({{"PMI_FD", "7"}}), Launcher::pmi1);
    EXPECT_EQ(*found_in({{"PMI_PORT", "vm:4000"}}), Launcher::pmi1);
}

TEST(Launcher, the_innermost_wins) {
    Variables all{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"PMI_FD", "7"}};
    EXPECT_EQ(*found_in(all), Launcher::pmi1);
    all.emplace("PMIX_NAMESPACE", "slurm.pmix.1.0");
    EXPECT_EQ(*found_in(all), Launcher::pmix);
    all.emplace("KUMI_BOOT", "5");
    EXPECT_EQ(*found_in(all), Launcher::kumi_run);
}

TEST(Launcher, many_tasks_that_cannot_find_each_other_are_refused_with_what_to_type) {
    expect_refused({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}, "one of 4 tasks");
    expect_refused({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}, "srun --mpi=pmix or srun --mpi=pmi2");
    expect_refused({{"OMPI_COMM_WORLD_SIZE", "3"}}, "one of 3 processes");
    expect_refused({{"PMI_SIZE", "3"}, {"PMI_RANK", "1"}}, "PMI_FD");
}

TEST(Launcher, a_task_alone_is_a_job_of_one_node) {
    EXPECT_EQ(*found_in({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}), Launcher::none);
    EXPECT_EQ(*found_in({{"SLURM_NTASKS", "4"}}), Launcher::none); // in salloc's shell
    EXPECT_EQ(*found_in({{"OMPI_COMM_WORLD_SIZE", "1"}}), Launcher::none);
}

} // namespace
} // namespace kumi::boot
