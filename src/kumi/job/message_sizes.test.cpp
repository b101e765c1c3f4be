// Sizes that one layer chooses to suit another, which it does not know.

#include "kumi/device/composite/letters/envelope.hpp"
#include "kumi/engine/wire.hpp"
#include "kumi/reliable/sender.hpp"

#include <gtest/gtest.h>

namespace kumi {
namespace {

/// A piece of a large put, as a device gets it.
constexpr std::size_t piece_bytes = sizeof(device::composite::Envelope) + sizeof(engine::Header) +
                                    sizeof(engine::Put) + engine::chunk_bytes;

TEST(MessageSizes, a_piece_of_a_large_put_is_one_packet_where_packets_may_be_large) {
    EXPECT_LE(reliable::piece_head_bytes + piece_bytes, reliable::packet_bytes_max);
}

TEST(MessageSizes, a_piece_of_a_large_put_is_one_burst_where_packets_are_small) {
    // MTUs of 1,500 with IPv4, with IPv6, with encryption; of 9,000.
    for (const std::size_t packet_bytes : {1472u, 1448u, 1440u, 8968u}) {
        const std::size_t content = packet_bytes - reliable::piece_head_bytes;
        const std::size_t packets = (piece_bytes + content - 1) / content;
        EXPECT_LE(packets, reliable::Sender::series_max) << packet_bytes;
        EXPECT_LE(packets * packet_bytes, reliable::Sender::series_bytes_max) << packet_bytes;
    }
}

} // namespace
} // namespace kumi
