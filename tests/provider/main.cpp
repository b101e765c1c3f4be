#include "world.hpp"

#include <cstdio>

namespace {

/// Tells failures and nothing else: one report of what went well is enough.
class Failures : public testing::EmptyTestEventListener {
    void OnTestPartResult(const testing::TestPartResult& result) override {
        if (!result.failed()) return;
        std::fprintf(stderr, "node %u: %s:%d: %s\n", kumi::provider_test::world->node(), result.file_name(),
                     result.line_number(), result.message());
    }
};

} // namespace

/// `kumi run -n 3 provider_tests`: every process runs all tests. The last one leaves before the tests of losses.
int main(int count, char** words) {
    testing::InitGoogleTest(&count, words);
    kumi::provider_test::World here;
    kumi::provider_test::world = &here;
    if (here.nodes != 3) return std::fprintf(stderr, "provider_tests: run it by kumi run -n 3\n"), 2;
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    if (here.node() != 0) {
        delete listeners.Release(listeners.default_result_printer());
        listeners.Append(new Failures);
    }
    if (here.node() == 2) testing::GTEST_FLAG(filter) = "-Losses.*";
    return RUN_ALL_TESTS();
}
