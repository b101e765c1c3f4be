// kumi bench: that contestants measure something and leave nothing behind; not how fast anything is.
#include "cluster/lab.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

using namespace kumi::cluster_test;

namespace {

/// What a contestant that is nothing but sockets reports.
Outcome bare(const std::string& what, const std::string& who, const std::string& network) {
    return run({.words = {KUMI_BUILD_DIR "/libexec/kumi/kumi-bench", "node", "udp", what, who, network, "no-folder"}});
}

} // namespace

class BareSockets : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(BareSockets, report_one_figure_between_two_hosts) {
    const auto [what, who] = GetParam();
    if (const auto reason = probes::no_two_hosts()) KUMI_SKIP(*reason);
    const Outcome outcome = bare(what, who, "veth");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(is_one_line(outcome.out, "result udp\\." + std::string(what) + "\\.veth [0-9.e+]+"));
}

INSTANTIATE_TEST_SUITE_P(Bench, BareSockets,
                         testing::Values(std::pair("latency.64", "limit"), std::pair("sleeping.64", "tcp"),
                                         std::pair("bulk", "limit"), std::pair("rate.32", "tcp_nagle"),
                                         std::pair("mix", "tcp")),
                         [](const auto& what) {
                             return std::string(what.param.first).substr(0, 3) + what.param.second;
                         });

TEST(Bench, measures_the_rows_that_were_asked_for_and_says_who_was_not_measured) {
    const Outcome outcome = run({.words = {kumi_command, "bench", "udp", "--rows", "udp.rate.32.loopback", "--rounds",
                                           "1", "--against", "tcp,enet,zeromq"}});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, ""); // progress is shown on a terminal, and elsewhere only after some time
    EXPECT_TRUE(
        matches(lines_of(outcome.out).at(1), "udp.rate.32.loopback .* tcp_nodelay [0-9.]+  tcp_nagle [0-9.]+.*"))
        << outcome.out;
    // A figure where its program was built, and why there is none where not.
    for (const std::string peer : {"enet", "zeromq"}) {
        const bool is_built = probes::has_program(KUMI_BUILD_DIR "/libexec/kumi/kumi-bench-" + peer);
        EXPECT_EQ(matches(lines_of(outcome.out).at(1), ".*  " + peer + " [0-9.]+.*"), is_built) << outcome.out;
        EXPECT_EQ(
            contains(outcome.out,
                     "note: " + peer + " rate.32 loopback: not measured: its program was not built; install " + peer),
            !is_built)
            << outcome.out;
    }
}

TEST(Bench, shows_what_calls_cost_as_jobs_grow_and_draws_it) {
    const Folder figures;
    const Outcome outcome = run({.words = {kumi_command, "bench", "scale", "--rounds", "1", "--figures", figures.path(),
                                           "--rows", "scale.sleep.4,scale.sync.4,scale.plan.4,scale.start.2"}});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::size_t rows = 0;
    for (const std::string& line : lines_of(outcome.out))
        rows += matches(line, "scale[.][a-z]+[.][0-9]+ .* [0-9.]+ .*");
    // 4 and 4,096 nodes begin alike, and so do 2 nodes and none else.
    EXPECT_EQ(rows, 7u) << outcome.out;
    for (const char* const file : {"scale-alone.svg", "scale-together.svg"})
        EXPECT_TRUE(contains(file_text(figures.path() + "/" + file), "</svg>")) << file;
}

TEST(Bench, shows_latency_and_bandwidth_against_sizes_and_draws_them) {
    const Folder figures;
    const Outcome outcome = run({.words = {kumi_command, "bench", "sizes", "--rounds", "1", "--figures", figures.path(),
                                           "--rows", "sizes.latency.shmem,sizes.bandwidth.shmem"}});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::size_t rows = 0;
    for (const std::string& line : lines_of(outcome.out))
        rows += matches(line, "sizes[.](latency|bandwidth)[.]shmem[.][0-9]+ .* [0-9.]+ .*");
    EXPECT_EQ(rows, 24u) << outcome.out;
    EXPECT_TRUE(contains(outcome.out, "note: Kumi shmem: half of its greatest bandwidth with messages of "))
        << outcome.out;
    for (const char* const file : {"latency-shmem.svg", "bandwidth-shmem.svg"})
        EXPECT_TRUE(contains(file_text(figures.path() + "/" + file), ">Kumi</text>")) << file;
}

TEST(Bench, draws_patterns_beside_what_the_papers_say) {
    const Folder figures;
    const Outcome outcome = run({.words = {kumi_command, "bench", "patterns", "--rounds", "1", "--figures",
                                           figures.path(), "--rows", "patterns.barrier.2,patterns.pingpongs.10.1"}});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    for (const auto& [file, paper] : {std::pair{"patterns-barrier.svg", ">NICAM, 1999: 7 us a stage</text>"},
                                      std::pair{"patterns-pingpongs.svg", ">NT cluster, two hosts</text>"}}) {
        const std::string picture = file_text(figures.path() + "/" + file);
        EXPECT_TRUE(contains(picture, ">Kumi</text>")) << file << "\n" << outcome.out;
        EXPECT_TRUE(contains(picture, paper)) << file;
    }
    EXPECT_FALSE(std::filesystem::exists(figures.path() + "/patterns-pairs-8192.svg")) << "that was not measured";
}

TEST(Bench, a_peer_that_the_case_does_not_know_is_refused) {
    const Outcome outcome = run({.words = {kumi_command, "bench", "udp", "--against", "mpich"}});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_TRUE(is_one_line(outcome.err, "kumi bench: --against: udp has no peer mpich; there are: tcp, .*"));
    EXPECT_EQ(outcome.out, "");
}

TEST(Bench, a_row_that_the_case_does_not_have_is_refused) {
    for (const char* bench : {"udp", "composite", "engine", "group", "patterns"}) {
        const Outcome outcome = run({.words = {kumi_command, "bench", bench, "--rows", "composite.poll,nothing"}});
        EXPECT_EQ(outcome.code, 2);
        EXPECT_TRUE(is_one_line(outcome.err, "kumi bench: --rows: " + std::string(bench) +
                                                 " has no row (nothing|composite.poll); there are: " + bench +
                                                 "\\..*"));
        EXPECT_EQ(outcome.out, "");
    }
    const Outcome whole = run({.words = {kumi_command, "bench", "shmem", "--rows", "shmem.latency"}});
    EXPECT_EQ(whole.code, 2);
    EXPECT_TRUE(is_one_line(whole.err, "kumi bench: --rows: shmem is measured as a whole"));
}

namespace {

/// A benchmark that has a lab of its own.
class BenchInLab : public testing::Test {
protected:
    void SetUp() override {
        if (sanitized) KUMI_SKIP(skips::plain_build_only);
        if (const auto reason = probes::no_lab()) KUMI_SKIP(*reason);
    }
    Command bench(const std::string& row) const { return bench(Words{"composite", "--rows", row}); }
    Command bench(const Words& words) const {
        Words all{kumi_command, "bench", "--rounds", "1"};
        all.insert(all.end(), words.begin(), words.end());
        return {.words = all, .environment = {"TMPDIR=" + folder_.path()}};
    }
    /// Kumi's figure in the table's first row; 0, when there is none.
    static double figure(const Outcome& outcome, const std::string& row) {
        double value = 0;
        EXPECT_EQ(std::sscanf(lines_of(outcome.out).at(1).c_str(), (row + " %*s %*s %lf").c_str(), &value), 1)
            << outcome.out;
        return value;
    }
    bool nothing_is_left() const { return std::filesystem::is_empty(folder_.path()); }
    Folder folder_; // for what the benchmark makes
    Folder files_;
};

} // namespace

TEST_F(BenchInLab, measures_a_pause_when_a_cable_is_pulled_and_leaves_nothing) {
    const Outcome outcome = run(bench("composite.failover.carrier"));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const double pause_ms = figure(outcome, "composite.failover.carrier");
    EXPECT_GT(pause_ms, 0.1); // messages are as far apart
    EXPECT_LT(pause_ms, 3000);
    EXPECT_TRUE(nothing_is_left());
}

TEST_F(BenchInLab, compares_the_best_networks_with_the_lan) {
    const Outcome outcome = run(bench("composite.neighbours.1024"));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_GT(figure(outcome, "composite.neighbours.1024"), 0);
    EXPECT_TRUE(matches(lines_of(outcome.out).at(1), ".*  lan [0-9.]+")) << outcome.out;
}

TEST_F(BenchInLab, sums_up_over_nodes_on_four_hosts_on_two_and_on_one) {
    const std::string row = "group.allreduce.8.";
    const Outcome outcome = run(bench({"group", "--rows", row + "4x1," + row + "2x2," + row + "1x4"}));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const auto lines = lines_of(outcome.out);
    ASSERT_GE(lines.size(), 4u) << outcome.out;
    std::size_t line = 0;
    for (const char* place : {"4x1", "2x2", "1x4"})
        EXPECT_TRUE(matches(lines[++line], row + place + "\\.lab +us +lower +[0-9.]+ .*")) << outcome.out;
}

TEST_F(BenchInLab, goes_down_when_the_benchmark_is_interrupted_or_killed) {
    for (const int number : {SIGINT, SIGKILL}) {
        Running running(bench("composite.soak"));
        EXPECT_TRUE(comes_true([&] { return !processes_marked(running.mark()).empty() && !nothing_is_left(); }, 10s));
        std::this_thread::sleep_for(300ms); // the lab is coming up, or its job is
        running.signal(number);
        EXPECT_EQ(running.finish().code, 128 + number);
        EXPECT_TRUE(comes_true([&] { return nothing_is_left(); }, 10s));
    }
}

namespace {

/// Rows of a benchmark, by how their names go on.
struct RowsOf {
    const char* name; // of the test
    Words rows;
    std::string bench = "engine";
};

class JobBench : public BenchInLab, public testing::WithParamInterface<RowsOf> {
protected:
    static bool has_limit(const std::string& id) {
        return id.starts_with("engine.am.") || id.starts_with("engine.put_notify.") || id.starts_with("engine.put.") ||
               id.starts_with("patterns.barrier.") || id == "engine.get.1048576.shmem";
    }
};

} // namespace

TEST_P(JobBench, has_figures_and_leaves_nothing) {
    const std::string& bench_name = GetParam().bench;
    std::string rows;
    for (const std::string& row : GetParam().rows) rows += (rows.empty() ? "" : ",") + bench_name + "." + row;
    const std::string json_path = files_.path() + "/rows.json";
    const Outcome outcome = run(bench(Words{bench_name, "--rows", rows, "--json", json_path}));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const auto measured = nlohmann::json::parse(std::ifstream(json_path));
    for (const std::string& row : GetParam().rows) {
        const std::string id = bench_name + "." + row;
        const auto found =
            std::find_if(measured.begin(), measured.end(), [&](const auto& one) { return one["id"] == id; });
        ASSERT_NE(found, measured.end()) << id;
        EXPECT_TRUE((*found)["kumi"].is_number()) << *found << "\n" << outcome.out;
        EXPECT_EQ((*found)["limit"].is_number(), has_limit(id)) << *found << "\n" << outcome.out;
    }
    EXPECT_TRUE(nothing_is_left());
}

INSTANTIATE_TEST_SUITE_P(
    Bench, JobBench,
    testing::Values(RowsOf{"memory",
                           {"am.shmem", "put_notify.8.shmem", "issue.8.shmem", "put.1048576.shmem", "get.1048576.shmem",
                            "put_flush.8.shmem", "put_flush.1048576.shmem", "fetch_add.shmem"}},
                    RowsOf{"network",
                           {"am.udp", "issue.8.udp", "put.1048576.udp", "get.1048576.udp", "put_flush.8.udp",
                            "put_flush.1048576.udp", "fetch_add.udp"}},
                    RowsOf{"barriers", {"barrier.2", "barrier.4", "barrier.8", "barrier.16", "barrier.12.lab"}},
                    RowsOf{"hidden", {"barrier_hidden.2", "barrier_hidden.4", "barrier_hidden.12.lab"}},
                    RowsOf{"progress", {"answer.shmem", "answer.udp", "idle"}},
                    RowsOf{"jacobi",
                           {"jacobi.overlap", "jacobi.speedup.1.plain", "jacobi.speedup.1.overlap",
                            "jacobi.speedup.2.plain", "jacobi.speedup.2.overlap", "jacobi.speedup.4.plain",
                            "jacobi.speedup.4.overlap"}},
                    RowsOf{"multicasts",
                           {"multicast.64.4", "multicast.8192.4", "multicast.81920.4", "multicast.1048576.4",
                            "master.4", "allreduce.8.4"},
                           "group"},
                    RowsOf{"sets_in_a_lab", {"create.64.12.lab"}, "group"},
                    RowsOf{"patterns",
                           {"pairs.8192.2", "pingpongs.10.1", "incast.64.2.shmem", "incast.64.2.lab", "barrier.4",
                            "placement.8.2x2.lab", "multicasts.64.2"},
                           "patterns"}),
    [](const auto& rows) { return std::string(rows.param.name); });
