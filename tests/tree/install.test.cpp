// An installed Kumi is usable: what this build installs is moved elsewhere, somebody else's project is built with it,
// by CMake and by pkg-config, and runs under the installed command. Its headers are those of cmake/public_headers.txt.

#include "skips.hpp"
#include "tree/build.hpp"
#include "tree/read.hpp"

#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <set>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace kumi::tree {
namespace {

/// A library built for a sanitizer is linked into programs built for it.
std::string sanitizer_flags() {
    const std::string sanitizer = cache_value("KUMI_SANITIZE");
    return sanitizer.empty() ? "" : "-fsanitize=" + sanitizer + (sanitizer == "address" ? ",undefined" : "");
}

using Headers = std::set<std::string>; // "kumi/kumi.hpp"

/// What cmake/public_headers.txt says; with or without those of the component mpi.
Headers public_headers(std::istream&& list, bool with_mpi) {
    Headers headers;
    for (std::string line; std::getline(list, line);) {
        std::istringstream words(line);
        std::string header, component;
        words >> header >> component;
        if (header.empty() || header.front() == '#' || (component == "mpi" && !with_mpi)) continue;
        headers.insert("kumi/" + header);
    }
    return headers;
}
Headers public_headers(bool with_mpi) {
    return public_headers(std::istringstream(read(KUMI_SOURCE_DIR "/cmake/public_headers.txt")), with_mpi);
}

/// The headers of Kumi that a header with this text includes.
Headers included_in(const std::string& text) {
    Headers headers;
    const std::string start = "#include \"kumi/";
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with(start)) headers.insert(line.substr(10, line.find('"', 10) - 10));
    return headers;
}

/// These headers of the tree at `include` and all that they include, directly or not.
Headers reached_from(const Headers& headers, const fs::path& include) {
    Headers reached;
    std::vector<std::string> left(headers.begin(), headers.end());
    while (!left.empty()) {
        const std::string header = left.back();
        left.pop_back();
        if (!reached.insert(header).second) continue;
        for (const std::string& next : included_in(read(include / header))) left.push_back(next);
    }
    return reached;
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

    /// All headers that were installed.
    Headers installed() const {
        Headers headers;
        for (const auto& entry : fs::recursive_directory_iterator(prefix() / "include"))
            if (entry.is_regular_file())
                headers.insert(fs::relative(entry.path(), prefix() / "include").generic_string());
        return headers;
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

TEST_F(Install, headers_are_the_public_ones_and_what_these_include) {
    const Headers expected = reached_from(public_headers(!mpi().empty()), KUMI_SOURCE_DIR "/src"), have = installed();
    for (const std::string& header : have)
        EXPECT_TRUE(expected.contains(header)) << header << " is neither public nor included by a public header";
    for (const std::string& header : expected) EXPECT_TRUE(have.contains(header)) << header << " is missing";
    EXPECT_EQ(have.contains("kumi/mpi.hpp"), !mpi().empty());
}

TEST_F(Install, each_public_header_compiles_by_itself) {
    for (const std::string& header : public_headers(!mpi().empty())) {
        const std::string file = (work() / "alone.cpp").string();
        std::ofstream(file) << "#include <" << header << ">\n";
        // Without MPI's own C++ headers, which have warnings.
        const std::string mpicxx = "OMPI_CXX='" + compiler() + "' MPICH_CXX='" + compiler() +
                                   "' mpicxx -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX";
        run("{} -std=c++20 -fsyntax-only -Wall -Wextra -Werror -I '{}' '{}'",
            header == "kumi/mpi.hpp" ? mpicxx : "'" + compiler() + "'", (prefix() / "include").string(), file);
    }
}

TEST(PublicHeaders, are_read_from_their_list) {
    const std::string list = "# a comment\nkumi.hpp\n\nmpi.hpp mpi\nbase/bytes.hpp\n";
    EXPECT_EQ(public_headers(std::istringstream(list), false), (Headers{"kumi/kumi.hpp", "kumi/base/bytes.hpp"}));
    EXPECT_TRUE(public_headers(std::istringstream(list), true).contains("kumi/mpi.hpp"));
    EXPECT_EQ(included_in("#include \"kumi/a.hpp\"\n#include <b>\n#include \"kumi/c/d.hpp\" // e\n"),
              (Headers{"kumi/a.hpp", "kumi/c/d.hpp"}));
}

TEST(PublicHeaders, are_few_and_each_opens_with_what_it_is_for) {
    const Headers headers = public_headers(true);
    EXPECT_GE(headers.size(), 10u);
    EXPECT_LE(headers.size(), 25u);
    for (const std::string& header : headers)
        EXPECT_TRUE(read(fs::path(KUMI_SOURCE_DIR "/src") / header).starts_with("#pragma once\n\n// ")) << header;
}

} // namespace
} // namespace kumi::tree
