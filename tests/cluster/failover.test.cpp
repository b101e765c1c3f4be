// Networks die and come back while a job runs on them, in the lab: examples/steady sees every message.
#include "cluster/lab.hpp"
#include "simulation/seeds.hpp"

#include <csignal>
#include <fstream>
#include <random>
#include <regex>

using namespace kumi::cluster_test;

namespace {

/// Two hosts on two networks, or as the file has it.
class Failover : public Lab {
protected:
    std::string write_file(const std::string& text) {
        const std::string file = folder_.path() + "/cluster.toml";
        std::ofstream(file) << text;
        return file;
    }
    std::string two_networks(int hosts) {
        const std::string last = std::to_string(hosts - 1), count = std::to_string(hosts);
        return write_file("[[network]]\nname = \"fast\"\n[[network]]\nname = \"slow\"\n[[host]]\nname = \"h[0-" + last +
                          "]\"\naddress.fast = \"10.77.1.[1-" + count + "]\"\naddress.slow = \"10.77.2.[1-" + count +
                          "]\"\n");
    }
    /// A network of 200 Mbit/s and another one join two hosts. Builds with sanitizers can send that much.
    std::string fast_and(const std::string& rate) {
        return write_file("[[network]]\nname = \"fast\"\nrate = \"200mbit\"\n[[network]]\nname = \"other\"\nrate = \"" +
                          rate +
                          "\"\n[[host]]\nname = \"h[0-1]\"\naddress.fast = \"10.77.1.[1-2]\"\n"
                          "address.other = \"10.77.2.[1-2]\"\n");
    }
    Command bulk(const std::string& file, int megabits, Words options = {}, int bytes = 256 << 10) {
        Words words{"--no-bind", "--cluster", file, "-n", "2"}; // the hosts of a lab share the cores
        words.insert(words.end(), options.begin(), options.end());
        words.insert(words.end(), {program("bulk"), std::to_string(bytes), std::to_string(megabits)});
        return from_front(words);
    }
    /// Ends it; the number that stands in front of, or behind, these words.
    static double end_of_bulk(Running& job, const std::string& before, const std::string& after) {
        job.signal(SIGINT);
        const Outcome outcome = job.finish();
        EXPECT_TRUE(contains(outcome.out, " messages, 0 wrong\n")) << outcome.out << outcome.err;
        const std::regex number(before + "([0-9]+)" + after);
        std::smatch found;
        return std::regex_search(outcome.out, found, number) ? std::stod(found[1]) : -1;
    }
    /// Megabits of its best second, by the first network alone.
    double most_alone(const std::string& file) {
        Running job(bulk(file, 1, {"-x", "KUMI_STRIPES=no"}));
        EXPECT_TRUE(job.printed("above"));
        ::poll(nullptr, 0, 4000);
        return end_of_bulk(job, "most: ", " Mbit");
    }
    Command steady(const std::string& file, int nodes) {
        return from_front({"--cluster", file, "-n", std::to_string(nodes), example("steady"), "1000"});
    }
    void change(const Words& words) {
        const Outcome outcome = lab(words);
        EXPECT_EQ(outcome.code, 0) << outcome.err;
    }
    /// By what node 0 sends to `node`, as it told last.
    static std::string last_way(const std::string& out, const std::string& node) {
        const std::string words = "to node " + node + " by ";
        const std::size_t last = out.rfind(words);
        return last == std::string::npos ? ""
                                         : out.substr(last + words.size(), out.find('\n', last) - last - words.size());
    }
    /// It ends when it is told to, and nothing was wrong.
    static void expect_good_end(Running& job, int nodes) {
        job.signal(SIGINT);
        const Outcome outcome = job.finish();
        EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.out << outcome.err;
        std::size_t good = 0;
        for (std::size_t at = 0;
             (at = outcome.out.find(" messages, 0 of them wrong; longest pause ", at)) != std::string::npos; ++at)
            ++good;
        EXPECT_EQ(good, static_cast<std::size_t>(nodes)) << outcome.out << outcome.err;
    }
};

} // namespace

TEST_F(Failover, a_carrier_that_is_lost_moves_messages_to_the_next_network_and_back_when_it_returns) {
    const std::string file = two_networks(2);
    LAB_OR_SKIP(file);
    Running job(steady(file, 2));
    ASSERT_TRUE(job.printed("to node 1 by fast"));
    for (const char* const host : {"h0", "h1"}) { // node 0's own end, and the other, which it does not see
        const unsigned before = host == std::string("h0") ? 0 : 1;
        change({"link", host, "fast", "down"});
        ASSERT_TRUE(job.printed("to node 1 by slow", before + 1));
        change({"link", host, "fast", "up"});
        ASSERT_TRUE(job.printed("to node 1 by fast", before + 2));
    }
    expect_good_end(job, 2);
}

TEST_F(Failover, a_network_that_goes_mute_is_left_and_taken_again) {
    const std::string file = two_networks(2);
    LAB_OR_SKIP(file);
    Running job(steady(file, 2));
    ASSERT_TRUE(job.printed("to node 1 by fast"));
    change({"mute", "h1", "fast", "on"});
    ASSERT_TRUE(job.printed("to node 1 by slow"));
    change({"mute", "h1", "fast", "off"});
    ASSERT_TRUE(job.printed("to node 1 by fast", 2));
    expect_good_end(job, 2);
}

TEST_F(Failover, a_network_that_does_not_answer_when_the_job_starts_is_taken_when_it_does) {
    const std::string file = two_networks(2);
    LAB_OR_SKIP(file);
    change({"mute", "h1", "fast", "on"});
    Running job(steady(file, 2));
    ASSERT_TRUE(job.printed("to node 1 by slow"));
    change({"mute", "h1", "fast", "off"});
    ASSERT_TRUE(job.printed("to node 1 by fast"));
    expect_good_end(job, 2);
}

TEST_F(Failover, an_interface_that_is_deleted_is_done_without) {
    const std::string file = two_networks(2);
    LAB_OR_SKIP(file);
    Running job(steady(file, 2));
    ASSERT_TRUE(job.printed("to node 1 by fast"));
    const Outcome deleted = exec("h1", {"ip", "link", "delete", "fast"});
    ASSERT_EQ(deleted.code, 0) << deleted.err;
    ASSERT_TRUE(job.printed("to node 1 by slow"));
    expect_good_end(job, 2);
}

TEST_F(Failover, where_both_networks_of_a_host_are_cut_at_different_ends_a_third_passes_messages_on) {
    const std::string file = two_networks(3);
    LAB_OR_SKIP(file);
    Running job(steady(file, 3));
    ASSERT_TRUE(job.printed("to node 1 by fast"));
    change({"link", "h0", "fast", "down"});
    change({"link", "h1", "slow", "down"});
    ASSERT_TRUE(job.printed("to node 1 by node 2"));
    change({"link", "h0", "fast", "up"});
    ASSERT_TRUE(job.printed("to node 1 by fast", 2));
    change({"link", "h1", "slow", "up"});
    expect_good_end(job, 3);
}

TEST_F(Failover, a_host_that_is_cut_off_is_lost_after_the_silence_that_the_cluster_file_or_the_job_allows) {
    for (const bool by_the_job : {false, true}) {
        const std::string file =
            write_file((by_the_job ? "silence = 3600\n" : "silence = 3\n") + file_text(two_networks(2)));
        LAB_OR_SKIP(file);
        Command command = steady(file, 2);
        if (by_the_job) command.environment.push_back("KUMI_SILENCE=3");
        Running job(command);
        ASSERT_TRUE(job.printed("to node 1 by fast"));
        change({"link", "h1", "fast", "down"});
        change({"link", "h1", "slow", "down"});
        const auto start = Clock::now();
        ASSERT_TRUE(job.printed("; 1 nodes did not end"));
        EXPECT_GT(Clock::now() - start, 2s);
        EXPECT_LT(Clock::now() - start, 8s);
        const Outcome outcome = job.finish();
        EXPECT_TRUE(contains(outcome.err, " has not answered for 2.")) << outcome.err;
        EXPECT_EQ(lab({"down"}).code, 0);
    }
}

/// KUMI_SOAK_CYCLES=1000 for long, KUMI_SEED for the same again.
TEST_F(Failover, links_that_come_and_go_at_random_lose_nothing) {
    constexpr int nodes = 4;
    const std::string file = two_networks(nodes);
    LAB_OR_SKIP(file);
    const char* const cycles = std::getenv("KUMI_SOAK_CYCLES");
    const std::uint64_t seed = kumi::simulation::wanted_seeds(1).first;
    SCOPED_TRACE("KUMI_SEED=" + std::to_string(seed));
    std::mt19937_64 random(seed);
    Running job(steady(file, nodes));
    for (int node = 1; node < nodes; ++node) ASSERT_TRUE(job.printed("to node " + std::to_string(node) + " by fast"));
    for (int i = cycles != nullptr ? std::atoi(cycles) : 24; i > 0 && !HasFailure(); --i) {
        const bool stays = i % 8 == 0; // until node 0, whose way to that host it cuts, has found another
        const std::string node = std::to_string(stays ? 1 + random() % (nodes - 1) : random() % nodes),
                          host = "h" + node;
        const std::string network = stays && last_way(job.out(), node) != "fast" ? "slow"
                                    : stays || random() % 2 == 0                 ? "fast"
                                                                                 : "slow";
        const bool mutes = random() % 4 == 0;
        change(mutes ? Words{"mute", host, network, "on"} : Words{"link", host, network, "down"});
        const auto found_another = [&](const std::string& out) { return last_way(out, node) != network; };
        if (!stays) ::poll(nullptr, 0, static_cast<int>(random() % 150));
        else EXPECT_TRUE(job.shows(found_another, "node 0 still sends to node " + node + " by " + network, 30s));
        change(mutes ? Words{"mute", host, network, "off"} : Words{"link", host, network, "up"});
        ::poll(nullptr, 0, static_cast<int>(random() % 100));
    }
    expect_good_end(job, nodes);
}

// ---- stripes

TEST_F(Failover, large_messages_go_over_two_networks_together_and_by_one_when_the_other_is_cut) {
    const std::string file = write_file(
        "[[network]]\nname = \"one\"\nrate = \"200mbit\"\n[[network]]\nname = \"other\"\nrate = \"200mbit\"\n"
        "[[host]]\nname = \"h[0-1]\"\naddress.one = \"10.77.1.[1-2]\"\naddress.other = \"10.77.2.[1-2]\"\n");
    LAB_OR_SKIP(file);
    Running job(bulk(file, 280));
    // On a busy machine a trial may find that it does not pay; there will be others.
    ASSERT_TRUE(job.printed("above", 1, 90s)) << "more than 1.4 times what one carries";
    change({"link", "h1", "other", "down"});
    ASSERT_TRUE(job.printed("below"));
    change({"link", "h1", "other", "up"});
    ::poll(nullptr, 0, 500);
    change({"link", "h1", "one", "down"});
    ::poll(nullptr, 0, 500);
    change({"link", "h1", "one", "up"});
    change({"mute", "h0", "other", "on"});
    ::poll(nullptr, 0, 500);
    change({"mute", "h0", "other", "off"});
    job.signal(SIGINT);
    const Outcome outcome = job.finish();
    EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.err;
    EXPECT_TRUE(contains(outcome.out, " messages, 0 wrong\n")) << outcome.out << outcome.err;
}

TEST_F(Failover, a_network_that_is_half_as_fast_makes_large_messages_faster_unasked) {
    const std::string file = fast_and("100mbit");
    LAB_OR_SKIP(file);
    const double alone = most_alone(file);
    constexpr int bytes = 56 << 10; // as the engine's puts
    Running job(bulk(file, static_cast<int>(1.3 * alone), {}, bytes));
    // On a busy machine a trial may find that it does not pay; there will be others.
    EXPECT_TRUE(job.printed("above", 1, 60s)) << "more than 1.3 times " << alone << " Mbit/s";
    EXPECT_GT(end_of_bulk(job, "", " in pieces"), 0);
}

TEST_F(Failover, a_network_that_is_hopelessly_slow_does_not_slow_the_fast_one_down) {
    const std::string file = fast_and("2mbit");
    LAB_OR_SKIP(file);
    const double alone = most_alone(file);
    Running job(bulk(file, static_cast<int>(0.95 * alone))); // the other one is timed in the first second
    EXPECT_TRUE(job.printed("above", 1, 60s)) << "more than 0.95 times " << alone << " Mbit/s";
    ::poll(nullptr, 0, 2000);
    EXPECT_EQ(end_of_bulk(job, "", " in pieces"), 0);
}

// ---- relays

TEST_F(Failover, nodes_that_no_network_joins_talk_through_one_that_has_both) {
    const std::string file =
        write_file("[[network]]\nname = \"left\"\n[[network]]\nname = \"right\"\n"
                   "[[host]]\nname = \"a\"\naddress.left = \"10.77.1.1\"\n"
                   "[[host]]\nname = \"m\"\naddress.left = \"10.77.1.2\"\naddress.right = \"10.77.2.2\"\n"
                   "[[host]]\nname = \"b\"\nslots = 2\naddress.right = \"10.77.2.1\"\n");
    LAB_OR_SKIP(file);
    const Outcome carriers = run(from_front({"--cluster", file, "-n", "4", program("carriers")}));
    EXPECT_EQ(carriers.code, 0) << carriers.err;
    EXPECT_EQ(carriers.err, "");
    EXPECT_TRUE(contains(carriers.out, "0: - left node 1 node 1\n")) << carriers.out;
    EXPECT_TRUE(contains(carriers.out, "3: node 1 right shmem -\n")) << carriers.out;
    Running job(steady(file, 4));
    ASSERT_TRUE(job.printed("to node 3 by node 1"));
    ::poll(nullptr, 0, 1000);
    expect_good_end(job, 4);
}

TEST_F(Failover, a_ring_that_the_file_asks_for_is_walked) {
    const std::string file = write_file("[[network]]\nname = \"lan\"\ntopology = \"ring\"\n"
                                        "[[host]]\nname = \"h[0-5]\"\naddress.lan = \"10.77.1.[1-6]\"\n");
    LAB_OR_SKIP(file);
    const Outcome carriers = run(from_front({"--cluster", file, "-n", "6", program("carriers")}));
    EXPECT_EQ(carriers.code, 0) << carriers.err;
    EXPECT_TRUE(contains(carriers.out, "0: - lan node 1 node ")) << carriers.out;
    EXPECT_TRUE(contains(carriers.out, " node 5 lan\n")) << carriers.out;
    Running job(steady(file, 6));
    ASSERT_TRUE(job.printed("to node 2 by node 1"));
    ::poll(nullptr, 0, 1000);
    expect_good_end(job, 6);
}

TEST_F(Failover, in_a_ring_of_five_cables_one_that_is_cut_is_walked_around) {
    std::string text;
    for (int i = 0; i < 5; ++i) text += "[[network]]\nname = \"r" + std::to_string(i) + "\"\n";
    for (int i = 0; i < 5; ++i) // host i is at one end of cable i, and at the other of the one before
        text += "[[host]]\nname = \"h" + std::to_string(i) + "\"\naddress.r" + std::to_string(i) + " = \"10.77." +
                std::to_string(i) + ".1\"\naddress.r" + std::to_string((i + 4) % 5) + " = \"10.77." +
                std::to_string((i + 4) % 5) + ".2\"\n";
    const std::string file = write_file(text);
    LAB_OR_SKIP(file);
    Running job(steady(file, 5));
    ASSERT_TRUE(job.printed("to node 1 by r0"));
    ASSERT_TRUE(job.printed("to node 2 by node 1"));
    change({"link", "h1", "r0", "down"});
    ASSERT_TRUE(job.printed("to node 1 by node 4")) << "over nodes 3 and 2";
    ASSERT_TRUE(job.printed("to node 2 by node 4"));
    change({"link", "h1", "r0", "up"});
    ASSERT_TRUE(job.printed("to node 1 by r0", 2));
    change({"mute", "h0", "r4", "on"});
    ASSERT_TRUE(job.printed("to node 4 by node 1"));
    change({"mute", "h0", "r4", "off"});
    ASSERT_TRUE(job.printed("to node 4 by r4", 2));
    expect_good_end(job, 5);
}

TEST_F(Failover, of_two_gateways_the_one_that_works_passes_messages_on) {
    const std::string file =
        write_file("[[network]]\nname = \"left\"\n[[network]]\nname = \"right\"\n"
                   "[[host]]\nname = \"a\"\naddress.left = \"10.77.1.1\"\n"
                   "[[host]]\nname = \"g[0-1]\"\naddress.left = \"10.77.1.[2-3]\"\naddress.right = \"10.77.2.[2-3]\"\n"
                   "[[host]]\nname = \"b\"\naddress.right = \"10.77.2.1\"\n");
    LAB_OR_SKIP(file);
    Running job(steady(file, 4));
    ASSERT_TRUE(job.shows([](const std::string& out) { return last_way(out, "3").starts_with("node "); },
                          "node 0 reaches node 3", 30s));
    for (int i = 0; i < 4; ++i) {
        const std::string way = last_way(job.out(), "3");
        const std::string gateway = way == "node 1" ? "g0" : "g1", other = way == "node 1" ? "node 2" : "node 1";
        const std::string network = i % 2 == 0 ? "right" : "left"; // behind the gateway, and before it
        const bool mutes = i >= 2;
        change(mutes ? Words{"mute", gateway, network, "on"} : Words{"link", gateway, network, "down"});
        EXPECT_TRUE(job.shows([&](const std::string& out) { return last_way(out, "3") == other; },
                              "node 0 reaches node 3 by " + other, 30s));
        change(mutes ? Words{"mute", gateway, network, "off"} : Words{"link", gateway, network, "up"});
        ::poll(nullptr, 0, 300);
    }
    expect_good_end(job, 4);
}
