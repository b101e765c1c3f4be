#pragma once

// What a node and the `kumi run` that started it say to each other, over a Unix stream socket that the node inherits.
// Frames are a header and a body, and may carry a descriptor. The node asks, `kumi run` answers.
//
//   node                                kumi run
//   join {version, pid}           ->
//                                 <-    welcome {...} + host names, or refused {text}, which it tells the user
//   share (slot 0: + descriptor)  ->
//                                 <-    shared (others: + descriptor)         when slot 0 of the host has given it
//   exchange {bytes}              ->
//                                 <-    exchanged {length, bytes}...          when all have given theirs
//   traffic {TrafficEntry}...     ->                                          if welcome asked for it
//   stats {StatsEntry}...         ->                                          if welcome asked for it
//   leave                         ->                                          from now on the node may exit
//   failed {text}                 ->                                          at any time before leave

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/descriptor.hpp"
#include "kumi/base/keys.hpp"
#include "kumi/base/result.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kumi::boot {

/// Names the inherited socket, as a descriptor number.
inline constexpr const char* socket_variable = "KUMI_BOOT";

/// Both sides must agree on it.
inline constexpr std::uint32_t wire_version = 4;

enum class Kind : std::uint32_t {
    join = 1,
    welcome,
    refused,
    share,
    shared,
    exchange,
    exchanged,
    traffic,
    stats,
    leave,
    failed
};

struct FrameHeader {
    Kind kind;
    std::uint32_t body_bytes;
    std::uint32_t descriptors; // 0 or 1: one comes with the header
    std::uint32_t reserved;
};
static_assert(sizeof(FrameHeader) == 16);

/// A body larger than this is garbage.
inline constexpr std::uint32_t body_bytes_max = std::uint32_t{1} << 28;

struct JoinBody {
    std::uint32_t version;
    std::int32_t pid;
};

/// Followed by the names of the job's hosts, by their lowest nodes, each ended by a zero. The only way in which the
/// keys of a job of `kumi run` travel; to other hosts, through ssh.
struct WelcomeBody {
    std::uint32_t node;
    std::uint32_t nodes;
    std::uint32_t slot;
    std::uint32_t nodes_on_host;
    std::uint32_t cores_on_host; // for all its nodes together
    std::uint32_t host;          // of those that follow
    std::uint32_t hosts;
    std::uint32_t traffic_wanted;
    std::uint32_t stats_wanted;
    std::uint32_t answer_seconds_max; // how long the node waits for an answer before it gives up; 0: for ever
    base::JobKeys keys;
};
static_assert(sizeof(WelcomeBody) == 80);

/// What one node sent to another over one device.
struct TrafficEntry {
    std::uint32_t to;
    char device[28]; // or network; zero-padded
    std::uint64_t messages;
    std::uint64_t bytes;
};
static_assert(sizeof(TrafficEntry) == 48);

/// What a node counted, on one device. A device that counts nothing says so by an entry without a name.
struct StatsEntry {
    std::uint32_t peer; // or whole_channel
    char device[12];    // zero-padded
    char name[32];      // zero-padded
    std::uint64_t value;
};
static_assert(sizeof(StatsEntry) == 56);

/// For a peer: the entry is about no peer but the channel as a whole.
inline constexpr std::uint32_t whole_channel = 0xffffffff;

/// So many entries may be about each peer, and as many about the whole; a report with more is garbage.
inline constexpr std::size_t stats_per_peer_max = 64;

/// Writes text into a zero-padded field, as much of it as leaves one zero.
template <std::size_t Size>
void put_text(char (&field)[Size], std::string_view text) noexcept {
    text = text.substr(0, Size - 1);
    std::copy_n(text.begin(), text.size(), field);
    std::fill(field + text.size(), field + Size, '\0');
}

/// The text in a zero-padded field.
template <std::size_t Size>
std::string_view text_in(const char (&field)[Size]) noexcept {
    const std::string_view whole(field, Size);
    return whole.substr(0, whole.find('\0'));
}

struct Frame {
    Kind kind;
    std::vector<std::byte> body;
    base::Descriptor descriptor;
};

/// A frame's header and body as they go over the socket.
std::vector<std::byte> encode(Kind kind, Bytes body, bool with_descriptor = false);

/// Puts frames together out of what a socket brings, however it is cut.
class FrameReader {
public:
    /// Reads what is there. False when the other side has closed.
    bool read_from(int socket);

    /// The next whole frame. A header that makes no sense is an error.
    Result<std::optional<Frame>> next();

private:
    std::vector<std::byte> bytes_;
    std::vector<base::Descriptor> descriptors_; // in order; each belongs to the next frame that announces one
};

/// Sends a whole frame, waiting for room.
Result<void> send_frame(int socket, Kind kind, Bytes body, int descriptor = -1);

/// Sends what the socket takes of `bytes` now, with the descriptor on the first byte. Answers how many bytes; -1 when
/// the other side is gone.
std::ptrdiff_t send_some(int socket, Bytes bytes, int descriptor = -1) noexcept;

} // namespace kumi::boot
