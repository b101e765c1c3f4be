#include "kumi/boot/store/pmi_line.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace kumi::boot {
namespace {

TEST(PmiLine, a_line_is_a_command_and_its_fields) {
    const auto line = PmiLine::parse("cmd=get_result rc=-1 msg=success value=a=b");
    ASSERT_TRUE(line) << line.error().text();
    EXPECT_EQ(line->command(), "get_result");
    EXPECT_EQ(line->number("rc"), -1);
    EXPECT_EQ(line->field("value"), "a=b");
    EXPECT_EQ(line->field("kvsname"), std::nullopt);
    EXPECT_EQ(line->number("msg"), std::nullopt);
}

TEST(PmiLine, words_that_are_no_fields_do_no_harm) {
    const auto line = PmiLine::parse("cmd=put_result rc=-1 msg=no such  key ");
    ASSERT_TRUE(line) << line.error().text();
    EXPECT_EQ(line->number("rc"), -1);
    EXPECT_EQ(line->field("msg"), "no");
}

TEST(PmiLine, what_does_not_start_with_a_command_is_refused_and_shown) {
    for (const char* text : {"", " ", "HTTP/1.1 400 Bad Request", "rc=0 cmd=init", "cmd=", "=", "cmd"}) {
        const auto line = PmiLine::parse(text);
        ASSERT_FALSE(line) << text;
        EXPECT_NE(line.error().text().find(text), std::string::npos);
    }
    EXPECT_EQ(PmiLine::parse("\x01\xff").error().text(), "\"??\" is no line of PMI-1");
}

TEST(PmiLine, a_request_is_one_line) {
    EXPECT_EQ(pmi_line("barrier_in"), "cmd=barrier_in\n");
    EXPECT_EQ(pmi_line("get", {{"kvsname", "k"}, {"key", "a"}}), "cmd=get kvsname=k key=a\n");
}

TEST(PmiLineReader, lines_come_out_whole_however_they_were_cut) {
    std::string stream;
    for (int i = 0; i < 100; ++i) stream += "cmd=line number=" + std::to_string(i) + "\n";
    std::mt19937 random(1);
    PmiLineReader reader;
    int lines = 0;
    for (std::size_t at = 0; at < stream.size();) {
        const std::size_t piece = std::min<std::size_t>(1 + random() % 50, stream.size() - at);
        reader.take(bytes_of(std::string_view(stream).substr(at, piece)));
        at += piece;
        for (auto line = reader.next();; line = reader.next()) {
            ASSERT_TRUE(line);
            if (!*line) break;
            EXPECT_EQ((*line)->number("number"), lines++);
        }
    }
    EXPECT_EQ(lines, 100);
}

TEST(PmiLineReader, a_line_without_end_is_an_error_and_not_all_the_memory) {
    PmiLineReader reader;
    const std::string piece(1000, 'x');
    std::size_t given = 0;
    Result<std::optional<PmiLine>> line = std::optional<PmiLine>{};
    while (line && given < 10 * pmi_line_bytes_max) {
        reader.take(bytes_of(std::string_view(piece)));
        given += piece.size();
        line = reader.next();
    }
    EXPECT_FALSE(line);
    EXPECT_LE(given, pmi_line_bytes_max + piece.size());
    EXPECT_LT(line.error().text().size(), 200u);
}

TEST(PmiLineReader, garbage_is_an_error_or_waits_for_more) {
    std::mt19937 random(2);
    for (int round = 0; round < 2000; ++round) {
        std::vector<std::byte> garbage(random() % 300);
        for (auto& byte : garbage)
            byte = static_cast<std::byte>(random() % 4 == 0 ? "\n =c"[random() % 4] : static_cast<int>(random()));
        PmiLineReader reader;
        reader.take(garbage);
        for (auto ends = std::count(garbage.begin(), garbage.end(), std::byte{'\n'}); ends > 0; --ends)
            ASSERT_FALSE(reader.next()) << "a line of garbage was taken for one of PMI-1, round " << round;
        const auto rest = reader.next();
        ASSERT_TRUE(rest) << rest.error().text();
        ASSERT_FALSE(*rest) << "it has no end yet";
        // What follows is understood again.
        reader.take(bytes_of(std::string_view("\ncmd=init\n")));
        ASSERT_FALSE(reader.next());
        const auto line = reader.next();
        ASSERT_TRUE(line && *line);
        ASSERT_EQ((*line)->command(), "init");
    }
}

TEST(PmiLineReader, a_line_of_the_greatest_length_is_read_and_one_byte_more_is_an_error) {
    for (const std::size_t more : {0u, 1u}) {
        std::string line = "cmd=get value=";
        line.resize(pmi_line_bytes_max + more, 'x');
        PmiLineReader reader;
        reader.take(bytes_of(std::string_view(line)));
        EXPECT_EQ(reader.next().has_value(), more == 0) << "without its end, " << more << " more";
        reader.take(bytes_of(std::string_view("\n")));
        const auto read = reader.next();
        ASSERT_EQ(read.has_value(), more == 0) << "with its end, " << more << " more";
        if (more == 0) {
            ASSERT_TRUE(*read);
            EXPECT_EQ((*read)->field("value")->size(), pmi_line_bytes_max - 14);
        }
    }
}

TEST(PmiLine, what_is_shown_of_garbage_is_short_and_readable) {
    EXPECT_EQ(shown(std::string(60, 'x')), std::string(60, 'x'));
    EXPECT_EQ(shown(std::string(61, 'x')), std::string(60, 'x') + "...");
    EXPECT_EQ(shown(" ~\x1f\x7f\x80"), " ~???");
}

TEST(PmiLine, bytes_go_as_digits_and_come_back) {
    std::vector<std::byte> all(256);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(i);
    EXPECT_EQ(bytes_of_hex(hex_of(all)), all);
    EXPECT_EQ(hex_of({}), "");
    EXPECT_TRUE(bytes_of_hex("")->empty());
    EXPECT_EQ(bytes_of_hex("0"), std::nullopt);
    for (const char* bad : {"0x", "x0", "0g", "0G", "0/", "0:", "0@", "0`", "g0", " 0"})
        EXPECT_EQ(bytes_of_hex(bad), std::nullopt) << bad;
    EXPECT_EQ(bytes_of_hex("09afAF"), (std::vector<std::byte>{std::byte{0x09}, std::byte{0xaf}, std::byte{0xaf}}));
}

} // namespace
} // namespace kumi::boot
