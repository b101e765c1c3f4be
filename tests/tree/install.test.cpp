// An installed Kumi is usable: what this build installs is moved elsewhere, somebody else's project is built with it,
// by CMake and by pkg-config, and runs under the installed command.

#include "skips.hpp"
#include "tree/read.hpp"

#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

namespace kumi::tree {
namespace {

/// This program lies in tests/ of the build.
fs::path build_dir() { return fs::read_symlink("/proc/self/exe").parent_path().parent_path(); }

/// How this build was configured.
std::string cache_value(const std::string& name) {
    const std::string cache = read(build_dir() / "CMakeCache.txt");
    const std::size_t entry = cache.find("\n" + name + ":"); // NAME:TYPE=value
    if (entry == std::string::npos) return "";
    const std::size_t value = cache.find('=', entry) + 1;
    return cache.substr(value, cache.find('\n', value) - value);
}

std::string compiler() { return cache_value("CMAKE_CXX_COMPILER"); }

/// A library built for a sanitizer is linked into programs built for it.
std::string sanitizer_flags() {
    const std::string sanitizer = cache_value("KUMI_SANITIZE");
    return sanitizer.empty() ? "" : "-fsanitize=" + sanitizer + (sanitizer == "address" ? ",undefined" : "");
}

class Install : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (fs::temp_directory_path() / "kumi-install-XXXXXX").string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        work_ = pattern;
        // Staged under DESTDIR for one prefix, used from another.
        run("DESTDIR='{}' cmake --install '{}' --prefix /opt/kumi", (work_ / "stage").string(), build_dir().string());
        ASSERT_TRUE(fs::exists(work_ / "stage/opt/kumi/bin/kumi"));
        fs::rename(work_ / "stage/opt/kumi", prefix());
    }

    void TearDown() override {
        if (!work_.empty()) fs::remove_all(work_);
    }

    /// Runs a shell command that must succeed; answers what it printed.
    template <class... Arguments>
    std::string run(fmt::format_string<Arguments...> command, Arguments&&... arguments) {
        const std::string line = fmt::format(command, std::forward<Arguments>(arguments)...);
        const fs::path log = work_ / "log";
        const int status = std::system(fmt::format("( {} ) >'{}' 2>&1", line, log.string()).c_str());
        EXPECT_EQ(status, 0) << line << "\n" << read(log);
        return read(log);
    }

    void expect_greetings_from(const fs::path& program) {
        const std::string said = run("'{}' run -n 2 '{}'", (prefix() / "bin/kumi").string(), program.string());
        EXPECT_NE(said.find("hello from node 0 of 2"), std::string::npos) << said;
        EXPECT_NE(said.find("hello from node 1 of 2"), std::string::npos) << said;
    }

    /// Open MPI speaks PMIx, for which a program needs a plugin that lies where Kumi was moved to.
    void expect_greetings_under_mpirun(const fs::path& program) {
        bool has_plugin = false;
        for (const auto& entry : fs::recursive_directory_iterator(prefix()))
            has_plugin |= entry.path().filename() == "libkumi-boot-pmix.so";
        if (!has_plugin || std::system("command -v mpirun.openmpi >/dev/null") != 0) return;
        const std::string said =
            run("TMPDIR='{}' timeout 30 mpirun.openmpi --allow-run-as-root --oversubscribe -n 2 '{}'", work_.string(),
                program.string());
        EXPECT_NE(said.find("hello from node 1 of 2"), std::string::npos) << said;
    }

    /// Where Kumi was built with an MPI: which one. Otherwise empty.
    std::string mpi() const {
        for (const auto& entry : fs::recursive_directory_iterator(prefix())) {
            const std::string name = entry.path().filename().string(), start = "libkumi_mpi_";
            if (name.starts_with(start)) return name.substr(start.size(), name.find('.') - start.size());
        }
        return "";
    }

    void expect_sums_from(const fs::path& program) {
        const std::string launcher = mpi() == "openmpi" ? "mpirun.openmpi --allow-run-as-root --oversubscribe"
                                     : mpi() == "mpich" ? "mpiexec.mpich"
                                                        : "mpiexec";
        const std::string said = run("TMPDIR='{}' timeout 60 {} -n 3 '{}'", work_.string(), launcher, program.string());
        for (int node = 0; node < 3; ++node)
            EXPECT_NE(said.find(fmt::format("node {} of 3: 6 by Kumi, 6 by MPI", node)), std::string::npos) << said;
    }

    fs::path work() const { return work_; }
    fs::path prefix() const { return work_ / "moved here"; }
    std::string hello() const { return (prefix() / "share/kumi/examples/01_hello.cpp").string(); }

private:
    fs::path work_;
};

TEST_F(Install, a_project_finds_it_through_cmake_and_its_program_runs) {
    const std::string build = (work() / "build").string();
    run("cmake -G Ninja -S '{}/tests/install' -B '{}' -DCMAKE_CXX_COMPILER='{}' -DCMAKE_CXX_FLAGS='{}' "
        "-DCMAKE_PREFIX_PATH='{}' -DHELLO='{}'",
        KUMI_SOURCE_DIR, build, compiler(), sanitizer_flags(), prefix().string(), hello());
    if (HasFailure()) return;
    EXPECT_NE(read(work() / "build/CMakeCache.txt").find("kumi_DIR:PATH=" + prefix().string()), std::string::npos)
        << "another Kumi was found";
    run("cmake --build '{}'", build);
    expect_greetings_from(work() / "build/hello");
    expect_greetings_under_mpirun(work() / "build/hello");
}

TEST_F(Install, pkg_config_tells_a_compiler_all_it_needs) {
    fs::path description;
    for (const auto& entry : fs::recursive_directory_iterator(prefix()))
        if (entry.path().filename() == "kumi.pc") description = entry.path();
    ASSERT_FALSE(description.empty());
    const fs::path program = work() / "hello";
    // eval: pkg-config quotes for a shell.
    run("flags=$(PKG_CONFIG_PATH='{}' pkg-config --cflags --libs kumi) && "
        "eval \"'{}' -std=c++20 {} -o '{}' '{}' $flags\"",
        description.parent_path().string(), compiler(), sanitizer_flags(), program.string(), hello());
    if (HasFailure()) return;
    expect_greetings_from(program);
    expect_greetings_under_mpirun(program);
}

TEST_F(Install, a_program_that_mpi_starts_finds_what_it_needs_through_cmake_and_pkg_config) {
    if (mpi().empty()) KUMI_SKIP(kumi::skips::built_without("MPI"));
    const std::string build = (work() / "build").string(), source = KUMI_SOURCE_DIR "/tests/install/mpi_sum.cpp";
    run("cmake -G Ninja -S '{}/tests/install' -B '{}' -DCMAKE_CXX_COMPILER='{}' -DCMAKE_PREFIX_PATH='{}' -DHELLO='{}' "
        "-DMPI_SUM='{}'",
        KUMI_SOURCE_DIR, build, compiler(), prefix().string(), hello(), source);
    if (HasFailure()) return;
    run("cmake --build '{}'", build);
    expect_sums_from(work() / "build/mpi_sum");

    fs::path description;
    for (const auto& entry : fs::recursive_directory_iterator(prefix()))
        if (entry.path().filename() == "kumi-mpi.pc") description = entry.path();
    ASSERT_FALSE(description.empty());
    const fs::path program = work() / "mpi_sum";
    run("flags=$(PKG_CONFIG_PATH='{}' pkg-config --cflags --libs kumi-mpi) && eval \"mpicxx -std=c++20 -o '{}' '{}' "
        "$flags\"",
        description.parent_path().string(), program.string(), source);
    if (HasFailure()) return;
    expect_sums_from(program);
}

TEST_F(Install, headers_come_without_what_is_nobody_elses_business) {
    const fs::path headers = prefix() / "include/kumi";
    EXPECT_TRUE(fs::exists(headers / "kumi.hpp"));
    EXPECT_FALSE(fs::exists(headers / "launch"));
    for (const auto& entry : fs::recursive_directory_iterator(headers)) {
        EXPECT_NE(entry.path().filename(), "internal") << entry.path();
        if (entry.is_regular_file()) {
            EXPECT_TRUE(entry.path().string().ends_with(".hpp")) << entry.path();
        }
    }
}

} // namespace
} // namespace kumi::tree
