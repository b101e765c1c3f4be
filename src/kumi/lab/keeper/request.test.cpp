#include "kumi/lab/keeper/request.hpp"

#include "kumi/lab/keeper/session.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace kumi::lab {
namespace {

struct Pair {
    base::Descriptor one;
    base::Descriptor other;

    Pair() {
        int ends[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        one.reset(ends[0]);
        other.reset(ends[1]);
    }
};

TEST(LabRequest, arrives_as_it_was_sent_with_the_standard_streams) {
    const Pair pair;
    Request request;
    request.verb = "exec";
    request.words = {"a0", "echo", "", "two words"};
    request.folder = "/tmp";
    request.environment = {"A=b", "LONG=" + std::string(1'000'000, 'x')};
    std::thread sender([&] { EXPECT_TRUE(send_request(pair.one.get(), request)); });
    const auto received = receive_request(pair.other.get());
    sender.join();
    ASSERT_TRUE(received) << received.error().text();
    EXPECT_EQ(received->verb, request.verb);
    EXPECT_EQ(received->words, request.words);
    EXPECT_EQ(received->folder, request.folder);
    EXPECT_EQ(received->environment, request.environment);
    ASSERT_EQ(received->streams.size(), 3u);
    struct stat ours {}, theirs {};
    ASSERT_EQ(::fstat(STDERR_FILENO, &ours), 0);
    ASSERT_EQ(::fstat(received->streams[2].get(), &theirs), 0);
    EXPECT_EQ(ours.st_ino, theirs.st_ino);
}

TEST(LabRequest, one_that_is_wrong_is_refused) {
    const std::string no_end("\1\0\0\0x", 5), too_short("\2\0\0\0x\0", 6), too_few("\6\0\0\0x\0y\0009\0", 10),
        no_streams("\6\0\0\0x\0y\0000\0", 10);
    for (const std::string& wrong :
         {std::string(), std::string("\1"), std::string(4, '\xff'), no_end, too_short, too_few, no_streams}) {
        Pair pair;
        ASSERT_EQ(::send(pair.one.get(), wrong.data(), wrong.size(), 0), static_cast<ssize_t>(wrong.size()));
        pair.one.reset();
        EXPECT_FALSE(receive_request(pair.other.get())) << wrong.size();
    }
}

TEST(LabRequest, an_answer_is_a_number_and_a_text_and_none_is_an_error) {
    Pair pair;
    send_answer(pair.one.get(), {137, "why"});
    pair.one.reset();
    const auto answer = receive_answer(pair.other.get());
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->code, 137);
    EXPECT_EQ(answer->text, "why");
    EXPECT_FALSE(receive_answer(pair.other.get()));
    send_answer(pair.other.get(), {0, "nobody hears it"}); // and nothing dies of it
}

TEST(LabRequest, a_single_word_with_blanks_is_for_a_shell) {
    using Words = std::vector<std::string>;
    EXPECT_EQ(command_of({"ls -l"}), (Words{"/bin/sh", "-c", "ls -l"}));
    EXPECT_EQ(command_of({"ls"}), (Words{"ls"}));
    EXPECT_EQ(command_of({"ls", "a b"}), (Words{"ls", "a b"}));
}

TEST(LabRequest, the_longest_is_taken_and_one_byte_more_is_refused_on_both_sides) {
    constexpr std::size_t most = 8u << 20;
    Request request;
    request.verb = "exec";
    request.words = {std::string(most - 9, 'x')}; // with "exec", an empty folder, "1" and the zeros
    const Pair pair;
    std::thread sender([&] {
        const auto sent = send_request(pair.one.get(), request);
        EXPECT_TRUE(sent);
        if (!sent) ::shutdown(pair.one.get(), SHUT_WR);
    });
    const auto received = receive_request(pair.other.get());
    if (!received) ::shutdown(pair.other.get(), SHUT_RDWR); // the sender waits for room
    sender.join();
    ASSERT_TRUE(received) << received.error().text();
    EXPECT_EQ(received->words, request.words);
    request.words[0].push_back('x');
    const auto refused = send_request(pair.one.get(), request);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().text(), "the command and its environment are too long for the lab");
    const std::uint32_t length = most + 1;
    ASSERT_EQ(::send(pair.one.get(), &length, sizeof length, 0), static_cast<ssize_t>(sizeof length));
    const auto dropped = receive_request(pair.other.get()); // without waiting for so many bytes
    ASSERT_FALSE(dropped);
    EXPECT_EQ(dropped.error().text(), "no request");
}

TEST(LabRequest, words_that_are_counted_right_are_words_and_the_rest_is_environment) {
    const Pair pair;
    Request request;
    request.verb = "link";
    request.environment = {"A=b"};
    ASSERT_TRUE(send_request(pair.one.get(), request));
    auto received = receive_request(pair.other.get());
    ASSERT_TRUE(received) << received.error().text();
    EXPECT_TRUE(received->words.empty());
    EXPECT_EQ(received->environment, request.environment);
    request.words = {"a0", "lan", "down"};
    request.environment.clear();
    ASSERT_TRUE(send_request(pair.one.get(), request));
    received = receive_request(pair.other.get());
    ASSERT_TRUE(received) << received.error().text();
    EXPECT_EQ(received->words, request.words);
    EXPECT_TRUE(received->environment.empty());
}

TEST(LabRequest, a_single_word_with_any_blank_is_for_a_shell) {
    for (const char* const word : {"a\tb", "a\nb", " "}) EXPECT_EQ(command_of({word}).size(), 3u) << word;
    EXPECT_EQ(command_of({}).size(), 0u);
    EXPECT_EQ(command_of({"a;b"}).size(), 1u);
}

} // namespace
} // namespace kumi::lab
