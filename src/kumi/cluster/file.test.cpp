#include "kumi/cluster/file.hpp"

#include "kumi/cluster/ranges.hpp"

#include <gtest/gtest.h>

namespace kumi::cluster {
namespace {

using Names = std::vector<std::string>;

std::string refusal(std::string_view text) {
    const auto read = parse_cluster(text, "c.toml");
    return read ? "" : read.error().text();
}

TEST(Ranges, brackets_stand_for_many_names) {
    EXPECT_EQ(*expand("a"), (Names{"a"}));
    EXPECT_EQ(*expand("a[0-3,7]"), (Names{"a0", "a1", "a2", "a3", "a7"}));
    EXPECT_EQ(*expand("n[08-10].lab"), (Names{"n08.lab", "n09.lab", "n10.lab"}));
    EXPECT_EQ(*expand("r[0-1]n[1-2]"), (Names{"r0n1", "r0n2", "r1n1", "r1n2"}));
    EXPECT_EQ(expand("a[0-18446744073709551615]").error().text(),
              "\"a[0-18446744073709551615]\" stands for more than 65536 names");
    EXPECT_EQ(expand("a[18446744073709551615]")->front(), "a18446744073709551615");
    for (const char* bad : {"a[", "a]", "a]0[", "a[]", "a[x]", "a[3-1]", "a[1-]", "a[0-65536]", "a[0-999]b[0-999]"})
        EXPECT_FALSE(expand(bad)) << bad;
}

TEST(Ranges, a_list_is_cut_outside_brackets_only) {
    EXPECT_EQ(split_list("a,b[0,2]:2,c"), (std::vector<std::string_view>{"a", "b[0,2]:2", "c"}));
    EXPECT_EQ(split_list(""), (std::vector<std::string_view>{""}));
}

TEST(ClusterFile, says_hosts_slots_networks_and_addresses) {
    const auto read = parse_cluster(R"(
        silence = 30
        [[network]]
        name = "lan"
        encrypt = true
        options = { buffer = "4M", port = 10 }
        [[network]]
        name = "fast"
        priority = 5
        mtu = 9000
        [[host]]
        name = "a[0-1]"
        slots = 2
        address.fast = "10.0.0.[1-2]"
        address.lan = "fd00::[1-2]"
        [[host]]
        name = "b"
    )", "c.toml");
    ASSERT_TRUE(read) << read.error().text();
    ASSERT_EQ(read->networks.size(), 2u);
    EXPECT_EQ(read->networks[0].name, "fast"); // the better one
    EXPECT_EQ(read->networks[0].letter, 'F');
    EXPECT_TRUE(read->networks[1].encrypt);
    ASSERT_EQ(read->networks[1].options.size(), 2u);
    EXPECT_EQ(read->networks[1].options[1].value, "10");
    ASSERT_EQ(read->hosts.size(), 3u);
    EXPECT_EQ(read->hosts[1].addresses, (Names{"10.0.0.2", "fd00::2"}));
    EXPECT_EQ(read->hosts[2].slots, 1u);
    EXPECT_FALSE(read->hosts[2].is_on(0));
    EXPECT_EQ(read->slots(), 5u);
    EXPECT_EQ(read->silence_seconds, 30u);
    EXPECT_EQ(parse_cluster("[[host]]\nname = \"a\"", "c.toml")->silence_seconds, std::nullopt);
}

TEST(ClusterFile, what_is_wrong_is_said_with_its_place_and_the_remedy) {
    const std::pair<const char*, const char*> cases[] = {
        {"", "c.toml: no hosts; write [[host]] and name = \"...\" for each"},
        {"[host]\nname = \"a\"", "c.toml:1:1: write [[host]] with two brackets, once for each host"},
        {"[[hots]]\nname = \"a\"", "c.toml:1:3: \"hots\" means nothing here; did you mean \"host\"?"},
        {"[[host]]\nname = \"a\"\nslot = 2", "c.toml:3:1: \"slot\" means nothing here; did you mean \"slots\"?"},
        {"silence = -1\n[[host]]\nname = \"a\"", "c.toml:1:11: silence = -1: write 0 to 1000000"},
        {"silence = \"long\"\n[[host]]\nname = \"a\"", "c.toml:1:11: silence is to be a whole number"},
        {"[[host]]\nslots = 2", "c.toml:1:1: this host has no name; write name = \"...\""},
        {"[[host]]\nname = \"a\"\nslots = 0", "c.toml:3:9: slots = 0: write 1 to 1048576"},
        {"[[host]]\nname = \"a\"\nslots = \"2\"", "c.toml:3:9: slots is to be a whole number"},
        {"[[host]]\nname = \"a\"\n[[host]]\nname = \"a\"", "c.toml:4:8: there are two hosts \"a\""},
        {"[[host]]\nname = \"a b\"", "c.toml:2:8: \"a b\" is no host name; use letters, digits, - and ."},
        {"[[host]]\nname = \"a[0-\"", "c.toml:2:8: \"a[0-\": a bracket is missing; write a range like a[0-7]"},
        {"[[host]]\nname = \"a\"\naddress.lan = \"10.0.0.1\"",
         "c.toml:3:9: no network \"lan\" is described; write [[network]] and its name"},
        {"[[network]]\nname = \"lan\"\n[[host]]\nname = \"a\"\naddress.lam = \"10.0.0.1\"",
         "c.toml:5:9: no network \"lam\" is described; did you mean \"lan\"?"},
        {"[[network]]\nname = \"lan\"\n[[host]]\nname = \"a[0-1]\"\naddress.lan = \"10.0.0.1\"",
         "c.toml:5:15: \"10.0.0.1\" is 1 addresses for 2 hosts; write one for each"},
        {"[[network]]\nname = \"lan\"\n[[host]]\nname = \"a\"\naddress.lan = \"myhost\"",
         "c.toml:5:15: \"myhost\" is no address; write it in numbers, like \"10.0.0.1\" or \"fd00::1\""},
        {"[[network]]\nname = \"lan\"\n[[host]]\nname = \"a\"\naddress.lan = \"10.0.0.1\"\n[[host]]\nname = "
         "\"b\"\naddress.lan = \"10.0.0.1\"",
         "c.toml:8:15: a and b have the same address 10.0.0.1 on lan"},
        {"[[network]]\nname = \"lan\"\n[[host]]\nname = \"a\"\naddress.lan = \"10.1.1.300\"",
         "c.toml:5:15: \"10.1.1.300\" is no address; write it in numbers, like \"10.0.0.1\" or \"fd00::1\""},
        {"[[network]]\nname = \"lan\"\n[[host]]\nname = \"a\"\naddress.lan = \"10.0.0.1%eth0\"",
         "c.toml:5:15: \"10.0.0.1%eth0\" is no address; write it in numbers, like \"10.0.0.1\" or \"fd00::1\""},
        {"[[network]]\nname = \"lan\"\n[[host]]\nname = \"a\"\naddress.lan = \"fe80::1%\"",
         "c.toml:5:15: \"fe80::1%\" is no address; write it in numbers, like \"10.0.0.1\" or \"fd00::1\""},
        {"[[network]]\nname = \"lan\"\n[[host]]\nname = \"a\"\naddress.lan = \"0.0.0.0\"",
         "c.toml:5:15: 0.0.0.0 is no address of one host; write that of its interface on lan"},
        {"[[network]]\nname = \"lan\"\n[[host]]\nname = \"a\"\naddress.lan = \"224.0.0.1\"",
         "c.toml:5:15: 224.0.0.1 is no address of one host; write that of its interface on lan"},
        {"[[network]]\nname = \"lan\"\n[[host]]\nname = \"a\"\naddress.lan = \"ff02::1\"",
         "c.toml:5:15: ff02::1 is no address of one host; write that of its interface on lan"},
        {"[[network]]\nname = \"lan\"\n[[host]]\nname = \"a\"\naddress.lan = \"10.0.0.1\"\n[[host]]\nname = "
         "\"b\"\naddress.lan = \"fd00::1\"",
         "c.toml:8:15: a has an IPv4 address on lan and b an IPv6 one; use one kind on each network"},
        {"[[network]]\nname = \"lan\"\nrate = \"fast\"",
         "c.toml:3:8: \"fast\" is no rate; write it like 100mbit, from 1kbit to 1000gbit, or none"},
        {"[[network]]\nname = \"lan\"\n[[network]]\nname = \"lan\"",
         "c.toml:4:8: there are two networks \"lan\"; call one of them otherwise"},
        {"[[network]]\nname = \"lan\"\ndevice = \"myrinet\"",
         "c.toml:3:10: no device \"myrinet\"; a network is driven by \"udp\""},
        {"[[network]]\nname = \"lan\"\nletter = \"S\"",
         "c.toml:3:10: the letter S stands for shared memory already; take another"},
        {"[[network]]\nname = \"lan\"\nletter = \"xy\"", "c.toml:3:10: letter = \"xy\": write one capital letter"},
        {"[[network]]\nname = \"lan\"\nencrypt = 1", "c.toml:3:11: encrypt is to be true or false"},
        {"[[network]]\nname = \"lan\"\ntopology = \"star\"",
         "c.toml:3:12: \"star\" is no topology; write \"all\", \"chain\", \"ring\", \"tree\" or \"torus 4x2\""},
        {"[[network]]\nname = \"lan\"\ntopology = \"torus 2x2\"\n[[host]]\nname = \"a\"\naddress.lan = \"10.0.0.1\"",
         "c.toml: network \"lan\": a torus of 2x2 has 4 hosts, and 1 are on this network"},
    };
    for (const auto& [text, expected] : cases) EXPECT_EQ(refusal(text), expected) << text;
    EXPECT_TRUE(refusal("[[host]]\nname = ").starts_with("c.toml:2:")) << refusal("[[host]]\nname = ");
    EXPECT_EQ(read_cluster_file("/nowhere.toml").error().text(),
              "reading the cluster file /nowhere.toml: No such file or directory");
}

TEST(ClusterFile, an_ipv6_address_may_name_its_interface) {
    const auto read =
        parse_cluster("[[network]]\nname = \"lan\"\n[[host]]\nname = \"a\"\naddress.lan = \"fe80::1%eth0\"", "c.toml");
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(read->hosts[0].addresses[0], "fe80::1%eth0");
}

TEST(ClusterFile, networks_get_letters_that_tell_them_apart) {
    const auto read = parse_cluster(
        "[[network]]\nname = \"san\"\n[[network]]\nname = \"aa\"\n[[network]]\nname = \"sa\"\n[[host]]\nname = \"h\"",
        "c.toml");
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(read->networks[0].letter, 'A'); // S is shared memory
    EXPECT_EQ(read->networks[1].letter, 'B');
    EXPECT_EQ(read->networks[2].letter, 'C');
}

TEST(Topology, says_who_are_neighbours) {
    const auto neighbours = [](const char* text, std::uint32_t place, std::uint32_t members) {
        std::vector<std::uint32_t> found;
        for (std::uint32_t other = 0; other < members; ++other)
            if (Topology::parse(text)->joins(place, other, members)) found.push_back(other);
        return found;
    };
    using Places = std::vector<std::uint32_t>;
    EXPECT_EQ(neighbours("all", 1, 4), (Places{0, 2, 3}));
    EXPECT_EQ(neighbours("chain", 0, 4), (Places{1}));
    EXPECT_EQ(neighbours("ring", 0, 4), (Places{1, 3}));
    EXPECT_EQ(neighbours("tree", 1, 7), (Places{0, 3, 4}));
    EXPECT_EQ(neighbours("torus 3x3", 0, 9), (Places{1, 2, 3, 6}));
    EXPECT_EQ(neighbours("torus 4x2", 1, 8), (Places{0, 2, 5}));
    for (const char* bad : {"", "torus", "torus 4", "torus 0x2", "torus 4x", "torus 4x2x", "ring 4", "rings"})
        EXPECT_FALSE(Topology::parse(bad)) << bad;
    EXPECT_EQ(Topology::parse("torus 4x2")->text(), "torus 4x2");
}

TEST(HostList, hosts_and_slots_on_one_line) {
    const auto read = parse_host_list("a,b:2,c[0-1]:4");
    ASSERT_TRUE(read);
    ASSERT_EQ(read->hosts.size(), 4u);
    EXPECT_EQ(read->hosts[0].slots, 1u);
    EXPECT_EQ(read->hosts[1].slots, 2u);
    EXPECT_EQ(read->hosts[3].name, "c1");
    EXPECT_EQ(read->hosts[3].slots, 4u);
    for (const char* bad : {"", "a,,b", "a:0", "a:x", "a:", "a,a", "a b", "a:99999999"})
        EXPECT_FALSE(parse_host_list(bad)) << bad;
}

TEST(Ranges, of_the_most_names_that_there_may_be_none_is_missing_and_one_more_is_refused) {
    for (const char* most : {"a[0-65535]", "a[0,1-65535]", "a[0-255]b[0-255]"}) {
        const auto names = expand(most);
        ASSERT_TRUE(names) << most;
        EXPECT_EQ(names->size(), range_names_max) << most;
    }
    for (const char* more : {"a[0-65536]", "a[0,1-65536]", "a[0-65535,7]", "a[0-256]b[0-255]"})
        EXPECT_FALSE(expand(more)) << more;
    EXPECT_EQ(*expand("a[7-7]"), (Names{"a7"}));
    EXPECT_EQ(*expand("a[0-1]"), (Names{"a0", "a1"})) << "a single zero is no width";
    EXPECT_EQ(*expand("a[009-010]"), (Names{"a009", "a010"}));
}

TEST(ClusterFile, numbers_are_taken_up_to_their_bounds) {
    const auto with_slots = [](int slots) { return refusal(fmt::format("[[host]]\nname = \"a\"\nslots = {}", slots)); };
    EXPECT_EQ(with_slots(1), "");
    EXPECT_EQ(with_slots(1 << 20), "");
    EXPECT_EQ(with_slots((1 << 20) + 1), "c.toml:3:9: slots = 1048577: write 1 to 1048576");
    const auto with_mtu = [](int mtu) {
        return refusal(fmt::format("[[network]]\nname = \"lan\"\nmtu = {}\n[[host]]\nname = \"a\"", mtu));
    };
    EXPECT_EQ(with_mtu(576), "");
    EXPECT_EQ(with_mtu(65'535), "");
    EXPECT_EQ(with_mtu(575), "c.toml:3:7: mtu = 575: write 576 to 65535");
    EXPECT_EQ(with_mtu(65'536), "c.toml:3:7: mtu = 65536: write 576 to 65535");
    EXPECT_TRUE(parse_host_list("a:1048576"));
    EXPECT_FALSE(parse_host_list("a:1048577"));
}

TEST(ClusterFile, more_of_what_is_wrong_is_said_with_its_place) {
    const std::string network = "[[network]]\nname = \"lan\"\n";
    const std::pair<std::string, const char*> cases[] = {
        {"[[network]]\nencrypt = true", "c.toml:1:1: this network has no name; write name = \"...\""},
        {"[[network]]\nname = \"-lan\"", "c.toml:2:8: \"-lan\" is no name; use letters, digits, - and _"},
        {"[[network]]\nname = \"l n\"", "c.toml:2:8: \"l n\" is no name; use letters, digits, - and _"},
        {network + "letter = \"x\"", "c.toml:3:10: letter = \"x\": write one capital letter"},
        {network + "letter = \"A\"\n[[network]]\nname = \"b\"\nletter = \"A\"",
         "c.toml:6:10: the letter A stands for another network already; take another"},
        {network + "options = 3", "c.toml:3:11: options are to be written like options = { buffer = \"4M\" }"},
        {network + "options = { buffer = 1.5 }", "c.toml:3:22: the option buffer is to be a text or a whole number"},
        {network + "[[host]]\nname = \"a\"\naddress = 3",
         "c.toml:5:11: write address.NETWORK = \"...\" for each network of the host"},
        {network + "[[host]]\nname = \"a\"\naddress.lan = 3",
         "c.toml:5:15: an address is to be a text, like \"10.0.0.1\""},
        {network + "[[host]]\nname = \"a\"\naddress.lan = \"\"",
         "c.toml:5:15: \"\" is no address; write it in numbers, like \"10.0.0.1\" or \"fd00::1\""},
        {network + "[[host]]\nname = \"a\"\naddress.lan = \"10.0.0.[1\"",
         "c.toml:5:15: \"10.0.0.[1\": a bracket is missing; write a range like a[0-7]"},
        {network + "[[host]]\nname = \"a\"\naddress.internet = \"10.0.0.1\"",
         "c.toml:5:9: no network \"internet\" is described; write one of: lan"},
        {"[[host]]\nname = \"-a\"", "c.toml:2:8: \"-a\" is no host name; use letters, digits, - and ."},
    };
    for (const auto& [text, expected] : cases) EXPECT_EQ(refusal(text), expected) << text;
}

TEST(ClusterFile, there_are_as_many_networks_as_letters_but_for_that_of_shared_memory) {
    std::string text;
    for (int i = 0; i < 25; ++i) text += fmt::format("[[network]]\nname = \"n{}\"\n", i);
    const auto read = parse_cluster(text + "[[host]]\nname = \"a\"", "c.toml");
    ASSERT_TRUE(read) << read.error().text();
    std::string letters;
    for (const Network& network : read->networks) letters += network.letter;
    EXPECT_EQ(letters, "NABCDEFGHIJKLMOPQRTUVWXYZ");
    EXPECT_EQ(refusal(text + "[[network]]\nname = \"n25\"\n[[host]]\nname = \"a\""),
              "c.toml:51:1: no letter is left for this network: 25 are the most");
}

TEST(ClusterFile, two_hosts_may_have_one_address_on_two_networks) {
    EXPECT_EQ(refusal("[[network]]\nname = \"lan\"\n[[network]]\nname = \"wan\"\n[[host]]\nname = \"a\"\naddress.lan = "
                      "\"10.0.0.1\"\n"
                      "[[host]]\nname = \"b\"\naddress.wan = \"10.0.0.1\""),
              "");
}

TEST(ClusterFile, of_equal_priorities_the_first_in_the_file_is_the_best) {
    const auto read = parse_cluster("[[network]]\nname = \"one\"\npriority = -1\n[[network]]\nname = "
                                    "\"two\"\n[[network]]\nname = \"three\"\n[[host]]\nname = \"a\"",
                                    "c.toml");
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(read->networks[0].name, "one");
    EXPECT_EQ(read->networks[1].name, "two");
    EXPECT_EQ(read->networks[2].name, "three");
}

TEST(Topology, every_kind_is_the_same_from_both_sides_and_nobody_is_its_own_neighbour) {
    for (const char* text : {"all", "chain", "ring", "tree", "torus 4x3", "torus 12x1", "torus 1x12", "torus 2x6"}) {
        const auto topology = Topology::parse(text);
        ASSERT_TRUE(topology) << text;
        for (std::uint32_t one = 0; one < 12; ++one)
            for (std::uint32_t other = 0; other < 12; ++other)
                EXPECT_EQ(topology->joins(one, other, 12), one != other && topology->joins(other, one, 12))
                    << text << ' ' << one << ' ' << other;
    }
    const auto tree = Topology::parse("tree"), chain = Topology::parse("chain"), ring = Topology::parse("ring");
    for (std::uint32_t node = 1; node < 12; ++node) EXPECT_TRUE(tree->joins(node, (node - 1) / 2, 12)) << node;
    EXPECT_FALSE(tree->joins(2, 4, 12));
    EXPECT_FALSE(chain->joins(0, 11, 12));
    EXPECT_TRUE(ring->joins(0, 11, 12));
    EXPECT_TRUE(ring->joins(0, 1, 2));
    EXPECT_FALSE(ring->joins(0, 2, 12));
}

TEST(Topology, a_torus_is_full_and_its_sides_are_bounded) {
    const auto torus = Topology::parse("torus 4x2");
    EXPECT_TRUE(torus->check(8));
    EXPECT_FALSE(torus->check(7));
    EXPECT_FALSE(torus->check(9));
    EXPECT_TRUE(Topology::parse("ring")->check(7));
    EXPECT_TRUE(Topology::parse("torus 65536x65536"));
    EXPECT_FALSE(Topology::parse("torus 65537x1"));
    EXPECT_FALSE(Topology::parse("torus 1x65537"));
    EXPECT_FALSE(Topology::parse("torus 65536x65536")->check(0)) << "65536 times 65536 is not 0";
}

} // namespace
} // namespace kumi::cluster
