#include "kumi/group/mail/inboxes.hpp"

#include <functional>
#include <gtest/gtest.h>
#include <tuple>

namespace kumi::group::inboxes_test {
namespace {

using Forgot = std::vector<std::tuple<std::uint64_t, Node, std::uint32_t>>; // key, source, serial

class InboxesTest : public testing::Test {
    std::function<void(Inbox&, Node, const CollectiveHeader&)> note_it_ = [this](Inbox& box, Node source,
                                                                                 const CollectiveHeader& head) {
        forgotten.emplace_back(box.key, source, head.serial);
    };

protected:
    Inboxes inboxes{3};
    Forgot forgotten;
    Inboxes::Forgotten note{note_it_};

    void keep(Inbox& box, Node source, std::uint32_t serial, Bytes data = {}) {
        const CollectiveHeader head{.key = box.key, .serial = serial, .bytes = data.size(), .kind = MessageKind::first};
        inboxes.keep(box, source, head, data, note);
    }
};

TEST_F(InboxesTest, one_is_found_until_nobody_needs_it) {
    EXPECT_EQ(inboxes.find(5), nullptr);
    Inbox& box = inboxes.find_or_add(5);
    Inbox& other = inboxes.find_or_add(6);
    EXPECT_EQ(&inboxes.find_or_add(5), &box);
    EXPECT_EQ(inboxes.find(5), &box);
    EXPECT_EQ(inboxes.find(6), &other);
    EXPECT_EQ(inboxes.size(), 2u);
    other.seats = 1;
    inboxes.remove_unused(other);
    EXPECT_EQ(inboxes.find(6), &other) << "it is in use";
    keep(box, 1, 1);
    inboxes.remove_unused(box);
    EXPECT_EQ(inboxes.find(5), &box) << "it has a message";
    (void)inboxes.take(box, box.early.begin());
    inboxes.add_skip(box, 1, 4, note);
    inboxes.remove_unused(box);
    EXPECT_EQ(inboxes.find(5), &box) << "it knows what is not wanted";
    box.skips.clear();
    inboxes.remove_unused(box);
    EXPECT_EQ(inboxes.find(5), nullptr);
    EXPECT_EQ(inboxes.size(), 1u);
}

TEST_F(InboxesTest, a_message_is_kept_until_it_is_taken) {
    Inbox& box = inboxes.find_or_add(5);
    const std::vector<std::byte> data(3, std::byte{9});
    keep(box, 1, 7, data);
    keep(inboxes.find_or_add(6), 2, 8);
    EXPECT_EQ(inboxes.kept(), 2u);
    const Inbox::Early early = inboxes.take(box, box.early.begin());
    EXPECT_EQ(early.source, 1u);
    EXPECT_EQ(early.head.serial, 7u);
    EXPECT_EQ(early.data, data);
    EXPECT_EQ(inboxes.kept(), 1u);
    EXPECT_TRUE(forgotten.empty());
}

TEST_F(InboxesTest, of_one_message_too_many_of_a_node_one_is_forgotten_where_no_program_uses_the_set) {
    Inbox& used = inboxes.find_or_add(1);
    used.seats = 1;
    Inbox& unused = inboxes.find_or_add(2);
    keep(used, 1, 0);
    keep(unused, 1, 1);
    for (std::uint32_t serial = 2; serial < Inboxes::kept_max; ++serial) keep(used, 1, serial);
    EXPECT_TRUE(forgotten.empty());
    keep(used, 2, 5); // another node
    EXPECT_TRUE(forgotten.empty());
    keep(used, 1, 90'000);
    EXPECT_EQ(forgotten, (Forgot{{2, 1, 1}}));
    EXPECT_EQ(inboxes.find(2), nullptr) << "nothing is left in it";
    keep(used, 1, 90'001);
    EXPECT_EQ(forgotten.back(), Forgot::value_type(1, 1, 0)) << "the oldest one";
    EXPECT_EQ(inboxes.kept(), Inboxes::kept_max + 1);
    (void)inboxes.take(used, used.early.begin());
    keep(used, 1, 90'002);
    EXPECT_EQ(forgotten.size(), 2u) << "what was taken makes room";
}

TEST_F(InboxesTest, messages_of_calls_that_are_over_are_forgotten_and_make_room) {
    Inbox& box = inboxes.find_or_add(5);
    for (const std::uint32_t serial : {0xffffffffu, 0u, 1u}) keep(box, 1, serial);
    keep(box, 2, 0);
    inboxes.forget_up_to(box, 1, 0, note);
    EXPECT_EQ(forgotten, (Forgot{{5, 1, 0xffffffffu}, {5, 1, 0}})) << "serials wrap";
    ASSERT_EQ(box.early.size(), 2u);
    EXPECT_EQ(box.early[0].head.serial, 1u);
    forgotten.clear();
    for (std::uint32_t serial = 2; serial <= Inboxes::kept_max; ++serial) keep(box, 1, serial);
    EXPECT_TRUE(forgotten.empty());
    keep(box, 1, 1);
    EXPECT_EQ(forgotten.size(), 1u);
}

TEST_F(InboxesTest, a_skip_is_for_one_call_of_one_node_and_for_what_came_before_it) {
    Inbox& box = inboxes.find_or_add(5);
    for (const std::uint32_t serial : {3u, 4u, 5u}) keep(box, 1, serial);
    inboxes.add_skip(box, 1, 4, note);
    EXPECT_EQ(forgotten, (Forgot{{5, 1, 3}, {5, 1, 4}}));
    EXPECT_TRUE(box.skips.empty()) << "a later call has been heard of";
    inboxes.add_skip(box, 1, {}, note);
    EXPECT_EQ(forgotten.size(), 3u) << "the call of the next message, which is here";
    EXPECT_FALSE(Inboxes::is_skipped(box, 2, 1));
    EXPECT_TRUE(Inboxes::is_skipped(box, 1, 5));
    EXPECT_FALSE(Inboxes::is_skipped(box, 1, 6));
    EXPECT_FALSE(Inboxes::is_skipped(box, 1, 5)) << "the note has gone with the next call";
}

TEST_F(InboxesTest, of_too_many_skips_the_oldest_goes) {
    Inbox& oldest = inboxes.find_or_add(1);
    inboxes.add_skip(oldest, 1, 1, note);
    Inbox& box = inboxes.find_or_add(2);
    for (std::size_t i = 1; i < Inboxes::skips_max; ++i) {
        inboxes.add_skip(box, 2, 1, note);
        box.skips.clear();
    }
    EXPECT_EQ(inboxes.find(1), &oldest);
    inboxes.add_skip(box, 2, 1, note);
    EXPECT_EQ(inboxes.find(1), nullptr);
}

} // namespace
} // namespace kumi::group::inboxes_test
