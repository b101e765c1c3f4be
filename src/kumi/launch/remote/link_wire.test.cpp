#include "kumi/launch/remote/link_wire.hpp"

#include "kumi/boot/wire.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

namespace kumi::launch::remote {
namespace {

TEST(LinkWire, an_order_arrives_as_it_was_given) {
    JobOrder order{.first = 3,
                   .count = 2,
                   .nodes = 9,
                   .bind = false,
                   .is_terminal = true,
                   .rows = 24,
                   .columns = 80,
                   .folder = "/a b",
                   .program = "./p",
                   .arguments = {"", "x\n", "-n"},
                   .environment = {"A=1", "B="},
                   .cluster_text = "[[host]]\n",
                   .job_name = "kumi-1",
                   .parts = {{"a", 0, 3}, {"b", 3, 2}, {"c", 5, 4}},
                   .mpi_over_kumi = true};
    auto back = decode_order(encode(order));
    ASSERT_TRUE(back) << back.error().text();
    EXPECT_EQ(back->first, 3u);
    EXPECT_EQ(back->count, 2u);
    EXPECT_EQ(back->nodes, 9u);
    EXPECT_FALSE(back->bind);
    EXPECT_TRUE(back->is_terminal);
    EXPECT_EQ(back->rows, 24);
    EXPECT_EQ(back->columns, 80);
    EXPECT_EQ(back->folder, "/a b");
    EXPECT_EQ(back->program, "./p");
    EXPECT_EQ(back->arguments, order.arguments);
    EXPECT_EQ(back->environment, order.environment);
    EXPECT_EQ(back->cluster_text, order.cluster_text);
    EXPECT_EQ(back->job_name, "kumi-1");
    EXPECT_TRUE(back->mpi_over_kumi);
    ASSERT_EQ(back->parts.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(back->parts[i].host, order.parts[i].host);
        EXPECT_EQ(back->parts[i].first, order.parts[i].first);
        EXPECT_EQ(back->parts[i].count, order.parts[i].count);
    }
    order.cluster_text.reset();
    EXPECT_FALSE(decode_order(encode(order))->cluster_text);
}

TEST(LinkWire, an_order_that_is_cut_short_is_none) {
    const auto whole = encode(JobOrder{.folder = "/",
                                       .program = "p",
                                       .arguments = {"a"},
                                       .environment = {"A=1"},
                                       .cluster_text = {},
                                       .job_name = "j",
                                       .parts = {{"a", 0, 1}}});
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
        EXPECT_FALSE(decode_order(Bytes(whole).first(bytes))) << bytes;
}

TEST(LinkWire, a_hello_is_found_behind_what_a_login_shell_prints_and_frames_follow_it) {
    LinkReader reader;
    reader.add(bytes_of(std::string_view("Welcome to b0!\nYou have mail.")));
    EXPECT_FALSE(reader.next_hello());
    std::vector<std::byte> stream;
    const std::string said =
        encode(Hello{.version = full_version("1.2.3"), .wall_clock_ns = 1'700'000'000'000'000'000, .cores = 64});
    const auto ended = encode(LinkKind::ended, 7, 256, {});
    for (const Bytes part : {bytes_of(std::string_view(said)), Bytes(ended)})
        stream.insert(stream.end(), part.begin(), part.end());
    std::optional<Hello> hello;
    for (const std::byte& byte : stream) { // one by one
        reader.add({&byte, 1});
        if (!hello) hello = reader.next_hello();
    }
    ASSERT_TRUE(hello);
    EXPECT_EQ(hello->version, full_version("1.2.3"));
    EXPECT_EQ(hello->wall_clock_ns, 1'700'000'000'000'000'000);
    EXPECT_EQ(hello->cores, 64u);
    const auto frame = reader.next();
    ASSERT_TRUE(frame && *frame);
    EXPECT_EQ((*frame)->kind, LinkKind::ended);
    EXPECT_EQ((*frame)->node, 7u);
    EXPECT_EQ((*frame)->value, 256u);
    EXPECT_FALSE(*reader.next());
}

TEST(LinkWire, many_frames_that_came_at_once_come_out_one_by_one) {
    LinkReader reader;
    for (std::uint32_t i = 0; i < 1000; ++i) reader.add(encode(LinkKind::out, i, 0, bytes_of(i)));
    for (std::uint32_t i = 0; i < 1000; ++i) {
        const auto frame = reader.next();
        ASSERT_TRUE(frame && *frame);
        std::uint32_t body = 0;
        EXPECT_EQ((*frame)->node, i);
        EXPECT_TRUE(read_value((*frame)->body, body) && body == i);
    }
    EXPECT_FALSE(*reader.next());
    EXPECT_TRUE(reader.left().empty());
}

TEST(LinkWire, garbage_is_an_error_and_not_a_frame) {
    std::mt19937 random(3);
    for (int round = 0; round < 200; ++round) {
        LinkReader reader;
        for (int i = 0; i < 10; ++i) reader.add(bytes_of(static_cast<std::uint32_t>(random()) | 0x80000000u));
        EXPECT_FALSE(reader.next());
    }
}

TEST(LinkWire, a_clock_is_wrong_by_what_no_delay_explains) {
    EXPECT_EQ(clock_difference_ns(150, 100, 200), 0);
    EXPECT_EQ(clock_difference_ns(250, 100, 200), 50);
    EXPECT_EQ(clock_difference_ns(70, 100, 200), -30);
}

TEST(LinkWire, the_largest_body_is_taken_and_one_byte_more_is_garbage) {
    for (const auto& [bytes, is_sound] : {std::pair{boot::body_bytes_max, true}, {boot::body_bytes_max + 1, false}}) {
        LinkReader reader;
        const LinkHeader header{LinkKind::out, 0, 0, bytes};
        reader.add(bytes_of(header)); // without its body, which is to come
        const auto frame = reader.next();
        EXPECT_EQ(frame.has_value(), is_sound);
        EXPECT_TRUE(!is_sound || !*frame);
    }
}

TEST(LinkWire, kinds_are_those_of_the_protocol_and_no_others) {
    for (std::uint32_t kind = 0; kind < 20; ++kind) {
        LinkReader reader;
        reader.add(encode(static_cast<LinkKind>(kind), 5, 6, bytes_of(std::string_view("body"))));
        const auto frame = reader.next();
        EXPECT_EQ(frame.has_value(), kind >= 1 && kind <= 13) << kind;
        EXPECT_TRUE(!frame || text_of((*frame)->body) == "body");
    }
}

TEST(LinkWire, a_frame_is_there_with_its_last_byte_and_not_before) {
    const auto whole = encode(LinkKind::err, 1, 2, bytes_of(std::string_view("text")));
    LinkReader reader;
    reader.add(Bytes(whole).first(whole.size() - 1));
    const auto early = reader.next();
    ASSERT_TRUE(early);
    EXPECT_FALSE(*early);
    reader.add(Bytes(whole).last(1));
    const auto frame = reader.next();
    ASSERT_TRUE(frame && *frame);
    EXPECT_EQ(text_of((*frame)->body), "text");
    EXPECT_TRUE(reader.left().empty());
}

TEST(LinkWire, an_order_that_promises_more_words_than_it_has_is_none) {
    auto bytes = encode(JobOrder{.folder = "/",
                                 .program = "p",
                                 .arguments = {"a", "b"},
                                 .environment = {"A=1"},
                                 .cluster_text = {},
                                 .job_name = {},
                                 .parts = {}});
    EXPECT_TRUE(decode_order(bytes));
    constexpr std::size_t arguments_at = 6 * sizeof(std::uint32_t); // the seventh number of its head
    for (const std::uint32_t count : {3u, 0xffffffffu}) {
        std::memcpy(bytes.data() + arguments_at, &count, sizeof count);
        EXPECT_FALSE(decode_order(bytes)) << count;
    }
}

TEST(LinkWire, an_empty_cluster_file_is_not_none) {
    const auto back = decode_order(encode(JobOrder{.folder = "/",
                                                   .program = "p",
                                                   .arguments = {},
                                                   .environment = {},
                                                   .cluster_text = "",
                                                   .job_name = {},
                                                   .parts = {}}));
    ASSERT_TRUE(back && back->cluster_text);
    EXPECT_EQ(*back->cluster_text, "");
    EXPECT_TRUE(back->bind);
    EXPECT_FALSE(back->is_terminal);
}

TEST(LinkWire, a_version_is_that_of_kumi_and_of_both_protocols) {
    EXPECT_EQ(full_version("1.2.3"), fmt::format("1.2.3-{}.{}", boot::wire_version, link_version));
}

TEST(LinkWire, a_hello_of_another_version_is_heard_though_its_numbers_are_none) {
    LinkReader reader;
    reader.add(bytes_of(std::string_view("\nkumi-host-helper 9.9 soon many\n")));
    const auto hello = reader.next_hello();
    ASSERT_TRUE(hello);
    EXPECT_EQ(hello->version, "9.9");
    EXPECT_EQ(hello->wall_clock_ns, 0);
    EXPECT_EQ(hello->cores, 1u);
    EXPECT_TRUE(reader.left().empty());
    reader.add(bytes_of(std::string_view("kumi-host-helper\n")));
    EXPECT_FALSE(reader.next_hello()) << "the mark ends with a blank";
}

TEST(LinkWire, a_clock_at_either_end_of_the_delay_is_right) {
    EXPECT_EQ(clock_difference_ns(100, 100, 200), 0);
    EXPECT_EQ(clock_difference_ns(200, 100, 200), 0);
    EXPECT_EQ(clock_difference_ns(99, 100, 200), -1);
    EXPECT_EQ(clock_difference_ns(201, 100, 200), 1);
}

} // namespace
} // namespace kumi::launch::remote
