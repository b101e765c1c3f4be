#include "kumi/base/system/shown_wait.hpp"

#include <atomic>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace kumi::base {
namespace {

using namespace std::chrono_literals;

struct Written {
    std::size_t count;
    std::string text;
};

Written written(std::string_view start = "node 1:") {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    Written all{write_shown_waits(ends[1], start), ""};
    ::close(ends[1]);
    char buffer[65536];
    for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;)
        all.text.append(buffer, static_cast<std::size_t>(got));
    ::close(ends[0]);
    return all;
}

TEST(ShownWait, is_written_with_its_age_until_it_ends) {
    EXPECT_EQ(written().count, 0u);
    {
        ShownWait first, second;
        EXPECT_EQ(written().count, 0u) << "nothing is shown yet";
        first.show(now() - 2350ms, "barrier: node 2 has not come");
        second.show(now(), "sync");
        Written all = written();
        EXPECT_EQ(all.count, 2u);
        EXPECT_EQ(all.text, "node 1: barrier: node 2 has not come, for 2.3 s\nnode 1: sync, for 0.0 s\n");
        first.show(now() - 1s, "node 3");
        EXPECT_EQ(written("here").text, "here node 3, for 1.0 s\nhere sync, for 0.0 s\n");
        first.hide();
        EXPECT_EQ(written().text, "node 1: sync, for 0.0 s\n");
    }
    EXPECT_EQ(written().count, 0u);
}

TEST(ShownWait, cuts_long_texts_and_does_without_a_place) {
    std::vector<std::unique_ptr<ShownWait>> waits;
    for (std::size_t i = 0; i < ShownWait::shown_max + 3; ++i) {
        waits.push_back(std::make_unique<ShownWait>());
        waits.back()->show(now(), std::string(2 * ShownWait::text_max, 'x'));
    }
    EXPECT_EQ(written().count, ShownWait::shown_max);
    waits.clear();
    EXPECT_EQ(written().count, 0u);
    ShownWait again;
    again.show(now(), std::string(2 * ShownWait::text_max, 'y'));
    EXPECT_EQ(written("-").text, "- " + std::string(ShownWait::text_max, 'y') + ", for 0.0 s\n");
}

TEST(ShownWait, is_never_seen_half_written) {
    std::atomic<bool> is_over{false};
    std::thread writer([&] {
        ShownWait wait;
        for (unsigned i = 0; !is_over.load(); ++i)
            wait.show(now(), std::string(1 + i % ShownWait::text_max, static_cast<char>('a' + i % 26)));
    });
    for (int i = 0; i < 2000; ++i) {
        const std::string text = written("-").text;
        if (text.empty()) continue; // the writer was faster each time
        const std::string body = text.substr(2, text.find(',') - 2);
        EXPECT_EQ(body, std::string(body.size(), body[0]));
    }
    is_over = true;
    writer.join();
}

} // namespace
} // namespace kumi::base
