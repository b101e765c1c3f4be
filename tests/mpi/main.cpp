#include "conformance/world.hpp"
#include "kumi/mpi.hpp"
#include "mpi/ranks.hpp"

#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>

namespace kumi::mpi_test {
namespace {

std::string said_before_init;

/// Of ranks other than the first: failures, and nothing else.
class FailurePrinter final : public testing::EmptyTestEventListener {
    // In OnTestPartResult() GoogleTest has its mutex, and the name of the test cannot be asked for.
    void OnTestStart(const testing::TestInfo& test) override {
        test_ = std::string(test.test_suite_name()) + "." + test.name();
    }
    void OnTestPartResult(const testing::TestPartResult& result) override {
        if (!result.failed()) return;
        std::fprintf(stderr, "rank %d in %s: %s:%d: %s\n", rank(), test_.c_str(),
                     result.file_name() != nullptr ? result.file_name() : "?", result.line_number(), result.message());
    }

    std::string test_ = "no test";
};

/// Says which tests failed, whatever became of standard output: launchers may lose the end of it.
void tell_failed_tests() {
    const testing::UnitTest& all = *testing::UnitTest::GetInstance();
    for (int i = 0; i < all.total_test_suite_count(); ++i) {
        const testing::TestSuite& suite = *all.GetTestSuite(i);
        for (int j = 0; j < suite.total_test_count(); ++j)
            if (const testing::TestInfo& test = *suite.GetTestInfo(j); test.result()->Failed())
                std::fprintf(stderr, "rank %d: %s.%s failed\n", rank(), suite.name(), test.name());
    }
}

std::string refusal() {
    const auto job = mpi::join(MPI_COMM_WORLD);
    return job ? "" : job.error().text();
}

} // namespace

const std::string& refusal_before_init() { return said_before_init; }

int run(int argc, char** argv) {
    said_before_init = refusal();
    const char* const threads = std::getenv("KUMI_TEST_THREADS");
    int provided = 0;
    MPI_Init_thread(&argc, &argv,
                    threads != nullptr && std::string_view(threads) == "funneled" ? MPI_THREAD_FUNNELED
                                                                                  : MPI_THREAD_MULTIPLE,
                    &provided);
    testing::InitGoogleTest(&argc, argv);
    if (rank() != 0) {
        auto& listeners = testing::UnitTest::GetInstance()->listeners();
        delete listeners.Release(listeners.default_result_printer());
        listeners.Append(new FailurePrinter);
    }
    if (std::getenv("KUMI_TEST_FORGETS_TO_LEAVE") != nullptr) {
        const auto job = mpi::join(MPI_COMM_WORLD);
        return MPI_Finalize();
    }
    conformance::seed(); // all ranks at once
    int code = RUN_ALL_TESTS();
    tell_failed_tests();
    std::fflush(nullptr);
    MPI_Finalize();
    if (refusal().find("MPI_Finalize was called already") == std::string::npos) {
        std::fprintf(stderr, "joining after MPI_Finalize says: %s\n", refusal().c_str());
        code = 1;
    }
    return code;
}

} // namespace kumi::mpi_test

int main(int argc, char** argv) { return kumi::mpi_test::run(argc, argv); }
