// kumi lab: the hosts and networks of a cluster file on this machine. Each test has a lab of its own.
#include "cluster/lab.hpp"

#include <optional>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

using namespace kumi::cluster_test;

namespace {

constexpr int unknown_user = 65534;

} // namespace

TEST_F(Lab, every_host_has_its_name_its_addresses_and_its_own_processes) {
    LAB_OR_SKIP();
    for (const char* host : {"a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3", "front"})
        EXPECT_EQ(exec(host, {"hostname"}).out, host + std::string("\n"));
    const std::string a0 = exec("a0", {"ip", "-brief", "address"}).out;
    EXPECT_TRUE(contains(a0, " 10.77.1.1/24 ") && contains(a0, " 10.77.3.1/24 ") && !contains(a0, "10.77.2.")) << a0;
    const std::string front = exec("front", {"ip", "-brief", "address"}).out;
    for (const char* address : {" 10.77.1.254/24 ", " 10.77.2.254/24 ", " 10.77.3.254/24 "})
        EXPECT_TRUE(contains(front, address)) << front;
    EXPECT_EQ(exec("b0", {"cat", "/sys/class/net/gigabit/mtu"}).out, "1500\n");
    EXPECT_EQ(exec("a0", {"cat", "/sys/class/net/myrinet/mtu"}).out, "9000\n");
    EXPECT_TRUE(
        matches(exec("a0", {"sh", "-c", "cat /proc/1/comm; echo /proc/[0-9]*"}).out, "a0\n/proc/1 /proc/[0-9]+\n"))
        << "the first process and sh";
    EXPECT_EQ(exec("a0", {"getent", "hosts", "b1", "a1-myrinet"}).out.substr(0, 9), "10.77.3.6");
}

TEST_F(Lab, hosts_see_the_folder_of_the_cluster_file) {
    const Folder elsewhere;
    std::filesystem::permissions(elsewhere.path(), std::filesystem::perms(0755));
    const std::string file = elsewhere.path() + "/cluster.toml";
    std::filesystem::copy_file(figure3, file);
    LAB_OR_SKIP(file);
    EXPECT_EQ(exec("a0", {"cat", file}).out, file_text(file));
}

TEST_F(Lab, hosts_reach_each_other_on_networks_that_they_share_and_on_no_other) {
    LAB_OR_SKIP();
    Running a1(on("a1", {program("probe"), "echo", "7000"}));
    Running b0(on("b0", {program("probe"), "echo", "7000"}));
    ASSERT_TRUE(a1.printed("ready") && b0.printed("ready"));
    EXPECT_EQ(answers("a0", "10.77.1.2"), 5) << "a1 on myrinet";
    EXPECT_EQ(answers("a0", "10.77.3.5"), 5) << "b0 on lan";
    EXPECT_TRUE(is_silent("a0", "10.77.2.1")) << "b0 on gigabit, where a0 is not";
    EXPECT_EQ(answers("front", "10.77.2.1"), 5);
    EXPECT_EQ(answers("a0", "10.77.1.2", 2, 60000), 2) << "in several packets";
    a1.signal(SIGTERM), b0.signal(SIGTERM);
    EXPECT_EQ(a1.finish().code, 128 + SIGTERM);
}

TEST_F(Lab, shared_memory_and_tmp_are_a_hosts_own_but_the_working_folder_is_everybodys) {
    LAB_OR_SKIP();
    for (const char* place : {"/dev/shm", "/tmp", "/run"}) {
        const std::string file = place + std::string("/kumi-test-lab-") + std::to_string(::getpid());
        EXPECT_EQ(exec("a0", {"sh", "-c", "echo mine > " + file}).code, 0) << place;
        EXPECT_EQ(exec("a0", {"cat", file}).out, "mine\n") << place;
        EXPECT_TRUE(is_one_line(exec("a1", {"cat", file}).err, "cat: .*: No such file or directory")) << place;
        EXPECT_FALSE(std::filesystem::exists(file)) << place;
    }
    EXPECT_EQ(exec("a0", {"sh", "-c", "pwd; echo ours > file"}).out, folder_.path() + "\n");
    EXPECT_EQ(exec("b3", {"cat", "file"}).out, "ours\n");
    const std::string boot_id = "/proc/sys/kernel/random/boot_id";
    EXPECT_NE(exec("a0", {"cat", boot_id}).out, exec("a1", {"cat", boot_id}).out);
    EXPECT_EQ(exec("a0", {"cat", boot_id}).out.size(), file_text(boot_id).size());
}

TEST_F(Lab, a_pulled_cable_loses_its_carrier_and_gets_it_back) {
    LAB_OR_SKIP();
    Running b2(on("b2", {program("probe"), "echo", "7000"}));
    ASSERT_TRUE(b2.printed("ready"));
    ASSERT_EQ(answers("a0", "10.77.3.7"), 5);
    const auto carrier = [&](const std::string& network) {
        return exec("b2", {"cat", "/sys/class/net/" + network + "/carrier"}).out;
    };
    EXPECT_EQ(carrier("lan"), "1\n");
    EXPECT_EQ(lab({"link", "b2", "lan", "down"}).err, "");
    EXPECT_EQ(carrier("lan"), "0\n");
    EXPECT_EQ(carrier("gigabit"), "1\n");
    EXPECT_TRUE(is_silent("a0", "10.77.3.7"));
    EXPECT_TRUE(contains(lab({"status"}).out, "lan 10.77.3.7 (down)\n"));
    EXPECT_EQ(lab({"link", "b2", "lan", "up"}).err, "");
    EXPECT_TRUE(carries("a0", "10.77.3.7"));
    EXPECT_FALSE(contains(lab({"status"}).out, "down"));
    b2.signal(SIGTERM);
}

TEST_F(Lab, a_mute_host_has_a_carrier_and_no_traffic) {
    LAB_OR_SKIP();
    Running b2(on("b2", {program("probe"), "echo", "7000"}));
    ASSERT_TRUE(b2.printed("ready"));
    ASSERT_EQ(answers("a0", "10.77.3.7"), 5);
    EXPECT_EQ(lab({"mute", "b2", "lan", "on"}).err, "");
    EXPECT_TRUE(is_silent("a0", "10.77.3.7"));
    EXPECT_EQ(exec("b2", {"cat", "/sys/class/net/lan/carrier"}).out, "1\n");
    EXPECT_EQ(lab({"link", "b2", "lan", "down"}).err, "");
    EXPECT_EQ(lab({"link", "b2", "lan", "up"}).err, "");
    EXPECT_TRUE(contains(lab({"status"}).out, "(mute)"));
    ::poll(nullptr, 0, 300);
    EXPECT_TRUE(is_silent("a0", "10.77.3.7")) << "it stays mute when its cable was out";
    EXPECT_EQ(lab({"mute", "b2", "lan", "off"}).err, "");
    EXPECT_TRUE(carries("a0", "10.77.3.7"));
    b2.signal(SIGTERM);
}

TEST_F(Lab, loss_is_what_was_asked_for_on_that_network_and_ends) {
    LAB_OR_SKIP();
    Running a1(on("a1", {program("probe"), "echo", "7000"}));
    ASSERT_TRUE(a1.printed("ready"));
    ASSERT_EQ(answers("a0", "10.77.3.2"), 5);
    EXPECT_EQ(lab({"loss", "lan", "100"}).err, "");
    EXPECT_TRUE(is_silent("a0", "10.77.3.2"));
    EXPECT_EQ(answers("a0", "10.77.1.2"), 5) << "another network";
    EXPECT_TRUE(contains(lab({"status"}).out, "loses 100 %"));
    EXPECT_EQ(lab({"loss", "lan", "30"}).err, "");
    const int back = answers("a0", "10.77.3.2", 40, 8, 100); // 0.7 * 0.7 of them: 19.6, standard deviation 3.2
    EXPECT_GT(back, 4);
    EXPECT_LT(back, 35);
    EXPECT_EQ(lab({"loss", "lan", "0"}).err, "");
    EXPECT_EQ(answers("a0", "10.77.3.2", 20), 20);
    a1.signal(SIGTERM);
}

TEST_F(Lab, a_rate_limits_and_can_be_lifted) {
    LAB_OR_SKIP();
    Running a1(on("a1", {program("probe"), "echo", "7000"}));
    ASSERT_TRUE(a1.printed("ready"));
    ASSERT_GT(answers("a0", "10.77.1.2", 10, 60000), 0);
    EXPECT_LT(fastest_us_, 20'000);
    EXPECT_EQ(lab({"rate", "myrinet", "10mbit"}).err, "");
    ASSERT_GT(answers("a0", "10.77.1.2", 3, 60000), 0);
    EXPECT_GT(fastest_us_, 50'000) << "60000 bytes there and back are 96 ms, but for what may go at once";
    EXPECT_TRUE(contains(lab({"status"}).out, "myrinet: 10mbit, mtu 9000\n"));
    EXPECT_EQ(lab({"rate", "myrinet", "none"}).err, "");
    ASSERT_GT(answers("a0", "10.77.1.2", 10, 60000), 0);
    EXPECT_LT(fastest_us_, 20'000);
    a1.signal(SIGTERM);
}

TEST_F(Lab, exec_passes_on_input_output_exit_code_and_words) {
    LAB_OR_SKIP();
    EXPECT_EQ(exec("a0", {"sh", "-c", "exit 3"}).code, 3);
    EXPECT_EQ(exec("a0", {"sh", "-c", "kill -9 $$"}).code, 137);
    EXPECT_EQ(exec("a0", {program("arguments"), "--name", "x", "-n", "[a,b]", "", "two words", "--"}).out,
              "<--name><x><-n><[a,b]><><two words><-->\n");
    EXPECT_EQ(exec("a0", {"echo one | tr a-z A-Z"}).out, "ONE\n") << "a single word with blanks is for a shell";
    Command with_input = on("a0", {"sh", "-c", "cat; echo wrong >&2"});
    with_input.input = std::string(300'000, 'x');
    const Outcome outcome = run(with_input);
    EXPECT_EQ(outcome.out, with_input.input);
    EXPECT_EQ(outcome.err, "wrong\n");
    EXPECT_EQ(exec("a0", {"sh", "-c", "echo $KUMI_LAB"}).out, "lab\n");
    const Outcome missing = exec("a0", {"./no-such-program"});
    EXPECT_EQ(missing.code, 127);
    EXPECT_TRUE(is_one_line(missing.err, "kumi: a0: ./no-such-program: No such file or directory"));
}

TEST_F(Lab, exec_passes_on_signals_and_a_killed_exec_takes_its_command_along) {
    LAB_OR_SKIP();
    Running polite(on("a0", {"sh", "-c", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done"}));
    ASSERT_TRUE(polite.printed("ready"));
    polite.signal(SIGTERM);
    EXPECT_EQ(polite.finish().code, 7);
    Running interrupted(on("a0", {"sh", "-c", "echo ready; exec sleep 1000"}));
    ASSERT_TRUE(interrupted.printed("ready"));
    interrupted.signal(SIGINT);
    EXPECT_EQ(interrupted.finish().code, 128 + SIGINT);
    Running killed(on("a0", {"sh", "-c", "trap '' TERM HUP; echo ready; sleep 1000; echo never"}));
    ASSERT_TRUE(killed.printed("ready"));
    killed.signal(SIGKILL);
    EXPECT_EQ(killed.finish().code, 137); // and nothing is left of it
}

TEST_F(Lab, commands_and_faults_work_from_inside_too) {
    LAB_OR_SKIP();
    const std::string inside = kumi_command + " lab ";
    EXPECT_EQ(exec("front",
                   {inside + "exec a0 hostname; " + inside + "exec a0 " + inside + "exec b1 sh -c 'hostname; exit 5'"})
                  .out,
              "a0\nb1\n");
    EXPECT_EQ(exec("front", {inside + "exec b1 sh -c 'exit 5'"}).code, 5);
    EXPECT_EQ(exec("front", {inside + "link b1 lan down"}).err, "");
    EXPECT_EQ(exec("b1", {"cat", "/sys/class/net/lan/carrier"}).out, "0\n");
    EXPECT_EQ(exec("a0", {kumi_command, "run", "-n", "2", example("01_hello")}).code, 0);
}

TEST_F(Lab, a_host_that_crashes_leaves_the_others_alone) {
    LAB_OR_SKIP();
    const std::string status = lab({"status"}).out;
    const std::size_t at = status.find("host a1    pid ");
    ASSERT_NE(at, std::string::npos) << status;
    Running there(on("a1", {"sh", "-c", "echo ready; sleep 1000"}));
    ASSERT_TRUE(there.printed("ready"));
    ASSERT_EQ(::kill(std::atoi(status.c_str() + at + 15), SIGKILL), 0);
    EXPECT_EQ(there.finish().code, 137);
    EXPECT_TRUE(comes_true([&] { return contains(lab({"status"}).out, "host a1    has died"); }, 2s));
    const Outcome refused = exec("a1", {"true"});
    EXPECT_EQ(refused.code, 255);
    EXPECT_TRUE(is_one_line(refused.err, "kumi: host a1: it has died"));
    EXPECT_EQ(exec("a0", {"hostname"}).out, "a0\n");
    EXPECT_EQ(lab({"rate", "lan", "10mbit"}).err, "");
    EXPECT_TRUE(
        is_one_line(lab({"link", "a1", "lan", "down"}).err, "kumi: host a1: it has died, and its cables are gone"));
}

TEST_F(Lab, down_leaves_nothing) {
    LAB_OR_SKIP();
    Running there(on("a1", {"sh", "-c", "echo ready; sleep 1000"}));
    Running daemon(on("a1", {"sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo ready; sleep 1000"}));
    ASSERT_TRUE(there.printed("ready") && daemon.printed("ready"));
    const Outcome outcome = lab({"down"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(processes_marked(mark_).empty());
    EXPECT_TRUE(std::filesystem::is_empty(runtime_));
    for (Running* one : {&there, &daemon}) EXPECT_TRUE(matches(std::to_string(one->finish().code), "137|255"));
    const Outcome again = lab({"down"});
    EXPECT_EQ(again.code, 1);
    EXPECT_TRUE(is_one_line(again.err, "kumi: no lab \"lab\" is up; start it: kumi lab up FILE"));
    mark_.clear();
}

TEST_F(Lab, a_killed_keeper_takes_everything_along_and_the_lab_can_come_up_again) {
    LAB_OR_SKIP();
    Running there(on("b1", {"sh", "-c", "trap '' TERM HUP; echo ready; sleep 1000"}));
    ASSERT_TRUE(there.printed("ready"));
    ASSERT_GT(keeper(), 1);
    ASSERT_EQ(::kill(keeper(), SIGKILL), 0);
    EXPECT_TRUE(comes_true([&] { return processes_marked(mark_).empty(); }, 2s));
    EXPECT_TRUE(matches(std::to_string(there.finish().code), "137|255"));
    EXPECT_TRUE(is_one_line(lab({"status"}).err, "kumi: the lab \"lab\" has died; start it again: kumi lab up FILE"));
    LAB_OR_SKIP();
    EXPECT_EQ(exec("a0", {"hostname"}).out, "a0\n");
    ASSERT_EQ(::kill(keeper(), SIGKILL), 0);
    EXPECT_TRUE(comes_true([&] { return processes_marked(mark_).empty(); }, 2s));
    EXPECT_EQ(lab({"down"}).code, 0) << "it clears away what is left";
    EXPECT_TRUE(std::filesystem::is_empty(runtime_));
    mark_.clear();
}

TEST_F(Lab, two_labs_live_side_by_side_under_two_names) {
    LAB_OR_SKIP();
    const Outcome second = up();
    EXPECT_EQ(second.code, 1);
    EXPECT_TRUE(is_one_line(
        second.err, "kumi: the lab \"lab\" is up already; end it with: kumi lab down, or choose another --name"));
    Running other({.words = kumi_lab({"--name", "other", "up", figure3}),
                   .environment = environment(),
                   .leaves_processes = true});
    ASSERT_EQ(other.finish().code, 0);
    EXPECT_EQ(exec("a0", {"sh", "-c", "echo mine > /dev/shm/file"}).code, 0);
    EXPECT_TRUE(is_one_line(lab({"--name", "other", "exec", "a0", "cat", "/dev/shm/file"}).err,
                            "cat: .*: No such file or directory"));
    EXPECT_EQ(lab({"--name", "other", "exec", "a0", "sh", "-c", "echo $KUMI_LAB"}).out, "other\n");
    EXPECT_EQ(lab({"down", "--name", "other"}).code, 0);
    EXPECT_TRUE(processes_marked(other.mark()).empty());
    EXPECT_EQ(exec("a0", {"cat", "/dev/shm/file"}).out, "mine\n");
}

TEST_F(Lab, an_ordinary_user_needs_no_root) {
    if (::geteuid() != 0) KUMI_SKIP(skips::not_root); // the other tests show it
    user_ = unknown_user;
    ASSERT_EQ(::chown(runtime_.c_str(), unknown_user, unknown_user), 0);
    LAB_OR_SKIP();
    Running b2(on("b2", {program("probe"), "echo", "7000"}));
    ASSERT_TRUE(b2.printed("ready"));
    EXPECT_EQ(answers("a0", "10.77.3.7"), 5);
    EXPECT_EQ(exec("a0", {"id", "-u"}).out, "65534\n") << "it is who it is outside";
    EXPECT_EQ(exec("a0", {"ip", "link", "set", "lo", "down"}).err, "") << "and may change its hosts' networks";
    EXPECT_EQ(exec("front", {kumi_command + " lab exec a0 hostname"}).out, "a0\n");
    for (const Words& words : {Words{"loss", "lan", "100"},
                               {"rate", "lan", "1mbit"},
                               {"mute", "b2", "lan", "on"},
                               {"link", "b2", "lan", "down"}})
        EXPECT_EQ(lab(words).err, "") << words[0];
    EXPECT_TRUE(is_silent("a0", "10.77.3.7"));
    b2.signal(SIGTERM);
    b2.finish();
    EXPECT_EQ(lab({"down"}).code, 0);
}

TEST_F(Lab, what_is_wrong_is_said_in_one_line_with_what_to_write) {
    LAB_OR_SKIP();
    const auto refused = [&](const Words& words, int code, const std::string& pattern) {
        const Outcome outcome = lab(words);
        EXPECT_EQ(outcome.code, code) << words[0];
        EXPECT_EQ(outcome.out, "");
        EXPECT_TRUE(is_one_line(outcome.err, pattern));
    };
    refused({"exec", "c0", "true"}, 255,
            "kumi: there is no host \"c0\" in the lab; write a0, a1, a2, a3, b0, b1, b2, b3 or front");
    refused({"link", "a0", "gigabit", "down"}, 1, "kumi: a0 is not on gigabit; write myrinet or lan");
    refused({"link", "a0", "lan", "sideways"}, 1, "kumi: \"sideways\": write up or down");
    refused({"mute", "a0", "lan", ""}, 1, "kumi: \"\": write on or off");
    refused({"loss", "wlan", "1"}, 1, "kumi: there is no network \"wlan\" in the lab; write myrinet, gigabit or lan");
    refused({"loss", "lan", "200"}, 1, "kumi: \"200\" is no percentage; .*");
    refused({"rate", "lan", "fast"}, 1, "kumi: \"fast\" is no rate; .*");
    refused({"link", "a0"}, 2, "kumi lab link: NETWORK is required; see kumi lab link --help");
    refused({"exec", "a0"}, 2, "kumi lab exec: COMMAND is required; see kumi lab exec --help");
    refused({"--name", "../x", "status"}, 1, "kumi: \"../x\" is no name for a lab; .*");
    refused({"--name", "other", "exec", "a0", "true"}, 255, "kumi: no lab \"other\" is up; start it: kumi lab up FILE");
    refused({"--name", "other", "up", "/no/such/file"}, 1, "kumi: reading the cluster file /no/such/file: .*");
}

TEST_F(Lab, a_lab_that_cannot_come_up_says_why_and_leaves_nothing) {
    LAB_OR_SKIP(); // whether there can be one here
    const std::string file = folder_.write(
        "bad.toml", "[[network]]\nname = \"lan\"\n[[host]]\nname = \"a\"\naddress.lan = \"::1\"\n", false);
    const Outcome outcome = lab({"--name", "other", "up", file}); // which checks that no process is left
    EXPECT_EQ(outcome.code, 1);
    EXPECT_TRUE(is_one_line(outcome.err, "kumi: host a: ip address add ::1/64 dev lan nodad: .*"));
    EXPECT_FALSE(std::filesystem::exists(runtime_ + "/kumi-lab/other"));
}

TEST_F(Lab, where_user_namespaces_are_forbidden_it_names_the_switch) {
    // In a user namespace that allows no more of them, as a user without any rights in it.
    const std::string forbid =
        "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all ";
    const auto forbidden = [&](const std::string& command) {
        return run({.words = {"unshare", "-Ur", "sh", "-c", forbid + command}, .environment = environment()});
    };
    if (const auto reason = probes::no_lab(::geteuid() == 0 ? unknown_user : -1)) KUMI_SKIP(*reason);
    const Outcome allowed = forbidden("true");
    ASSERT_EQ(allowed.code, 0) << allowed.err;
    const Outcome outcome = forbidden(kumi_command + " lab up " + figure3);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_TRUE(is_one_line(
        outcome.err,
        "kumi: making a user namespace.*; an administrator allows it by: sysctl user.max_user_namespaces=10000"));
    EXPECT_TRUE(std::filesystem::is_empty(runtime_));
}

TEST_F(Lab, garbage_at_its_socket_does_not_disturb_the_keeper) {
    LAB_OR_SKIP();
    const std::string path = runtime_ + "/kumi-lab/lab/socket";
    for (const std::string& garbage :
         {std::string("x"), std::string(100'000, '\xff'), std::string("\4\0\0\0abcd", 8), std::string(4, '\0')}) {
        const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        ASSERT_LT(path.size(), sizeof address.sun_path);
        path.copy(address.sun_path, path.size());
        ASSERT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        ::send(socket, garbage.data(), garbage.size(), MSG_NOSIGNAL);
        EXPECT_EQ(exec("a0", {"hostname"}).out, "a0\n") << "while the other is not done";
        ::close(socket);
    }
    EXPECT_EQ(exec("a0", {"hostname"}).out, "a0\n");
}

TEST_F(Lab, a_folder_of_somebody_elses_is_not_used) {
    if (::geteuid() != 0) KUMI_SKIP(skips::not_root); // who alone can give a folder away
    const std::string base = runtime_ + "/kumi-lab";
    ASSERT_EQ(::mkdir(base.c_str(), 0700), 0);
    ASSERT_EQ(::chown(base.c_str(), unknown_user, unknown_user), 0);
    const Outcome outcome = up();
    EXPECT_EQ(outcome.code, 1);
    EXPECT_TRUE(is_one_line(outcome.err, "kumi: .*/kumi-lab is not a folder that only you can use; .*"));
    ::rmdir(base.c_str());
}
