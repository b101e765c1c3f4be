#include "kumi/engine/operation/noted_errors.hpp"

#include <gtest/gtest.h>

namespace kumi::engine {
namespace {

std::string text_of(const std::optional<Error>& error) { return error ? error->text() : "none"; }

TEST(NotedErrors, go_to_the_thread_that_caused_them_and_once) {
    NotedErrors errors;
    EXPECT_TRUE(errors.empty());
    EXPECT_TRUE(errors.note({Error("of 1"), 1}));
    EXPECT_TRUE(errors.note({Error("of 2"), 2}));
    EXPECT_EQ(text_of(errors.take_of_thread(3)), "none");
    EXPECT_EQ(text_of(errors.take_of_thread(2)), "of 2");
    EXPECT_EQ(text_of(errors.take_of_thread(2)), "none");
    EXPECT_EQ(text_of(errors.take_of_thread(1)), "of 1");
    EXPECT_TRUE(errors.empty());
}

TEST(NotedErrors, of_unknown_threads_go_to_the_first_that_asks) {
    NotedErrors errors;
    EXPECT_TRUE(errors.note({Error("of somebody")}));
    EXPECT_EQ(text_of(errors.take_of_thread(9)), "of somebody");
}

TEST(NotedErrors, the_first_of_a_thread_stays_unless_it_is_only_about_a_loss) {
    NotedErrors errors;
    EXPECT_TRUE(errors.note({Error("lost"), 1, nullptr, true}));
    EXPECT_TRUE(errors.note({Error("lost too"), 1, nullptr, true}));
    EXPECT_TRUE(errors.note({Error("threw"), 1}));
    EXPECT_FALSE(errors.note({Error("threw again"), 1})) << "somebody else has to be told";
    EXPECT_TRUE(errors.note({Error("lost"), 1, nullptr, true})) << "nothing new";
    EXPECT_EQ(text_of(errors.take_of_thread(1)), "threw");
    EXPECT_EQ(text_of(errors.take_of_thread(1)), "none");
}

TEST(NotedErrors, of_a_flag_go_to_whoever_waits_for_it) {
    NotedErrors errors;
    const Flag flag = 0, another = 0;
    EXPECT_TRUE(errors.note({Error("of 1 and its flag"), 1, &flag}));
    EXPECT_EQ(text_of(errors.end_wait(2, another)), "none");
    EXPECT_EQ(text_of(errors.end_wait(1, another)), "none") << "the flag that it waits for may still be set";
    EXPECT_EQ(text_of(errors.end_wait(2, flag)), "of 1 and its flag") << "it would wait for ever";
    EXPECT_TRUE(errors.note({Error("of 1"), 1}));
    EXPECT_EQ(text_of(errors.end_wait(2, flag)), "none");
    EXPECT_EQ(text_of(errors.end_wait(1, flag)), "of 1");
    EXPECT_EQ(text_of(errors.take_of_thread(1)), "of 1") << "it belongs to no flag: sync() tells it, too";
    EXPECT_TRUE(errors.note({Error("of 1 and its flag"), 1, &flag}));
    EXPECT_EQ(text_of(errors.take_of_thread(1)), "of 1 and its flag") << "sync() tells all";
    EXPECT_TRUE(errors.empty());
}

TEST(NotedErrors, that_belong_to_no_flag_end_one_wait_and_stay) {
    NotedErrors errors;
    const Flag flag = 0, another = 0;
    EXPECT_TRUE(errors.note({Error("first"), 1}));
    EXPECT_EQ(text_of(errors.end_wait(1, flag)), "first");
    EXPECT_EQ(text_of(errors.end_wait(1, flag)), "none") << "it has ended a wait";
    EXPECT_EQ(text_of(errors.end_wait(1, another)), "none");
    EXPECT_TRUE(errors.note({Error("of the flag"), 1, &flag}));
    EXPECT_EQ(text_of(errors.end_wait(1, flag)), "of the flag") << "though an older one stays";
    EXPECT_EQ(text_of(errors.take_of_thread(1)), "first");
    EXPECT_TRUE(errors.note({Error("of somebody")}));
    EXPECT_EQ(text_of(errors.end_wait(7, flag)), "of somebody");
    EXPECT_EQ(text_of(errors.end_wait(8, flag)), "none");
    EXPECT_EQ(text_of(errors.take_of_thread(8)), "of somebody");
    EXPECT_TRUE(errors.empty());
}

TEST(NotedErrors, that_have_ended_a_wait_are_replaced_by_the_next) {
    NotedErrors errors;
    const Flag flag = 0;
    for (const bool is_about_loss : {false, true}) {
        EXPECT_TRUE(errors.note({Error("first"), 1}));
        EXPECT_EQ(text_of(errors.end_wait(1, flag)), "first");
        EXPECT_TRUE(errors.note({Error("second"), 1, nullptr, is_about_loss}));
        EXPECT_EQ(text_of(errors.end_wait(1, flag)), "second") << "its wait would not end";
        EXPECT_EQ(text_of(errors.take_of_thread(1)), "second");
        EXPECT_TRUE(errors.empty());
    }
}

TEST(NotedErrors, are_kept_for_as_many_threads_as_may_run_functions) {
    NotedErrors errors;
    for (std::uint32_t thread = 1; thread <= 512; ++thread)
        EXPECT_TRUE(errors.note({Error("lost"), thread, nullptr, true})) << thread;
    EXPECT_EQ(text_of(errors.take_of_thread(512)), "lost");
}

TEST(NotedErrors, are_not_kept_without_end) {
    NotedErrors errors;
    bool was_full = false;
    for (std::uint32_t thread = 1; thread < 1000 && !was_full; ++thread)
        was_full = !errors.note({Error("of some thread"), thread});
    EXPECT_TRUE(was_full);
    // One that has ended a wait is known to its thread.
    const Flag flag = 0;
    EXPECT_EQ(text_of(errors.end_wait(5, flag)), "of some thread");
    EXPECT_TRUE(errors.note({Error("of one more"), 2000}));
    EXPECT_EQ(text_of(errors.take_of_thread(5)), "none");
    EXPECT_EQ(text_of(errors.take_of_thread(2000)), "of one more");
}

} // namespace
} // namespace kumi::engine
