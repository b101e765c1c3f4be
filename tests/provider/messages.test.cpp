#include "world.hpp"

#include <algorithm>
#include <chrono>

namespace kumi::provider_test {
namespace {

class Messages : public testing::Test {
protected:
    void SetUp() override { world->meet(); }
    Port& port = world->main();
    const std::uint32_t me = world->node();
};

constexpr std::size_t sizes[] = {0, 1, 8, 100, 4096, 16383, 16384, 16385, 40'000, 1'000'003};

TEST_F(Messages, of_every_size_arrive_whole_with_their_tags) {
    for (const std::size_t bytes : sizes) {
        const auto content = pattern(bytes, 1);
        if (me == 0) {
            int context = 0;
            port.send(1, content.data(), bytes, 100 + bytes, &context);
            const Told told = port.next();
            EXPECT_EQ(told.entry.op_context, &context);
            EXPECT_EQ(told.entry.flags, FI_SEND | FI_TAGGED);
        } else if (me == 1) {
            std::vector<unsigned char> got(bytes + 1, 77);
            int context = 0;
            port.receive(FI_ADDR_UNSPEC, got.data(), bytes + 1, 100 + bytes, 0, &context);
            const Told told = port.next();
            EXPECT_EQ(told.error.err, 0);
            EXPECT_EQ(told.entry.op_context, &context);
            EXPECT_EQ(told.entry.len, bytes);
            EXPECT_EQ(told.entry.tag, 100 + bytes);
            EXPECT_EQ(told.entry.flags, FI_RECV | FI_TAGGED);
            EXPECT_EQ(told.source, port.at(0));
            EXPECT_TRUE(std::equal(content.begin(), content.end(), got.begin())) << bytes;
            EXPECT_EQ(got.back(), 77) << "nothing is written behind it";
        }
        world->meet();
    }
}

TEST_F(Messages, that_no_receive_waits_for_are_kept) {
    if (me == 0)
        for (std::size_t i = 0; i < std::size(sizes); ++i) port.send(1, nullptr, 0, 1);
    const std::vector<unsigned char> content = pattern(1'000'003, 3);
    if (me == 0)
        for (const std::size_t bytes : sizes) port.send(1, content.data(), bytes, 2, nullptr);
    world->meet();
    if (me == 1) {
        for (std::size_t i = 0; i < std::size(sizes); ++i) {
            port.receive(port.at(0), nullptr, 0, 1);
            EXPECT_EQ(port.next().entry.len, 0u);
        }
        for (const std::size_t bytes : sizes) { // a new shape of receives, and the messages wait already
            std::vector<unsigned char> got(bytes);
            port.receive(FI_ADDR_UNSPEC, got.data(), bytes, 0, ~std::uint64_t{0});
            const Told told = port.next();
            EXPECT_EQ(told.entry.len, bytes);
            EXPECT_EQ(told.entry.tag, 2u);
            EXPECT_TRUE(std::equal(got.begin(), got.end(), content.begin())) << bytes;
        }
    }
    if (me == 0) {
        for (std::size_t i = 0; i < 2 * std::size(sizes); ++i) {
            EXPECT_EQ(port.next().error.err, 0);
        }
    }
}

TEST_F(Messages, of_one_sender_are_matched_in_order_whatever_their_size) {
    constexpr std::uint32_t count = 600;
    const auto bytes_of = [](std::uint32_t i) { return i % 7 == 3 ? std::size_t{20'000} + i : i % 5 * 4 + 4; };
    if (me == 0) {
        std::vector<std::vector<unsigned char>> contents;
        for (std::uint32_t i = 0; i < count; ++i) {
            contents.push_back(pattern(bytes_of(i), i));
            std::memcpy(contents.back().data(), &i, sizeof i);
            port.send(1, contents.back().data(), contents.back().size(), 5);
        }
        for (std::uint32_t i = 0; i < count; ++i) EXPECT_EQ(port.next().error.err, 0);
    } else if (me == 1) {
        std::vector<std::vector<unsigned char>> got(count, std::vector<unsigned char>(25'000));
        for (std::uint32_t i = 0; i < count; ++i)
            port.receive(port.at(0), got[i].data(), got[i].size(), 5, 0, got[i].data());
        for (std::uint32_t i = 0; i < count; ++i) port.next();
        for (std::uint32_t i = 0; i < count; ++i) {
            std::uint32_t number = 0;
            std::memcpy(&number, got[i].data(), sizeof number);
            ASSERT_EQ(number, i);
            const auto content = pattern(bytes_of(i), i);
            ASSERT_TRUE(std::equal(content.begin() + 4, content.end(), got[i].begin() + 4)) << i;
        }
    }
}

TEST_F(Messages, go_to_the_oldest_receive_that_matches) {
    if (me != 0) port.inject(0, &me, sizeof me, 0x1200 + me);
    world->meet();
    if (me == 0) {
        std::uint32_t got = 0;
        port.receive(port.at(2), &got, sizeof got, 0, ~std::uint64_t{0});
        EXPECT_EQ(port.next().source, port.at(2)) << "though that of node 1 may have come first";
        EXPECT_EQ(got, 2u);
        port.receive(FI_ADDR_UNSPEC, &got, sizeof got, 0x1299, 0xff);
        EXPECT_EQ(port.next().entry.tag, 0x1201u);
        EXPECT_EQ(got, 1u);
    }
    world->meet();
    std::uint32_t first = 0, second = 0, third = 0;
    if (me == 0) {
        port.receive(port.at(1), &first, sizeof first, 7, 0, &first);
        port.receive(FI_ADDR_UNSPEC, &second, sizeof second, 7, 0, &second);
        port.receive(FI_ADDR_UNSPEC, &third, sizeof third, 0, ~std::uint64_t{0}, &third);
    }
    world->meet();
    for (std::uint32_t i = 1; me == 1 && i <= 3; ++i) port.inject(0, &i, sizeof i, 7);
    if (me == 0) {
        for (void* const expected :
             {static_cast<void*>(&first), static_cast<void*>(&second), static_cast<void*>(&third)})
            EXPECT_EQ(port.next().entry.op_context, expected);
        EXPECT_EQ(first, 1u);
        EXPECT_EQ(second, 2u);
        EXPECT_EQ(third, 3u);
    }
}

TEST_F(Messages, that_are_too_long_are_cut_and_told) {
    for (const std::size_t bytes : {std::size_t{100}, std::size_t{100'000}}) {
        const auto content = pattern(bytes, 4);
        for (const bool is_late : {false, true})
            for (const std::size_t room : {std::size_t{0}, std::size_t{60}}) {
                std::vector<unsigned char> got(room + 10, 9);
                int context = 0;
                if (me == 1 && !is_late) port.receive(port.at(0), got.data(), room, 8, 0, &context);
                world->meet();
                if (me == 0) {
                    port.send(1, content.data(), bytes, 8);
                    EXPECT_EQ(port.next().error.err, 0);
                }
                if (me == 1 && is_late) port.receive(port.at(0), got.data(), room, 8, 0, &context);
                if (me != 1) continue;
                const Told told = port.next();
                EXPECT_EQ(told.error.err, FI_ETRUNC);
                EXPECT_EQ(told.error.op_context, &context);
                EXPECT_EQ(told.error.len, room);
                EXPECT_EQ(told.error.olen, bytes - room);
                EXPECT_EQ(told.error.tag, 8u);
                EXPECT_TRUE(std::equal(got.begin(), got.begin() + static_cast<long>(room), content.begin()));
                EXPECT_EQ(got[room], 9);
            }
    }
}

TEST_F(Messages, are_looked_at_claimed_and_discarded) {
    const std::vector<unsigned char> content = pattern(50'000, 5);
    const auto look = [&](std::uint64_t tag, std::uint64_t flags, void* context, void* to = nullptr,
                          std::size_t bytes = 0) {
        const iovec place{to, bytes};
        fi_msg_tagged message{};
        message.msg_iov = &place;
        message.iov_count = 1;
        message.addr = port.at(0);
        message.tag = tag;
        message.context = context;
        const ssize_t code = fi_trecvmsg(*port, &message, flags | FI_COMPLETION);
        EXPECT_EQ(code, 0);
        return code == 0 ? port.next() : Told{};
    };
    int context = 0;
    if (me == 1) {
        const Told nothing = look(20, FI_PEEK, &context);
        EXPECT_EQ(nothing.error.err, FI_ENOMSG);
        EXPECT_EQ(nothing.error.op_context, &context);
        EXPECT_EQ(nothing.error.tag, 20u);
    }
    world->meet();
    if (me == 0)
        for (const std::size_t bytes : {std::size_t{64}, std::size_t{50'000}, std::size_t{65}, std::size_t{50'000}})
            port.send(1, content.data(), bytes, 20);
    world->meet();
    if (me == 1) {
        Told told = look(20, FI_PEEK, &context);
        while (told.error.err == FI_ENOMSG) told = look(20, FI_PEEK, &context);
        EXPECT_EQ(told.entry.len, 64u);
        EXPECT_EQ(look(20, FI_PEEK | FI_CLAIM, &context).entry.len, 64u);
        while ((told = look(20, FI_PEEK | FI_DISCARD, nullptr)).error.err == FI_ENOMSG) {
        }
        EXPECT_EQ(told.entry.len, 50'000u) << "the first is claimed, and this one is gone";
        std::vector<unsigned char> got(50'000);
        told = look(0, FI_CLAIM, &context, got.data(), got.size());
        EXPECT_EQ(told.entry.len, 64u);
        EXPECT_TRUE(std::equal(content.begin(), content.begin() + 64, got.begin()));
        port.receive(port.at(0), got.data(), got.size(), 20);
        EXPECT_EQ(port.next().entry.len, 65u);
        while ((told = look(20, FI_PEEK | FI_CLAIM, &context)).error.err == FI_ENOMSG) {
        }
        told = look(0, FI_CLAIM, &context, got.data(), got.size());
        EXPECT_EQ(told.entry.len, 50'000u);
        EXPECT_EQ(got, content);
        const iovec place{got.data(), got.size()};
        fi_msg_tagged again{};
        again.msg_iov = &place, again.iov_count = 1, again.context = &context;
        EXPECT_EQ(fi_trecvmsg(*port, &again, FI_CLAIM), -FI_EINVAL) << "nothing is claimed any more";
    }
    if (me == 0) {
        for (int i = 0; i < 4; ++i) {
            EXPECT_EQ(port.next().error.err, 0);
        }
    }
}

TEST_F(Messages, do_not_go_to_a_receive_that_was_cancelled) {
    int cancelled = 0, waits = 0, none = 0;
    if (me == 1) {
        port.receive(port.at(0), &cancelled, sizeof cancelled, 30, 0, &cancelled);
        port.receive(port.at(0), &waits, sizeof waits, 30, 0, &waits);
        EXPECT_EQ(fi_cancel(&(*port)->fid, &none), -FI_ENOENT);
        EXPECT_EQ(fi_cancel(&(*port)->fid, &cancelled), 0);
        const Told told = port.next();
        EXPECT_EQ(told.error.err, FI_ECANCELED);
        EXPECT_EQ(told.error.op_context, &cancelled);
        EXPECT_EQ(told.error.tag, 30u);
    }
    world->meet();
    const int sent = 4711;
    if (me == 0) port.inject(1, &sent, sizeof sent, 30);
    if (me == 1) {
        EXPECT_EQ(port.next().entry.op_context, &waits);
        EXPECT_EQ(waits, 4711);
        EXPECT_EQ(cancelled, 0);
    }
}

TEST_F(Messages, without_tags_share_one_large_receive) {
    constexpr std::size_t room = 100'000, bytes = 30'000, least = 20'000;
    std::vector<unsigned char> got(room);
    int context = 0;
    if (me == 1) {
        std::size_t least_left = least;
        EXPECT_EQ(fi_setopt(&(*port)->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least_left, sizeof least_left), 0);
        const iovec place{got.data(), room};
        fi_msg message{};
        message.msg_iov = &place, message.iov_count = 1, message.context = &context, message.addr = FI_ADDR_UNSPEC;
        EXPECT_EQ(fi_recvmsg(*port, &message, FI_MULTI_RECV | FI_COMPLETION), 0);
    }
    world->meet();
    if (me == 0)
        for (unsigned i = 0; i < 3; ++i) {
            const auto content = pattern(bytes, i);
            EXPECT_EQ(fi_senddata(*port, content.data(), bytes, nullptr, 1000 + i, port.at(1), nullptr), 0);
            EXPECT_EQ(port.next().error.err, 0);
        }
    if (me == 1)
        for (unsigned i = 0; i < 3; ++i) {
            const Told told = port.next();
            const std::uint64_t last = i == 2 ? FI_MULTI_RECV : 0;
            EXPECT_EQ(told.entry.flags, FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA | last);
            EXPECT_EQ(told.entry.data, 1000 + i);
            EXPECT_EQ(told.entry.op_context, &context);
            ASSERT_EQ(told.entry.buf, got.data() + i * bytes);
            const auto content = pattern(bytes, i);
            EXPECT_TRUE(std::equal(content.begin(), content.end(), got.begin() + static_cast<long>(i * bytes)));
        }
    world->meet();
    // With tags or not is another world.
    const int one = 1;
    if (me == 0) port.inject(1, &one, sizeof one, 0);
    world->meet();
    if (me == 1) {
        int untagged = 0, tagged = 0;
        EXPECT_EQ(fi_recv(*port, &untagged, sizeof untagged, nullptr, FI_ADDR_UNSPEC, &untagged), 0);
        port.receive(FI_ADDR_UNSPEC, &tagged, sizeof tagged, 0, ~std::uint64_t{0}, &tagged);
        EXPECT_EQ(port.next().entry.op_context, &tagged);
        EXPECT_EQ(fi_cancel(&(*port)->fid, &untagged), 0);
        EXPECT_EQ(port.next().error.err, FI_ECANCELED);
    }
}

TEST_F(Messages, that_still_come_in_pieces_keep_a_large_receive_from_being_over) {
    constexpr std::size_t large = 8'000'000, small = 15'000, least = 20'000;
    const auto content = pattern(large, 9);
    std::vector<unsigned char> got(large + small + least - 1);
    int context = 0;
    if (me == 1) {
        std::size_t least_left = least;
        EXPECT_EQ(fi_setopt(&(*port)->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least_left, sizeof least_left), 0);
        const iovec place{got.data(), got.size()};
        fi_msg message{};
        message.msg_iov = &place, message.iov_count = 1, message.context = &context, message.addr = FI_ADDR_UNSPEC;
        EXPECT_EQ(fi_recvmsg(*port, &message, FI_MULTI_RECV | FI_COMPLETION), 0);
    }
    world->meet();
    if (me == 0) {
        EXPECT_EQ(fi_send(*port, content.data(), large, nullptr, port.at(1), nullptr), 0);
        EXPECT_EQ(fi_send(*port, content.data(), small, nullptr, port.at(1), nullptr), 0);
        for (int i = 0; i < 2; ++i) EXPECT_EQ(port.next().error.err, 0);
    }
    if (me == 1) {
        const Told first = port.next();
        EXPECT_EQ(first.entry.flags & FI_MULTI_RECV, 0u) << first.entry.len;
        const Told last = port.next();
        EXPECT_EQ(last.entry.flags & FI_MULTI_RECV, FI_MULTI_RECV);
        EXPECT_EQ(first.entry.len + last.entry.len, large + small);
        EXPECT_TRUE(std::equal(content.begin(), content.end(), got.begin())) << "all of it is there by now";
        EXPECT_EQ(fi_cancel(&(*port)->fid, &context), -FI_ENOENT);
    }
    world->meet();
    // Nor is it over when it is cancelled.
    if (me == 1) {
        EXPECT_EQ(fi_recv(*port, got.data(), 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
        const iovec place{got.data(), got.size()};
        fi_msg message{};
        message.msg_iov = &place, message.iov_count = 1, message.context = &context, message.addr = FI_ADDR_UNSPEC;
        EXPECT_EQ(fi_recvmsg(*port, &message, FI_MULTI_RECV | FI_COMPLETION), 0);
    }
    world->meet();
    if (me == 0) {
        EXPECT_EQ(fi_send(*port, content.data(), 1, nullptr, port.at(1), nullptr), 0);
        EXPECT_EQ(fi_send(*port, content.data(), large, nullptr, port.at(1), nullptr), 0);
        for (int i = 0; i < 2; ++i) EXPECT_EQ(port.next().error.err, 0);
    }
    if (me == 1) {
        EXPECT_EQ(port.next().entry.len, 1u) << "then the offer is there, too, or soon";
        for (int i = 0; i < 1000; ++i) fi_cq_read(port.queue(), nullptr, 0);
        EXPECT_EQ(fi_cancel(&(*port)->fid, &context), 0);
        Told told = port.next();
        if (told.error.err == 0) {
            EXPECT_EQ(told.entry.len, large);
            EXPECT_TRUE(std::equal(content.begin(), content.end(), got.begin()));
            told = port.next();
        } else { // it was cancelled before the offer came
            EXPECT_EQ(fi_recv(*port, got.data(), large, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
            EXPECT_EQ(port.next().entry.len, large);
        }
        EXPECT_EQ(told.error.err, FI_ECANCELED);
        EXPECT_EQ(told.error.op_context, &context);
    }
}

TEST_F(Messages, of_any_number_may_be_sent_before_one_is_received) {
    constexpr std::uint32_t count = 5000;
    const auto content = pattern(17'000, 10);
    std::vector<unsigned char> got(content.size());
    const std::uint32_t other = 1 - me;
    for (std::uint32_t i = 0; me != 2 && i < count; ++i) port.send(other, content.data(), content.size(), i);
    for (std::uint32_t i = 0; me != 2 && i < count; ++i) port.receive(port.at(other), got.data(), got.size(), i);
    for (std::uint32_t i = 0; me != 2 && i < 2 * count; ++i) ASSERT_EQ(port.next().error.err, 0);
    if (me != 2) {
        EXPECT_EQ(got, content);
    }
}

TEST_F(Messages, are_told_as_delivered_when_they_are) {
    for (const std::size_t bytes : {std::size_t{10}, std::size_t{100'000}}) {
        const auto content = pattern(bytes, 6);
        if (me == 0) {
            const iovec place{const_cast<unsigned char*>(content.data()), bytes};
            fi_msg_tagged message{};
            message.msg_iov = &place, message.iov_count = 1, message.addr = port.at(1), message.tag = 40;
            EXPECT_EQ(fi_tsendmsg(*port, &message, FI_COMPLETION | FI_DELIVERY_COMPLETE), 0);
            EXPECT_TRUE(port.is_quiet()) << "no receive waits";
        }
        world->meet();
        std::vector<unsigned char> got(bytes);
        if (me == 1) port.receive(port.at(0), got.data(), bytes, 40);
        if (me != 2) {
            EXPECT_EQ(port.next().error.err, 0);
        }
        if (me == 1) {
            EXPECT_EQ(got, content);
        }
        world->meet();
    }
}

TEST_F(Messages, are_gathered_and_scattered) {
    for (const std::size_t part : {std::size_t{11}, std::size_t{30'001}}) {
        auto content = pattern(4 * part, 7);
        if (me == 0) {
            const iovec places[] = {
                {content.data(), part}, {content.data() + part, 2 * part}, {content.data() + 3 * part, part}};
            EXPECT_EQ(fi_tsendv(*port, places, nullptr, 3, port.at(1), 50, nullptr), 0);
            EXPECT_EQ(port.next().error.err, 0);
        }
        if (me == 1) {
            std::vector<unsigned char> got(4 * part);
            const iovec places[] = {{got.data(), 2 * part}, {nullptr, 0}, {got.data() + 2 * part, 2 * part}};
            EXPECT_EQ(fi_trecvv(*port, places, nullptr, 3, port.at(0), 50, 0, nullptr), 0);
            EXPECT_EQ(port.next().entry.len, 4 * part);
            EXPECT_EQ(got, content);
        }
    }
    const iovec many[5] = {};
    EXPECT_EQ(fi_tsendv(*port, many, nullptr, 5, port.at(1), 50, nullptr), -FI_EINVAL);
    EXPECT_EQ(fi_tsend(*port, nullptr, 8, nullptr, port.at(1), 50, nullptr), -FI_EINVAL);
    EXPECT_EQ(fi_trecv(*port, nullptr, 8, nullptr, port.at(1), 50, 0, nullptr), -FI_EINVAL);
    EXPECT_EQ(fi_tsend(*port, many, 8, nullptr, 12345, 50, nullptr), -FI_EINVAL);
    char large[5000] = {};
    EXPECT_EQ(fi_tinject(*port, large, sizeof large, port.at(1), 50), -FI_EINVAL);
}

TEST_F(Messages, in_a_flood_are_all_kept) {
    constexpr std::uint32_t count = 4000;
    if (me != 0)
        for (std::uint32_t i = 0; i < count; ++i) port.inject(0, &i, sizeof i, me);
    world->meet();
    if (me == 0)
        for (const std::uint32_t from : {2u, 1u})
            for (std::uint32_t i = 0; i < count; ++i) {
                std::uint32_t got = ~0u;
                port.receive(port.at(from), &got, sizeof got, from);
                ASSERT_EQ(port.next().error.err, 0);
                ASSERT_EQ(got, i) << from;
            }
}

TEST_F(Messages, reach_their_own_sender) {
    for (const std::size_t bytes : {std::size_t{24}, std::size_t{70'000}}) {
        const auto content = pattern(bytes, me);
        std::vector<unsigned char> got(bytes);
        port.send(me, content.data(), bytes, 60);
        port.receive(port.at(me), got.data(), bytes, 60);
        EXPECT_EQ(port.next().error.err, 0);
        EXPECT_EQ(port.next().error.err, 0);
        EXPECT_EQ(got, content);
    }
}

TEST_F(Messages, are_told_only_where_that_was_asked_for) {
    Port selective(world->domain.get(), world->info, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION);
    world->meet();
    int got = 0, value = 5;
    const iovec from{&value, sizeof value}, to{&got, sizeof got};
    fi_msg_tagged message{};
    message.msg_iov = &from, message.iov_count = 1, message.addr = selective.at(1), message.tag = 70;
    if (me == 0) {
        EXPECT_EQ(fi_tsendmsg(*selective, &message, 0), 0);
        EXPECT_TRUE(selective.is_quiet());
        EXPECT_EQ(fi_tsendmsg(*selective, &message, FI_COMPLETION), 0);
        EXPECT_EQ(selective.next().error.err, 0);
    }
    if (me == 1) {
        message.msg_iov = &to, message.addr = selective.at(0);
        EXPECT_EQ(fi_trecvmsg(*selective, &message, 0), 0);
        EXPECT_EQ(fi_trecvmsg(*selective, &message, FI_COMPLETION), 0);
        EXPECT_EQ(selective.next().error.err, 0);
        EXPECT_TRUE(selective.is_quiet());
        EXPECT_EQ(got, 5);
    }
    world->meet();
}

TEST_F(Messages, end_the_sleep_of_a_thread_that_waits) {
    using namespace std::chrono_literals;
    fi_cq_tagged_entry entry;
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(fi_cq_sread(port.queue(), &entry, 1, nullptr, 50), -FI_EAGAIN);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 45ms);
    world->meet();
    int got = 0;
    const int value = 6;
    if (me == 1) {
        port.receive(port.at(0), &got, sizeof got, 80);
        EXPECT_EQ(fi_cq_sread(port.queue(), &entry, 1, nullptr, 60'000), 1);
        EXPECT_EQ(got, 6);
        std::thread other([&] {
            std::this_thread::sleep_for(30ms);
            EXPECT_EQ(fi_cq_signal(port.queue()), 0);
        });
        EXPECT_EQ(fi_cq_sread(port.queue(), &entry, 1, nullptr, 60'000), -FI_EAGAIN);
        other.join();
    }
    if (me == 0) {
        std::this_thread::sleep_for(30ms);
        port.inject(1, &value, sizeof value, 80);
    }
    world->meet();
}

/// Each thread has an endpoint of its own, and messages of all sizes go both ways at once.
TEST_F(Messages, of_many_threads_do_not_mix) {
    constexpr unsigned threads = 4;
    std::vector<std::unique_ptr<Port>> ports;
    for (unsigned i = 0; i < threads; ++i) ports.push_back(std::make_unique<Port>(world->domain.get(), world->info));
    for (auto& one : ports) one->at(2); // addresses are inserted by this thread
    world->meet();
    std::vector<std::thread> running;
    for (unsigned i = 0; me != 2 && i < threads; ++i)
        running.emplace_back([&, i] {
            Port& mine = *ports[i];
            const std::uint32_t other = 1 - me;
            for (unsigned round = 0; round < 60; ++round) {
                const std::size_t bytes = sizes[(round + i) % std::size(sizes)] % 50'000;
                const auto content = pattern(bytes, 100 * me + i + round),
                           expected = pattern(bytes, 100 * other + i + round);
                std::vector<unsigned char> got(bytes);
                mine.receive(mine.at(other), got.data(), bytes, round);
                mine.send(other, content.data(), bytes, round);
                EXPECT_EQ(mine.next().error.err, 0);
                EXPECT_EQ(mine.next().error.err, 0);
                EXPECT_EQ(got, expected);
            }
        });
    for (std::thread& one : running) one.join();
    world->meet();
}

TEST_F(Messages, go_to_addresses_of_this_job_only) {
    unsigned char name[64];
    std::size_t bytes = 3;
    EXPECT_EQ(fi_getname(&(*port)->fid, name, &bytes), -FI_ETOOSMALL);
    EXPECT_EQ(bytes, 16u);
    EXPECT_EQ(fi_getname(&(*port)->fid, name, &bytes), 0);
    unsigned char found[64];
    bytes = sizeof found;
    EXPECT_EQ(fi_av_lookup(port.addresses(), port.at(me), found, &bytes), 0);
    EXPECT_EQ(bytes, 16u);
    EXPECT_EQ(std::memcmp(name, found, 16), 0);
    for (const std::size_t wrong : {0u, 9u, 13u}) { // of the job, the node and the endpoint
        unsigned char other[16];
        std::memcpy(other, name, 16);
        other[wrong] ^= 0x40;
        fi_addr_t address = 0;
        EXPECT_EQ(fi_av_insert(port.addresses(), other, 1, &address, 0, nullptr), 0) << wrong;
        EXPECT_EQ(address, FI_ADDR_NOTAVAIL);
    }
}

TEST_F(Messages, for_an_endpoint_that_closes_are_refused_and_leave_its_memory_alone) {
    auto closing = std::make_unique<Port>(world->domain.get(), world->info);
    const auto content = pattern(3'000'000, 8);
    world->meet();
    if (me == 0) {
        closing->send(1, content.data(), content.size(), 1); // is matched, and may be under way
        closing->send(1, content.data(), content.size(), 2); // is never matched
    }
    if (me == 1) {
        auto got = std::make_unique<std::vector<unsigned char>>(content.size());
        closing->receive(closing->at(0), got->data(), got->size(), 1);
        fi_cq_tagged_entry entry;
        for (int i = 0; i < 50; ++i) (void)fi_cq_read(closing->queue(), &entry, 0);
        closing.reset();
        got.reset(); // a sanitizer sees what is written there now
    }
    if (me == 0) {
        const Told told = closing->next(), other = closing->next();
        EXPECT_TRUE(told.error.err == FI_ECONNREFUSED || other.error.err == FI_ECONNREFUSED);
    }
    world->meet();
    // Another endpoint gets the number, and nothing of the one before.
    {
        Port next(world->domain.get(), world->info);
        EXPECT_TRUE(next.is_quiet());
    }
    world->meet();
    fid_av* used = port.addresses();
    EXPECT_EQ(fi_close(&used->fid), -FI_EBUSY);
    EXPECT_EQ(fi_close(&port.queue()->fid), -FI_EBUSY);
}

/// The sender closes while its offers wait. Later sends have the same numbers, and none is taken for another.
TEST_F(Messages, of_an_endpoint_that_is_closed_fail_and_are_not_taken_for_others) {
    auto closing = std::make_unique<Port>(world->domain.get(), world->info);
    const auto lost = pattern(50'000, 11), found = pattern(50'000, 12);
    world->meet();
    if (me == 0) {
        closing->send(1, lost.data(), lost.size(), 1);
        closing.reset(); // after some seconds, in which nobody accepts
        port.send(1, found.data(), found.size(), 2);
    }
    world->meet();
    if (me == 1) {
        std::vector<unsigned char> first(lost.size()), second(found.size());
        closing->receive(closing->at(0), first.data(), first.size(), 1);
        port.receive(port.at(0), second.data(), second.size(), 2);
        EXPECT_EQ(closing->next().error.err, FI_ECONNABORTED);
        EXPECT_EQ(port.next().error.err, 0);
        EXPECT_EQ(second, found);
    }
    if (me == 0) {
        EXPECT_EQ(port.next().error.err, 0);
    }
    world->meet();
}

// ---- node 2 has left

TEST(Losses, are_told_to_what_waits_for_the_lost_node) {
    Port& port = world->main();
    world->meet(2);
    int named = 0, any = 0;
    port.receive(port.at(2), &named, sizeof named, 90, 0, &named);
    port.receive(FI_ADDR_UNSPEC, &any, sizeof any, 90, 0, &any);
    const Told told = port.next();
    EXPECT_EQ(told.error.err, FI_ECONNABORTED);
    EXPECT_EQ(told.error.op_context, &named);
    EXPECT_EQ(fi_tsend(*port, &named, sizeof named, nullptr, port.at(2), 90, nullptr), -FI_ECONNABORTED);
    world->meet(2);
    const int value = 3;
    port.inject(1 - world->node(), &value, sizeof value, 90);
    EXPECT_EQ(port.next().entry.op_context, &any) << "others may serve it";
    EXPECT_EQ(any, 3);
    world->meet(2);
}

} // namespace
} // namespace kumi::provider_test
