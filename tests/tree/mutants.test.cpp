// tests/mutants: the faults that `make mutants` puts into the sources are faults of the sources as they are.

#include <cstdlib>
#include <gtest/gtest.h>

TEST(Mutants, every_fault_of_the_list_applies_to_the_sources) {
    EXPECT_EQ(std::system("'" KUMI_SOURCE_DIR "/scripts/mutants.sh' --check"), 0);
}
