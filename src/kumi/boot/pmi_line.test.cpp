#include "kumi/boot/pmi_line.hpp"

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
    EXPECT_EQ(pmi_request("barrier_in"), "cmd=barrier_in\n");
    EXPECT_EQ(pmi_request("get", {{"kvsname", "k"}, {"key", "a"}}), "cmd=get kvsname=k key=a\n");
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
        for (auto& byte : garbage) byte = static_cast<std::byte>(random() % 4 == 0 ? "\n =c"[random() % 4] : static_cast<int>(random()));
        PmiLineReader reader;
        reader.take(garbage);
        for (int lines = 0; lines < 400; ++lines) {
            const auto line = reader.next();
            if (line && !*line) break;
        }
    }
}

TEST(PmiLine, bytes_go_as_digits_and_come_back) {
    std::vector<std::byte> all(256);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(i);
    EXPECT_EQ(bytes_of_hex(hex_of(all)), all);
    EXPECT_EQ(hex_of({}), "");
    EXPECT_TRUE(bytes_of_hex("")->empty());
    EXPECT_EQ(bytes_of_hex("0"), std::nullopt);
    EXPECT_EQ(bytes_of_hex("0x"), std::nullopt);
}

} // namespace
} // namespace kumi::boot
