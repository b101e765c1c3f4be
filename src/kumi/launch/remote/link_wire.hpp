#pragma once

// The protocol between `kumi run` and its helper on another host, over the standard streams that ssh carries. So there
// is no address to choose, no port to open and nobody to authenticate, and the messages are as secret as ssh makes
// them.
//
//   helper                              kumi run
//                                 <-    job {JobOrder}                        at once, before the hello has come
//   hello, a line of text         ->                                          may follow what a login shell prints
//   started {pid}...              ->                                          or refused {text}
//   frame {node, kind, body}      ->                                          that a node has sent over its boot socket
//                                 <-    frame {node or every_node, kind, body}
//   out, err {node, text}         ->
//   ended {node, status}          ->
//                                 <-    signal {number}                       to all nodes
//                                 <-    hold, resume                          nodes' output
//                                 <-    input {text}                          to node 0; no text: its end
//   taken {bytes}                 ->                                          so much more input may come
//   done                          ->                                          all nodes have ended, and nothing is left
//
// When either stream ends, whatever the reason, the helper kills its nodes.

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"
#include "kumi/launch/host/job_map.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kumi::launch::remote {

/// Both sides must have the same, and the same boot::wire_version and version of Kumi.
inline constexpr std::uint32_t link_version = 2;

enum class LinkKind : std::uint32_t {
    job = 1,
    started,
    refused,
    frame,
    out,
    err,
    ended,
    signal,
    hold,
    resume,
    input,
    taken,
    done
};

struct LinkHeader {
    LinkKind kind;
    std::uint32_t node;
    std::uint32_t value; // boot::Kind, status, signal, bytes
    std::uint32_t body_bytes;
};
static_assert(sizeof(LinkHeader) == 16);

struct LinkFrame {
    LinkKind kind{};
    std::uint32_t node = 0;
    std::uint32_t value = 0;
    std::vector<std::byte> body;
};

std::vector<std::byte> encode(LinkKind kind, std::uint32_t node, std::uint32_t value, Bytes body);

/// The first message of a helper.
struct Hello {
    std::string version;         // Kumi's, and those of both protocols
    std::int64_t wall_clock_ns = 0;
    std::uint32_t cores = 1;     // that its nodes may use together
};
std::string encode(const Hello& hello);

/// The version of Kumi with those of both protocols, as the hello has it.
std::string full_version(std::string_view version);

/// By how much another host's clock is at least ahead of this host's, or behind if negative, if it showed `theirs` at a
/// time between `before` and `after`.
std::int64_t clock_difference_ns(std::int64_t theirs, std::int64_t before, std::int64_t after) noexcept;

/// How many bytes may come before the hello, such as a login shell prints.
inline constexpr std::size_t noise_bytes_max = 65536;

/// How many bytes of input may be under way to node 0.
inline constexpr std::uint32_t input_bytes_max = 65536;

/// A host's part of a job.
struct JobOrder {
    std::uint32_t first = 0;
    std::uint32_t count = 1;
    std::uint32_t nodes = 1; // of the whole job
    bool bind = true;
    bool is_terminal = false;
    std::uint16_t rows = 0;
    std::uint16_t columns = 0;
    std::string folder; // to run in
    std::string program;
    std::vector<std::string> arguments;
    std::vector<std::string> environment;     // laid over the host's own
    std::optional<std::string> cluster_text;  // of the cluster file
    std::string job_name;                     // for MPI processes; empty: there are none
    std::vector<host::Part> parts;            // of the whole job, if it has a name
    bool mpi_over_kumi = false;
};
std::vector<std::byte> encode(const JobOrder& order);
Result<JobOrder> decode_order(Bytes bytes);

/// Puts frames together out of the bytes that come over a link, in whatever pieces.
class LinkReader {
public:
    void add(Bytes bytes);

    /// The hello, once it is there whole. What came before it is thrown away.
    std::optional<Hello> next_hello();
    /// The next whole frame. A header that makes no sense is an error.
    Result<std::optional<LinkFrame>> next();
    /// The bytes that have come and were not taken yet.
    Bytes left() const noexcept { return Bytes(bytes_).subspan(taken_bytes_); }

private:
    void take(std::size_t bytes);

    std::vector<std::byte> bytes_;
    std::size_t taken_bytes_ = 0; // at its start
};

} // namespace kumi::launch::remote
