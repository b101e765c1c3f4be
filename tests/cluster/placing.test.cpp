// Where nodes run: on which cores, in which folder, with which arguments and environment.
#include "cluster/command.hpp"

#include <sched.h>
#include <set>

using namespace kumi::cluster_test;

namespace {

std::set<int> numbers_in(const std::string& text) {
    std::set<int> numbers;
    std::istringstream stream(text);
    for (std::string number; std::getline(stream, number, ',');) numbers.insert(std::atoi(number.c_str()));
    return numbers;
}

/// The processors that share a core with `processor`, itself included.
std::set<int> core_of(int processor) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/topology/";
    std::set<int> mates{processor};
    std::istringstream ranges(file_text(folder + "thread_siblings_list"));
    for (std::string range; std::getline(ranges, range, ',');) {
        const int first = std::atoi(range.c_str());
        const auto dash = range.find('-');
        const int last = dash == std::string::npos ? first : std::atoi(range.c_str() + dash + 1);
        for (int mate = first; mate <= last; ++mate) mates.insert(mate);
    }
    return mates;
}

std::set<int> ours() {
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof set, &set);
    std::set<int> numbers;
    for (int i = 0; i < CPU_SETSIZE; ++i)
        if (CPU_ISSET(i, &set)) numbers.insert(i);
    return numbers;
}

std::size_t cores() {
    std::set<std::set<int>> different;
    for (const int processor : ours()) different.insert(core_of(processor));
    return different.size();
}

/// A place where jobs claim cores, which no other test's jobs see.
class Claims {
public:
    Claims() {
        for (const int processor : ours())
            for (const int mate : core_of(processor)) folder_.write("cpu" + std::to_string(mate), "", false);
    }
    std::vector<std::string> environment() const { return {"KUMI_CORES=" + folder_.path()}; }

private:
    Folder folder_;
};

/// The processors of the first `count` cores that we may use.
std::set<int> first_cores(std::size_t count) {
    std::set<int> allowed;
    std::set<std::set<int>> taken;
    for (const int processor : ours())
        if (taken.size() < count || taken.count(core_of(processor)) != 0)
            allowed.insert(processor), taken.insert(core_of(processor));
    return allowed;
}

using Places = std::vector<std::set<int>>;

/// The processors that each node may use, by what the nodes printed.
Places places_in(const std::string& out) {
    Places found;
    const std::string words = "may use ";
    for (const std::string& line : lines_of(out))
        if (const auto at = line.find(words); at != std::string::npos)
            found.push_back(numbers_in(line.substr(at + words.size())));
    return found;
}

/// A job whose nodes say which processors they may use, then do `steps`. kumi run may use those of `allowed`.
Command placed_job(Words options, const Words& steps, const std::vector<std::string>& environment,
                   const std::set<int>& allowed) {
    Words all{"join", "processors"};
    all.insert(all.end(), steps.begin(), steps.end());
    const auto restrict = [allowed] {
        cpu_set_t set;
        CPU_ZERO(&set);
        for (const int processor : allowed) CPU_SET(processor, &set);
        return ::sched_setaffinity(0, sizeof set, &set) == 0;
    };
    return {.words = kumi_run_actor(std::move(options), all), .environment = environment, .prepare = restrict};
}

/// The places of the nodes of a job that runs and ends.
Places places(Words options, const std::set<int>& allowed = ours(), const Claims& claims = {}) {
    const Outcome outcome = run(placed_job(std::move(options), {}, claims.environment(), allowed));
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    return places_in(outcome.out);
}

/// A job that keeps its cores until it is ended.
class Holder {
public:
    Holder(const Words& options, const std::vector<std::string>& environment, const std::set<int>& allowed)
        : job_(placed_job(options, {"say=here", "wait"}, environment, allowed)) {}

    Places places(unsigned nodes) { return job_.printed("here", nodes) ? places_in(job_.out()) : Places{}; }
    void end(int signal) {
        job_.signal(signal);
        EXPECT_EQ(job_.finish().code, 128 + signal);
    }

private:
    Running job_;
};

} // namespace

TEST(Binding, two_nodes_get_a_whole_core_each) {
    if (cores() < 2) KUMI_SKIP(skips::system_lacks("2 cores"));
    const auto found = places({"-n", "2"});
    ASSERT_EQ(found.size(), 2u);
    for (const auto& place : found) {
        std::set<int> core;
        for (const int processor : core_of(*place.begin()))
            if (ours().count(processor) != 0) core.insert(processor);
        EXPECT_EQ(place, core);
    }
    EXPECT_NE(found[0], found[1]);
}

TEST(Binding, as_many_nodes_as_cores_share_none) {
    const std::size_t nodes = std::min<std::size_t>(cores(), 16);
    const auto found = places({"-n", std::to_string(nodes)});
    ASSERT_EQ(found.size(), nodes);
    EXPECT_EQ(std::set<std::set<int>>(found.begin(), found.end()).size(), nodes);
}

TEST(Binding, more_nodes_than_cores_are_placed_by_the_system) {
    // On a large machine three nodes may use two cores of it.
    const std::set<int> allowed = first_cores(2);
    const std::size_t nodes = std::min<std::size_t>(cores(), 2) + 1;
    const auto found = places({"-n", std::to_string(nodes)}, allowed);
    ASSERT_EQ(found.size(), nodes);
    for (const auto& place : found) EXPECT_EQ(place, allowed);
}

TEST(Binding, no_bind_leaves_nodes_where_we_may_run) {
    const auto found = places({"-n", "2", "--no-bind"});
    ASSERT_EQ(found.size(), 2u);
    for (const auto& place : found) EXPECT_EQ(place, ours());
}

// ---- several jobs

TEST(Binding, a_second_job_takes_a_core_that_the_first_has_left_and_the_next_job_has_it_again) {
    if (cores() < 2) KUMI_SKIP(skips::system_lacks("2 cores"));
    const Claims claims;
    const std::set<int> allowed = first_cores(2);
    for (const int signal : {SIGTERM, SIGKILL}) { // a killed kumi run leaves no core taken
        Holder first({"-n", "1"}, claims.environment(), allowed);
        const Places of_first = first.places(1);
        ASSERT_EQ(of_first, Places{first_cores(1)});
        const Places of_second = places({"-n", "1"}, allowed, claims);
        ASSERT_EQ(of_second.size(), 1u);
        for (const int processor : of_second[0]) EXPECT_EQ(of_first[0].count(processor), 0u) << processor;
        EXPECT_LT(of_second[0].size(), allowed.size()) << "it is bound";
        first.end(signal);
        EXPECT_EQ(places({"-n", "1"}, allowed, claims), of_first);
    }
}

TEST(Binding, jobs_that_start_at_the_same_moment_have_different_cores) {
    if (cores() < 2) KUMI_SKIP(skips::system_lacks("2 cores"));
    const Claims claims;
    const std::set<int> allowed = first_cores(2);
    for (int round = 0; round < 3; ++round) {
        Holder one({"-n", "1"}, claims.environment(), allowed), other({"-n", "1"}, claims.environment(), allowed);
        const Places of_one = one.places(1), of_other = other.places(1);
        ASSERT_EQ(of_one.size() + of_other.size(), 2u);
        EXPECT_EQ(of_one[0].size() + of_other[0].size(), allowed.size()) << "both are bound";
        EXPECT_NE(of_one, of_other);
        one.end(SIGTERM), other.end(SIGTERM);
    }
}

TEST(Binding, a_job_that_finds_too_few_free_cores_is_placed_by_the_system_and_takes_none) {
    if (cores() < 2) KUMI_SKIP(skips::system_lacks("2 cores"));
    const Claims claims;
    const std::set<int> allowed = first_cores(2);
    Holder first({"-n", "1"}, claims.environment(), allowed);
    ASSERT_EQ(first.places(1).size(), 1u);
    Holder second({"-n", "2"}, claims.environment(), allowed);
    EXPECT_EQ(second.places(2), (Places{allowed, allowed})) << "one core is free";
    Holder third({"-n", "1"}, claims.environment(), allowed);
    const Places of_third = third.places(1);
    EXPECT_NE(of_third, first.places(1));
    EXPECT_NE(of_third, Places{allowed}) << "that core is still free";
    EXPECT_EQ(places({"-n", "1"}, allowed, claims), Places{allowed}) << "no core is free";
    const Places of_all = places({"-n", "2"}, allowed, claims);
    EXPECT_EQ(std::set<std::set<int>>(of_all.begin(), of_all.end()),
              (std::set<std::set<int>>{of_third[0], first.places(1)[0]}))
        << "a node on each core, beside another job's";
    first.end(SIGTERM), second.end(SIGTERM), third.end(SIGTERM);
}

TEST(Binding, the_core_of_a_node_that_has_ended_is_free_though_the_job_goes_on) {
    if (cores() < 2) KUMI_SKIP(skips::system_lacks("2 cores"));
    const Claims claims;
    const std::set<int> allowed = first_cores(2);
    Running job(
        {.words = kumi_run({"-n", "2", "--no-join", "sh", "-c", "echo here; [ $KUMI_NODE = 0 ] || exec sleep 1000"}),
         .environment = claims.environment(),
         .prepare = placed_job({}, {}, {}, allowed).prepare});
    ASSERT_TRUE(job.printed("here", 2));
    EXPECT_TRUE(comes_true([&] { return places({"-n", "1"}, allowed, claims) == Places{first_cores(1)}; }, 20s));
    job.signal(SIGTERM);
    EXPECT_EQ(job.finish().code, 128 + SIGTERM);
}

TEST(Binding, hosts_that_are_one_machine_take_different_cores) {
    if (cores() < 2) KUMI_SKIP(skips::system_lacks("2 cores"));
    const Claims claims;
    const std::set<int> allowed = first_cores(2);
    Folder folder;
    const std::string agent = folder.write("agent", "#!/bin/sh\nexec sh -c \"$2\"\n");
    Holder job({"--rsh", agent, "--hosts", "one,other", "-n", "2", "-x", "KUMI_DEVICE=udp"}, claims.environment(),
               allowed);
    const Places found = job.places(2);
    ASSERT_EQ(found.size(), 2u);
    EXPECT_NE(found[0], found[1]);
    EXPECT_EQ(found[0].size() + found[1].size(), allowed.size()) << "both are bound";
    job.end(SIGTERM);
}

TEST(Binding, jobs_that_were_told_nothing_do_not_bind_to_the_same_core) {
    if (cores() < 2) KUMI_SKIP(skips::system_lacks("2 cores"));
    // Other tests' jobs have the same claims: they may leave no free core, and then these two are not bound.
    Holder one({"-n", "1"}, {}, ours()), other({"-n", "1"}, {}, ours());
    const Places of_one = one.places(1), of_other = other.places(1);
    ASSERT_EQ(of_one.size() + of_other.size(), 2u);
    EXPECT_TRUE(of_one[0] == ours() || of_other[0] == ours() || of_one != of_other) << *of_one[0].begin();
    one.end(SIGTERM), other.end(SIGTERM);
}

// ---- arguments

TEST(Arguments, what_follows_the_program_reaches_it_unchanged) {
    const Outcome outcome =
        run({.words = kumi_run({"-n", "1", "--no-join", program("arguments"), "-n", "5", "--label", "x", "",
                                "two words", "--", "--help", "[a,b]", "run", "-x", "%s", "a=b"})});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(outcome.out, "<-n><5><--label><x><><two words><--><--help><[a,b]><run><-x><%s><a=b>\n");
}

TEST(Arguments, two_dashes_before_the_program_end_our_options) {
    const Outcome outcome =
        run({.words = kumi_run({"-n", "1", "--no-join", "--", program("arguments"), "-n", "--", "5"})});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.out, "<-n><--><5>\n");
}

TEST(Arguments, a_program_may_have_a_name_that_starts_with_a_dash) {
    Folder folder;
    folder.write("-dash", "#!/bin/sh\necho dashed $1\n");
    const Outcome outcome =
        run({.words = {"sh", "-c", "PATH=.:$PATH; exec \"$0\" run -n 1 --no-join -- -dash -x", kumi_command},
             .folder = folder.path()});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.out, "dashed -x\n");
}

TEST(Arguments, no_join_runs_programs_that_are_not_ours) {
    const Outcome outcome = run({.words = kumi_run({"-n", "3", "--no-join", "hostname"})});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(lines_of(outcome.out).size(), 3u) << outcome.out;
}

// ---- surroundings

TEST(Surroundings, a_relative_program_is_found_from_where_we_are) {
    const Outcome outcome = run(
        {.words = {"../bin/kumi", "run", "-n", "2", "../examples/02_ring", "3"}, .folder = KUMI_BUILD_DIR "/examples"});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_TRUE(contains(outcome.out, "token is 3,")) << outcome.out;
    const Outcome here =
        run({.words = {"../bin/kumi", "run", "-n", "2", "./02_ring", "3"}, .folder = KUMI_BUILD_DIR "/examples"});
    EXPECT_EQ(here.code, 0);
    EXPECT_TRUE(contains(here.out, "token is 3,")) << here.out;
}

TEST(Surroundings, an_empty_environment_is_enough) {
    const Outcome outcome = run({.words = {"env", "-i", kumi_command, "run", "-n", "3", example("02_ring"), "2"}});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_TRUE(contains(outcome.out, "token is 6,")) << outcome.out;
}

TEST(Surroundings, a_variable_set_for_the_nodes_replaces_ours) {
    const Outcome outcome =
        run({.words = kumi_run({"-n", "1", "--no-join", "-x", "COLOUR=red", "-x", "SHAPE=round", "-x", "COLOUR=green",
                                "sh", "-c", "env | grep -E '^(COLOUR|SHAPE|TASTE)=' | sort"}),
             .environment = {"COLOUR=blue", "TASTE=sweet"}});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.out, "COLOUR=green\nSHAPE=round\nTASTE=sweet\n");
    const Outcome first = run({.words = kumi_run({"-n", "1", "--no-join", "-x", "COLOUR=red", "printenv", "COLOUR"}),
                               .environment = {"COLOUR=blue"}});
    EXPECT_EQ(first.out, "red\n");
}

TEST(Surroundings, a_node_is_told_by_its_environment_where_to_join_and_nothing_else) {
    // What is on a command line or in an environment is there for all to see: the job's keys must not be.
    Running command({.words = kumi_run_actor({"-n", "2"}, {"join", "say=here", "wait"})});
    ASSERT_TRUE(command.printed("here", 2));
    const auto variables_of = [](const std::string& pid) {
        std::set<std::string> variables;
        std::istringstream stream(file_text("/proc/" + pid + "/environ"));
        for (std::string variable; std::getline(stream, variable, '\0');)
            if (const std::string name = variable.substr(0, variable.find('='));
                name == "KUMI_STARTER" || name == "KUMI_NODE" || name == "KUMI_HOST_SLOT")
                variables.insert(name);
            else variables.insert(variable);
        return variables;
    };
    std::set<std::string> expected = variables_of(std::to_string(command.pid()));
    expected.insert("KUMI_BOOT=3");
    expected.insert("KUMI_STARTER"); // its value is random
    expected.insert({"KUMI_NODE", "KUMI_HOST_SLOT", "KUMI_NODES=2"}); // tests/cluster/ends.test.cpp has the values
    int nodes = 0;
    for (const std::string& process : processes_marked(command.mark())) { // "PID WORD WORD ... "
        const std::size_t space = process.find(' ');
        if (process.find(program("actor")) != space + 1) continue; // kumi run, or its guardian
        ++nodes;
        EXPECT_EQ(process.substr(space + 1), program("actor") + " join say=here wait ");
        EXPECT_EQ(variables_of(process.substr(0, space)), expected);
    }
    EXPECT_EQ(nodes, 2);
    command.signal(SIGTERM);
    EXPECT_EQ(command.finish().code, 143);
}

TEST(Surroundings, a_job_may_start_a_job) {
    const Outcome outcome =
        run({.words = kumi_run({"-n", "2", "--no-join", kumi_command, "run", "-n", "2", example("02_ring"), "3"})});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(lines_of(outcome.out).size(), 2u) << outcome.out;
}
