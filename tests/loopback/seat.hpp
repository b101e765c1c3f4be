#pragma once

// A member of a set whose other members are the test: for unit tests of the parts of a call.

#include "loopback/victim.hpp"

#include "kumi/group/mail/mailbox.hpp"

#include <gtest/gtest.h>
#include <optional>
#include <vector>

namespace kumi::group_test {

/// Node 0 of three, with the turn.
class SeatTest : public testing::Test {
protected:
    static constexpr std::uint64_t key = 77;

    std::optional<group::Mailbox> mailbox;
    loopback::Victim victim;
    std::optional<group::Membership> seat{std::in_place, mailbox.emplace(*victim.dispatcher), group::Set{0, 1, 2}, key};
    engine::Turn turn = victim.dispatcher->take_turn();
    const group::CollectiveHeader own{
        .key = key, .serial = 3, .collective = static_cast<std::uint8_t>(group::Collective::barrier)};

    /// Messages of collectives since the last call.
    std::vector<loopback::Victim::Sent> sent() { return victim.sent(engine::Kind::first_of_layers); }
};

} // namespace kumi::group_test
