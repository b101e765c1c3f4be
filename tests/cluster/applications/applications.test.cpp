// Whole programs as users write them. Each computes on all nodes what a serial program computes, too; node 0 compares
// the two, prints one line if they agree, and fails if they do not.
#include "cluster/command.hpp"

using namespace kumi::cluster_test;

namespace {

const std::string as_serial = ", as the serial program";

/// Runs a program over shared memory, and over UDP with losses. `pattern` is what it prints behind the number of nodes.
void expect_as_serial(const std::string& name, const std::string& title, const std::string& pattern) {
    const auto check = [&](const char* nodes, const Words& environment) {
        const std::string trace = name + " on " + nodes + " nodes" + (environment.empty() ? "" : ", " + environment[0]);
        const Outcome outcome = run({.words = kumi_run({"-n", nodes, program(name)}), .environment = environment});
        EXPECT_EQ(outcome.code, 0) << trace;
        EXPECT_EQ(outcome.err, "") << trace;
        EXPECT_TRUE(is_one_line(outcome.out, title + " on " + nodes + " nodes: " + pattern + as_serial)) << trace;
    };
    for (const char* const nodes : {"1", "2", "3", "5"}) check(nodes, {"KUMI_DEVICE=shmem"});
    check("2", {"KUMI_DEVICE=udp"});
    check("3", {"KUMI_DEVICE=udp", "KUMI_FAULT=udp.loss=0.01,udp.seed=5"});
}

} // namespace

TEST(Applications, conjugate_gradients_find_the_serial_solution_in_as_many_iterations) {
    expect_as_serial("conjugate_gradient", "conjugate gradient", "41 x 30 grid, [0-9]+ iterations");
}

TEST(Applications, a_histogram_by_remote_additions_counts_every_key_once) {
    expect_as_serial("histogram", "histogram", "20001 keys in 97 bins");
}

TEST(Applications, a_steered_simulation_changes_its_rate_at_the_same_step_on_all_nodes) {
    expect_as_serial("steered", "steered simulation", "1003 cells, [0-9]+ steps, [123] changes");
}

TEST(Applications, a_sample_sort_sorts_equal_keys_and_inputs_that_some_nodes_have_nothing_of) {
    expect_as_serial("sample_sort", "sample sort", "53025 keys of 7 inputs");
}

TEST(Applications, a_stencil_has_the_bits_of_the_serial_one_in_strips_of_rows_and_of_columns) {
    expect_as_serial("stencil", "stencil", "37 x 29 cells, 50 steps, tiles 1 x [0-9]+(, [0-9]+ x 1)?");
}

TEST(Applications, a_stencil_has_the_bits_of_the_serial_one_in_tiles) {
    const Outcome outcome = run({.words = kumi_run({"-n", "6", program("stencil"), "13", "17", "20"})});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(outcome.out,
              "stencil on 6 nodes: 13 x 17 cells, 20 steps, tiles 1 x 6, 2 x 3, 3 x 2, 6 x 1" + as_serial + "\n");
}
