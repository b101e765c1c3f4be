// What nodes print and read.
#include "cluster/command.hpp"

#include <map>

using namespace kumi::cluster_test;

TEST(Output, each_stream_goes_to_its_own_and_labels_say_whose_line_it_is) {
    const Outcome outcome =
        run({.words = kumi_run_actor({"-n", "3", "--label"}, {"join", "2:bare=to out\n", "1:complain=to err"})});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.out, "[2] to out\n");
    EXPECT_EQ(outcome.err, "[1] to err\n");
}

TEST(Output, without_label_lines_come_as_they_are) {
    const Outcome outcome = run({.words = kumi_run_actor({"-n", "2"}, {"join", "1:bare=\n  a line\n\n"})});
    EXPECT_EQ(outcome.out, "\n  a line\n\n");
}

TEST(Output, long_lines_of_many_nodes_written_in_pieces_never_mix) {
    constexpr unsigned nodes = 8;
    constexpr unsigned lines_per_node = 30;
    const Outcome outcome = run({.words = kumi_run_actor({"-n", std::to_string(nodes), "-l"},
                                                         {"join", "lines=" + std::to_string(lines_per_node)})});
    EXPECT_EQ(outcome.code, 0);
    std::map<unsigned, unsigned> next_line;
    for (const std::string& line : lines_of(outcome.out)) {
        unsigned node = nodes;
        ASSERT_EQ(std::sscanf(line.c_str(), "[%u] ", &node), 1) << line.substr(0, 100);
        ASSERT_LT(node, nodes);
        const std::string number = std::to_string(node);
        ASSERT_EQ(line, "[" + number + "] " + number + " " + std::to_string(next_line[node]) + " " +
                            std::string(3000, static_cast<char>('a' + node)));
        ++next_line[node];
    }
    for (unsigned node = 0; node < nodes; ++node) EXPECT_EQ(next_line[node], lines_per_node) << "node " << node;
}

TEST(Output, a_last_line_without_its_end_gets_one) {
    const Outcome outcome = run({.words = kumi_run_actor({"-n", "2", "-l"}, {"join", "1:bare=half a line"})});
    EXPECT_EQ(outcome.out, "[1] half a line\n");
}

TEST(Output, a_line_of_200_kilobytes_arrives_whole) {
    const Outcome outcome = run({.words = kumi_run_actor({"-n", "1"}, {"join", "long=200000"})});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), 'x'), 200'000);
    EXPECT_LE(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 4) << "cut into more pieces than needed";
}

TEST(Output, nothing_is_lost_on_a_reader_who_starts_late) {
    // More than all pipes and kumi run's own buffer hold, and later than any grace for output.
    const Outcome outcome = run({.words = {"sh", "-c", "\"$0\" run -n 1 \"$1\" join flood=3000000 | (sleep 2; wc -c)",
                                           kumi_command, program("actor")}});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(std::atol(outcome.out.c_str()), 3'000'000);
}

TEST(Output, a_signal_ends_the_wait_for_a_reader_who_never_reads) {
    // Nobody reads before finish(), and kumi run holds all that the node wrote.
    Running command({.words = kumi_run_actor({"-n", "1"}, {"join", "flood=500000"})});
    const auto node_has_ended = [&] {
        const auto left = processes_marked(command.mark()); // kumi run and its guardian
        return left.size() == 2 && std::none_of(left.begin(), left.end(), [](const std::string& process) {
                   return contains(process, program("actor")) && !contains(process, kumi_command);
               });
    };
    ::poll(nullptr, 0, sanitized ? 3000 : 1000);
    ASSERT_TRUE(comes_true(node_has_ended, 10s)) << command.left_behind();
    command.signal(SIGTERM);
    EXPECT_TRUE(comes_true([&] { return processes_marked(command.mark()).empty(); }, 5s)) << command.left_behind();
    EXPECT_EQ(command.finish().code, 143);
}

TEST(Output, a_reader_who_has_seen_enough_ends_the_job) {
    const Outcome outcome =
        run({.words = {"sh", "-c", "\"$0\" run -n 2 \"$1\" join flood=0 | head -1", kumi_command, program("actor")}});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.out, std::string(99, 'f') + "\n");
    EXPECT_EQ(outcome.err, "");
}

TEST(Output, a_job_whose_reader_is_gone_ends_as_if_killed_by_SIGPIPE) {
    const Outcome outcome =
        run({.words = {"sh", "-c", "{ \"$0\" run -n 2 \"$1\" join flood=0; echo $? >&2; } | head -1", kumi_command,
                       program("actor")}});
    EXPECT_EQ(outcome.err, "141\n");
}

TEST(Output, a_full_disk_is_told) {
    const Outcome outcome =
        run({.words = {"sh", "-c", "exec \"$0\" run -n 2 \"$1\" >/dev/full", kumi_command, example("01_hello")}});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_TRUE(is_one_line(outcome.err, "kumi run: writing what the nodes print: No space left on device.*"));
}

TEST(Input, one_megabyte_reaches_node_0_and_nobody_else) {
    std::string input;
    unsigned long sum = 0;
    for (unsigned i = 0; input.size() < 1'000'000; i = i * 1664525 + 1013904223)
        input.push_back(static_cast<char>(i >> 24));
    for (const char c : input) sum = sum * 31 + static_cast<unsigned char>(c);
    const Outcome outcome = run({.words = kumi_run_actor({"-n", "3"}, {"join", "input"}), .input = input});
    EXPECT_EQ(outcome.code, 0);
    auto lines = lines_of(outcome.out);
    std::sort(lines.begin(), lines.end());
    EXPECT_EQ(lines, (Words{"node 0: 1000000 bytes, sum " + std::to_string(sum), "node 1: 0 bytes, sum 0",
                            "node 2: 0 bytes, sum 0"}));
}

TEST(Input, the_other_nodes_read_from_nowhere) {
    const Outcome outcome = run({.words = kumi_run_actor({"-n", "2"}, {"join", "1:input_path"})});
    EXPECT_EQ(outcome.out, "node 1: /dev/null\n");
}

TEST(Input, a_closed_standard_input_is_an_empty_one) {
    const Outcome outcome =
        run({.words = kumi_run_actor({"-n", "2"}, {"join", "0:input", "0:input_path"}), .input_closed = true});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(outcome.out, "node 0: 0 bytes, sum 0\nnode 0: /dev/null\n");
}

TEST(Input, kumi_run_works_with_all_standard_streams_closed) {
    const Outcome outcome = run({.words = {"sh", "-c", "exec \"$0\" run -n 2 \"$1\" join 1:exit=5 wait <&- >&- 2>&-",
                                           kumi_command, program("actor")}});
    EXPECT_EQ(outcome.code, 5);
}
