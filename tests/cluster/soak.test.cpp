// One round of the soak over each kind of network. tests/soak has what the nodes run; `make soak-jobs` takes new seeds.
#include "cluster/lab.hpp"
#include "simulation/seeds.hpp"

#include <csignal>
#include <fstream>
#include <random>

using namespace kumi::cluster_test;

namespace {

/// KUMI_SEED runs that round. KUMI_SOAK_EPOCHS and KUMI_SOAK_STEPS make it longer: see tests/soak/main.cpp. After
/// KUMI_SOAK_SECONDS a round hangs.
class Soak : public Lab {
protected:
    std::uint64_t below(std::uint64_t end) { return random_() % end; }

    /// SEED NODES EPOCHS STEPS TROUBLE, as the program takes them.
    Words node_words() {
        const auto number = [](const char* variable, std::uint64_t usual) {
            return std::to_string(kumi::simulation::number_from(variable).value_or(usual));
        };
        const std::string trouble = below(4) == 0 ? "none" : below(3) == 0 ? "stops" : "losses";
        return {program("soak"),  std::to_string(seed_),         std::to_string(nodes_), number("KUMI_SOAK_EPOCHS", 4),
                number("KUMI_SOAK_STEPS", 8), trouble};
    }

    /// How many nodes have ended, each in one of three ways.
    static std::size_t ended(const std::string& out) {
        std::size_t count = 0;
        for (const char* const text : {" is done\n", " left\n", "soak: a node was killed\n"})
            for (auto at = out.find(text); at != std::string::npos; at = out.find(text, at + 1)) ++count;
        return count;
    }

    /// Waits for the end of the round. `trouble` makes trouble meanwhile, and is called again and again.
    template <class Trouble>
    void expect_good_end(const Command& command, Trouble&& make_trouble) {
        std::string words;
        for (const std::string& word : command.environment) words += word + " ";
        for (const std::string& word : command.words) words += word + " ";
        SCOPED_TRACE("seed " + std::to_string(seed_) + ": " + words);
        Running job(command);
        const auto deadline = Clock::now() + round_max();
        const auto is_over = [&] { return ended(job.out()) >= nodes_ || job.has_ended(); };
        while (!is_over() && Clock::now() < deadline) make_trouble();
        if (!is_over()) {
            ADD_FAILURE() << "the round hangs\n" << stacks(job.mark());
            job.signal(SIGKILL);
        }
        const bool has_killed = contains(job.out(), "soak: a node was killed\n");
        if (has_killed) job.signal(SIGINT); // whatever watched these nodes
        const Outcome outcome = job.finish();
        EXPECT_EQ(outcome.code, has_killed ? 128 + SIGINT : 0) << outcome.out << outcome.err;
        EXPECT_EQ(ended(outcome.out), nodes_) << outcome.out << outcome.err;
        EXPECT_FALSE(contains(outcome.err, "WRONG")) << outcome.err;
    }
    static std::chrono::seconds round_max() {
        return std::chrono::seconds(kumi::simulation::number_from("KUMI_SOAK_SECONDS").value_or(120));
    }
    /// Hosts on two networks, with room for all nodes.
    std::string write_file(std::size_t hosts) {
        const std::string file = folder_.path() + "/cluster.toml", count = std::to_string(hosts);
        std::ofstream(file) << "[[network]]\nname = \"one\"\n[[network]]\nname = \"two\"\n"
                            << "[[host]]\nname = \"h[0-" << hosts - 1 << "]\"\n"
                            << "slots = " << (nodes_ + hosts - 1) / hosts << "\n"
                            << "address.one = \"10.77.1.[1-" << count << "]\"\n"
                            << "address.two = \"10.77.2.[1-" << count << "]\"\n";
        return file;
    }
    /// Cuts a cable, lets a network ignore a host, or loses packets, for a while.
    void make_trouble(std::size_t hosts) {
        const std::string host = "h" + std::to_string(below(hosts)), network = below(2) == 0 ? "one" : "two";
        const int for_ms = static_cast<int>(below(4) == 0 ? below(1500) : below(200));
        const Words kinds[][2] = {{{"link", host, network, "down"}, {"link", host, network, "up"}},
                                  {{"mute", host, network, "on"}, {"mute", host, network, "off"}},
                                  {{"loss", network, "5"}, {"loss", network, "0"}}};
        const Words* const kind = kinds[below(3)];
        change(kind[0]);
        ::poll(nullptr, 0, for_ms);
        change(kind[1]);
        ::poll(nullptr, 0, static_cast<int>(below(200)));
    }
    void change(const Words& words) {
        const Outcome outcome = lab(words);
        EXPECT_EQ(outcome.code, 0) << outcome.err;
    }
    static void rest() { ::poll(nullptr, 0, 20); }

    /// What the threads of the nodes do, if the debugger is there; else where they sleep.
    static std::string stacks(const std::string& mark) {
        std::string text;
        for (const pid_t pid : processes_running(program("soak"), mark)) {
            const std::string number = std::to_string(pid);
            text += "process " + number + "\n";
            if (is_installed("gdb"))
                text += run({.words = {"gdb", "-p", number, "-batch", "-ex", "thread apply all bt 30"}}).out;
            else text += file_text("/proc/" + number + "/stack") + file_text("/proc/" + number + "/wchan") + "\n";
        }
        return text;
    }

    const std::uint64_t seed_ = kumi::simulation::wanted_seeds(1).first;
    std::mt19937_64 random_{seed_};
    std::size_t nodes_ = 2 + below(kumi::simulation::number_from("KUMI_SEED") ? 9 : 4);
};

TEST_F(Soak, over_shared_memory_gives_no_wrong_answer) {
    Words words = kumi_run({"-n", std::to_string(nodes_)});
    const Words node = node_words();
    words.insert(words.end(), node.begin(), node.end());
    expect_good_end({.words = words}, rest);
}

TEST_F(Soak, over_udp_that_loses_packets_gives_no_wrong_answer) {
    Words words = kumi_run({"-n", std::to_string(nodes_)});
    const Words node = node_words();
    words.insert(words.end(), node.begin(), node.end());
    const std::string faults = below(4) == 0 ? "udp.loss=0.05" : "udp.loss=0.01,udp.reorder=0.01,udp.duplicate=0.01";
    expect_good_end({.words = words,
                     .environment = {std::string("KUMI_DEVICE=") + (below(3) == 0 ? "composite" : "udp"),
                                     "KUMI_FAULT=" + faults + ",udp.seed=" + std::to_string(seed_ % 1000000)}},
                    rest);
}

TEST_F(Soak, in_a_lab_with_cables_that_are_cut_gives_no_wrong_answer) {
    const std::size_t hosts = 2 + below(3);
    const std::string file = write_file(hosts);
    LAB_OR_SKIP(file);
    // A node that dies while its cable is cut is lost after the silence, which calls that must succeed outlast.
    Words words{"--cluster", file, "-n", std::to_string(nodes_), "-x", "KUMI_SILENCE=20"};
    if (below(2) == 0) words.insert(words.end(), {"--place", "spread"});
    const Words node = node_words();
    words.insert(words.end(), node.begin(), node.end());
    expect_good_end(from_front(words), [&] { make_trouble(hosts); });
}

} // namespace
