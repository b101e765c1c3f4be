#include "kumi/group/multicast/deliveries.hpp"

#include <gtest/gtest.h>

namespace kumi::group::deliveries_test {
namespace {

using Next = Deliveries::Next;

constexpr Node self = 2, master = 5;
constexpr Purpose to_handle{Use::handler, 0, 0}, to_take{Use::take, 0, 7}, to_gather{Use::gather, 0, 0},
    to_reduce{Use::reduce, 0, 0}, to_store{Use::store, 0, 0};

class DeliveriesTest : public testing::Test {
protected:
    Deliveries deliveries{self};
    std::byte byte{9};

    Deliveries::Admission admit(std::uint64_t sequence, const Purpose& purpose, const std::vector<Before>& before = {},
                                bool may_run_now = true) {
        const Name name{master, sequence};
        const Set members{1, 2, 3};
        Content content{{&byte, 1}, nullptr};
        return deliveries.admit({.name = name,
                                 .purpose = purpose,
                                 .relay = {static_cast<std::uint32_t>(sequence), 0},
                                 .members = members,
                                 .before = before,
                                 .is_lasting = false,
                                 .may_run_now = may_run_now},
                                content);
    }
    std::vector<Before> after(std::uint64_t sequence, Set members = {self}) { return {{sequence, std::move(members)}}; }
    std::uint64_t next_ready() {
        const Delivery* const next = deliveries.next_ready();
        return next == nullptr ? 0 : next->name.sequence;
    }
    std::uint64_t next_arrival() {
        const Delivery* const next = deliveries.next_arrival();
        return next == nullptr ? 0 : next->name.sequence;
    }
};

TEST_F(DeliveriesTest, what_waits_for_nothing_is_run_where_it_lies) {
    EXPECT_EQ(admit(1, to_handle).next, Next::run_now);
    deliveries.release_after({master, 1});
    EXPECT_EQ(deliveries.size(), 0u);
    const auto again = admit(1, to_handle);
    EXPECT_EQ(again.next, Next::is_over);
    EXPECT_FALSE(again.is_missing);
    EXPECT_EQ(again.value, nullptr);
}

TEST_F(DeliveriesTest, only_a_new_one_that_nothing_comes_before_is_run_at_once) {
    EXPECT_FALSE(deliveries.try_run_now({master, 1}, to_take));
    EXPECT_FALSE(deliveries.try_run_now({master, 1}, to_gather));
    EXPECT_FALSE(deliveries.was_seen({master, 1}));
    EXPECT_TRUE(deliveries.try_run_now({master, 1}, to_handle));
    EXPECT_FALSE(deliveries.try_run_now({master, 1}, to_handle)) << "it was seen";
    EXPECT_EQ(admit(1, to_handle).next, Next::is_over);
    EXPECT_TRUE(deliveries.try_run_now({master, 3}, to_store));
    EXPECT_EQ(admit(2, to_handle).next, Next::is_over) << "too late: the third was before it";

    EXPECT_EQ(admit(5, to_handle, after(4)).next, Next::waits);
    EXPECT_FALSE(deliveries.try_run_now({master, 6}, to_handle)) << "the fifth waits here";
    EXPECT_FALSE(deliveries.was_seen({master, 6}));
    EXPECT_TRUE(deliveries.try_run_now({master, 4}, to_handle));
    EXPECT_EQ(next_ready(), 0u) << "the fourth has not ended";
    EXPECT_FALSE(deliveries.try_run_now({master, 6}, to_handle));
    deliveries.release_after({master, 4});
    EXPECT_FALSE(deliveries.try_run_now({master + 1, 1}, to_handle)) << "the fifth is ready, and first";
    EXPECT_EQ(next_ready(), 5u);
    EXPECT_FALSE(deliveries.try_run_now({master, 6}, to_handle)) << "the fifth has not ended";
    EXPECT_TRUE(deliveries.end({master, 5}));
    EXPECT_TRUE(deliveries.try_run_now({master, 6}, to_handle));
}

TEST_F(DeliveriesTest, a_delivery_in_the_memory_of_another_has_nothing_of_it) {
    EXPECT_EQ(admit(2, to_take, after(1)).next, Next::waits);
    deliveries.give_up({master, 1}, 0);
    EXPECT_EQ(next_arrival(), 2u);
    const Delivery* const ended = deliveries.end({master, 2});
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->content.memory, nullptr) << "it is not kept until the next one";
    deliveries.give_up({master, 4}, 3);
    EXPECT_EQ(admit(5, to_handle, after(4)).next, Next::waits);
    EXPECT_EQ(deliveries.size(), 2u);
    EXPECT_EQ(next_ready(), 0u) << "the fourth is a place behind the third";
    EXPECT_EQ(admit(3, to_handle).next, Next::run_now);
    deliveries.release_after({master, 3});
    const Delivery* const given_up = deliveries.next_ready();
    ASSERT_TRUE(given_up);
    EXPECT_EQ(given_up->name.sequence, 4u);
    EXPECT_TRUE(given_up->is_given_up);
    EXPECT_TRUE(given_up->relays.empty());
    EXPECT_TRUE(given_up->members.empty());
}

TEST_F(DeliveriesTest, at_the_wrong_time_it_is_kept_and_ready) {
    EXPECT_EQ(admit(1, to_handle, {}, false).next, Next::waits);
    EXPECT_EQ(admit(2, to_handle).next, Next::waits) << "not before the first";
    byte = std::byte{0};
    const Delivery* const first = deliveries.next_ready();
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(first->name, (Name{master, 1}));
    EXPECT_EQ(first->content.bytes[0], std::byte{9}) << "it was copied, for it does not last";
    EXPECT_EQ(next_ready(), 0u) << "the second waits for the first";
    const auto ended = deliveries.end({master, 1});
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->relays.at(0).index, 1u);
    EXPECT_EQ(next_ready(), 2u);
    EXPECT_FALSE(deliveries.end({master, 1}));
}

TEST_F(DeliveriesTest, what_must_come_before_is_waited_for_unless_it_concerns_others) {
    EXPECT_EQ(admit(3, to_handle, after(2)).next, Next::waits);
    EXPECT_EQ(next_ready(), 0u);
    EXPECT_EQ(admit(2, to_handle, after(1, {1, 3})).next, Next::run_now) << "the first is not for this node";
    deliveries.release_after({master, 2});
    EXPECT_EQ(next_ready(), 3u);
}

TEST_F(DeliveriesTest, what_is_to_be_taken_is_as_good_as_taken_for_the_next) {
    EXPECT_EQ(admit(1, to_take).next, Next::waits);
    EXPECT_EQ(admit(2, to_handle, after(1)).next, Next::run_now);
    deliveries.release_after({master, 2});
    const Delivery* const arrival = deliveries.next_arrival();
    ASSERT_NE(arrival, nullptr);
    EXPECT_EQ(arrival->members, (Set{1, 2, 3}));
    deliveries.put_back({master, 1});
    EXPECT_EQ(next_arrival(), 1u);
    EXPECT_TRUE(deliveries.end({master, 1}));
    EXPECT_EQ(next_arrival(), 0u);
}

TEST_F(DeliveriesTest, a_function_in_line_to_run_does_not_hold_up_what_comes_after_it) {
    for (const Purpose& purpose : {to_gather, to_reduce}) {
        const std::uint64_t first = purpose.use == Use::gather ? 1 : 4;
        EXPECT_EQ(admit(first, purpose).next, Next::waits);
        EXPECT_EQ(admit(first + 1, to_handle, after(first)).next, Next::waits) << "not before the function is in line";
        EXPECT_EQ(next_ready(), first);
        EXPECT_EQ(next_ready(), first + 1);
        EXPECT_TRUE(deliveries.end({master, first + 1}));
        EXPECT_EQ(admit(first + 2, to_handle, after(first)).next, Next::run_now);
        deliveries.release_after({master, first + 2});
        EXPECT_EQ(admit(first, purpose).next, Next::waits) << "its answer is awaited";
        const auto ended = deliveries.end({master, first});
        ASSERT_TRUE(ended);
        EXPECT_EQ(ended->relays.size(), 2u);
    }
    EXPECT_EQ(deliveries.size(), 0u);
}

TEST_F(DeliveriesTest, a_function_that_must_wait_holds_up_what_comes_after_it_and_all_become_ready_in_order) {
    EXPECT_EQ(admit(2, to_gather, after(1)).next, Next::waits);
    EXPECT_EQ(admit(3, to_reduce, after(2)).next, Next::waits);
    EXPECT_EQ(admit(4, to_handle, after(3)).next, Next::waits);
    EXPECT_EQ(admit(5, to_store, after(4)).next, Next::waits);
    EXPECT_EQ(next_ready(), 0u);
    EXPECT_EQ(admit(1, to_handle).next, Next::run_now);
    deliveries.release_after({master, 1});
    EXPECT_EQ(next_ready(), 2u);
    EXPECT_EQ(next_ready(), 3u);
    EXPECT_EQ(next_ready(), 4u);
    EXPECT_EQ(next_ready(), 0u) << "the handler has not ended";
    EXPECT_TRUE(deliveries.end({master, 4}));
    EXPECT_EQ(next_ready(), 5u);
}

TEST_F(DeliveriesTest, one_that_comes_again_has_one_delivery_and_all_its_relays) {
    EXPECT_EQ(admit(1, to_gather).next, Next::waits);
    EXPECT_EQ(admit(1, to_gather).next, Next::waits);
    EXPECT_EQ(next_ready(), 1u);
    const auto ended = deliveries.end({master, 1});
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->relays.size(), 2u);
    EXPECT_TRUE(admit(1, to_gather).is_missing) << "nobody knows what was answered";
    deliveries.keep_value({master, 1}, {std::byte{4}});
    const auto again = admit(1, to_gather);
    EXPECT_EQ(again.next, Next::is_over);
    ASSERT_NE(again.value, nullptr);
    EXPECT_EQ(again.value->at(0), std::byte{4});
}

TEST_F(DeliveriesTest, what_is_given_up_is_not_waited_for_but_what_was_before_it_is) {
    EXPECT_EQ(admit(3, to_handle, after(2)).next, Next::waits);
    deliveries.give_up({master, 2}, 1);
    EXPECT_EQ(next_ready(), 0u) << "the first has not come";
    EXPECT_EQ(admit(1, to_handle).next, Next::run_now);
    deliveries.release_after({master, 1});
    const Delivery* const place = deliveries.next_ready();
    ASSERT_NE(place, nullptr);
    EXPECT_TRUE(place->is_given_up);
    EXPECT_EQ(place->name.sequence, 2u);
    EXPECT_TRUE(deliveries.end({master, 2}));
    EXPECT_EQ(next_ready(), 3u);
    EXPECT_TRUE(deliveries.was_missed({master, 2}));
    EXPECT_FALSE(deliveries.was_missed({master, 1}));
    EXPECT_TRUE(admit(2, to_handle).is_missing);
}

TEST_F(DeliveriesTest, what_is_given_up_after_nothing_releases_the_next_at_once) {
    EXPECT_EQ(admit(2, to_handle, after(1)).next, Next::waits);
    deliveries.give_up({master, 1}, 0);
    EXPECT_EQ(next_ready(), 2u);
    EXPECT_TRUE(deliveries.was_seen({master, 1}));
    EXPECT_FALSE(deliveries.was_seen({master, 3}));
    EXPECT_FALSE(deliveries.was_seen({master + 1, 1}));
}

TEST_F(DeliveriesTest, a_master_has_so_many_here_and_no_more) {
    for (std::uint64_t sequence = 1; sequence <= 2 * Groups::under_way_max; ++sequence) {
        EXPECT_TRUE(deliveries.has_room(master)) << sequence;
        EXPECT_EQ(admit(sequence, to_take).next, Next::waits);
    }
    EXPECT_FALSE(deliveries.has_room(master));
    EXPECT_TRUE(deliveries.has_room(master + 1));
    EXPECT_EQ(deliveries.size(), 2 * Groups::under_way_max);
}

TEST_F(DeliveriesTest, a_master_that_is_gone_is_quiet_after_three_looks_without_anything_of_it) {
    const auto is_gone = [](Node) { return true; };
    const auto is_there = [](Node) { return false; };
    EXPECT_EQ(admit(3, to_handle, after(2)).next, Next::waits);
    EXPECT_TRUE(deliveries.look_for_quiet(is_gone).empty());
    EXPECT_TRUE(deliveries.look_for_quiet(is_gone).empty());
    deliveries.note_heard(master);
    EXPECT_TRUE(deliveries.look_for_quiet(is_gone).empty());
    EXPECT_TRUE(deliveries.look_for_quiet(is_there).empty());
    EXPECT_TRUE(deliveries.look_for_quiet(is_gone).empty());
    EXPECT_EQ(deliveries.look_for_quiet(is_gone), std::vector<Node>{master});
    std::set<std::uint64_t> absent;
    deliveries.add_absent(master, absent);
    EXPECT_EQ(absent, (std::set<std::uint64_t>{2}));
    Set awaited;
    deliveries.add_awaited(awaited);
    EXPECT_EQ(awaited, Set{master});
    EXPECT_EQ(deliveries.last_before({master, 3}), 0u);
    EXPECT_EQ(deliveries.last_before({master, 4}), 3u);
}

} // namespace
} // namespace kumi::group::deliveries_test
