#pragma once

// The protocol between a node and the `kumi run` that started it, over a Unix stream socket that the node inherits. A
// frame is a header and a body, and may carry a descriptor. The node asks, and `kumi run` answers.
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
//   late {text}                   ->                                          a deadline has passed; once
//                                 <-    report                                at any time: print what you wait for
//
// An MPI process does not speak this protocol. The servers of its host (launch/host/pmi) send frames in its name; their
// bodies are in launch/host/pmi/pmi_frames.hpp. What such a frame tells is never taken from a boot socket.
//
//   servers of a host                   kumi run
//   mpi_joined, mpi_left          ->                                          in MPI_Init, in MPI_Finalize
//   mpi_aborted {code, text}      ->                                          MPI_Abort
//   fence {key, content}          ->
//                                 <-    fenced {key, contents}                when all hosts have given theirs
//   fetch {of a node}             ->    fetch                                 to the servers of that node's host
//   fetched                       <-    fetched                               what those have answered
//   output {text}, environment    ->                                          to the starter of this host's nodes only

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"
#include "kumi/base/system/keys.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kumi::boot {

/// Environment variable with the descriptor number of the inherited socket.
inline constexpr const char* socket_variable = "KUMI_BOOT";

/// Both sides must have the same version.
inline constexpr std::uint32_t wire_version = 7;

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
    failed,
    late,
    report,
    mpi_joined,
    mpi_left,
    mpi_aborted,
    fence,
    fenced,
    fetch,
    fetched,
    output,
    environment
};

/// Whether a node may send frames of this kind over its boot socket; others are for the servers of MPI processes.
constexpr bool is_of_node(Kind kind) noexcept { return kind <= Kind::report; }

struct FrameHeader {
    Kind kind;
    std::uint32_t body_bytes;
    std::uint32_t descriptors; // 0 or 1; the descriptor comes with the header
    std::uint32_t reserved;
};
static_assert(sizeof(FrameHeader) == 16);

/// A larger body is an error.
inline constexpr std::uint32_t body_bytes_max = std::uint32_t{1} << 28;

struct JoinBody {
    std::uint32_t version;
    std::int32_t pid;
};

/// Followed by the names of the job's hosts, in the order of their lowest nodes, each ended by a zero. This is the only
/// way in which the keys of a job of `kumi run` are sent; to other hosts it goes through ssh.
struct WelcomeBody {
    std::uint32_t node;
    std::uint32_t nodes;
    std::uint32_t slot;
    std::uint32_t nodes_on_host;
    std::uint32_t cores_on_host; // of all nodes of the host together
    std::uint32_t host;          // index in the names that follow
    std::uint32_t hosts;
    std::uint32_t traffic_wanted;
    std::uint32_t stats_wanted;
    std::uint32_t answer_seconds_max; // how long the node waits for an answer; 0: for ever
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

/// A counter of one device on a node. A device without counters sends an entry without a name.
struct StatsEntry {
    std::uint32_t peer; // or whole_channel
    char device[12];    // zero-padded
    char name[32];      // zero-padded
    std::uint64_t value;
};
static_assert(sizeof(StatsEntry) == 56);

/// Counters of a class of message sizes: the messages, and the time that sending them took. Behind it the name has the
/// size of the largest in decimal digits, or 0 for messages that are larger than all classes.
inline constexpr const char* size_messages = "messages of size ";
inline constexpr const char* size_nanoseconds = "nanoseconds of size ";

/// Value of StatsEntry::peer for counters of the whole channel.
inline constexpr std::uint32_t whole_channel = 0xffffffff;

/// Most entries about each peer, and about the whole channel. A report with more is an error.
inline constexpr std::size_t stats_per_peer_max = 64;

/// Writes text into a zero-padded field. The text is cut so that at least one zero remains.
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

/// A frame's header and body as they are sent.
std::vector<std::byte> encode(Kind kind, Bytes body, bool with_descriptor = false);

/// Assembles frames from the bytes that a socket delivers in any portions.
class FrameReader {
public:
    /// Reads what has arrived. False if the other side has closed.
    bool read_from(int socket);

    /// The next complete frame, if there is one. An invalid header is an error.
    Result<std::optional<Frame>> next();

private:
    std::vector<std::byte> bytes_;
    // in order of arrival; each belongs to the next frame that announces one
    std::vector<base::Descriptor> descriptors_;
};

/// Sends a whole frame. Blocks until there is room.
Result<void> send_frame(int socket, Kind kind, Bytes body, int descriptor = -1);

/// Sends as much of `bytes` as the socket takes now, with the descriptor on the first byte. Returns the number of
/// bytes; -1 if the other side is gone.
std::ptrdiff_t send_some(int socket, Bytes bytes, int descriptor = -1) noexcept;

} // namespace kumi::boot
