#pragma once

// What `kumi run` and its helper on another host say to each other, over the standard streams that ssh carries: so
// there is no address to choose, no port to open and nobody to authenticate, and what they say is as secret as ssh
// makes it.
//
//   helper                              kumi run
//                                 <-    job {JobOrder}                        at once, without waiting for the hello
//   hello, a line of text         ->                                          may follow what a login shell prints
//   started {pid}...              ->                                          or refused {text}
//   frame {node, kind, body}      ->                                          what a node says over its boot socket
//                                 <-    frame {node or every_node, kind, body}
//   out, err {node, text}         ->
//   ended {node, status}          ->
//                                 <-    signal {number}                       to all nodes
//                                 <-    hold, resume                          nodes' output
//                                 <-    input {text}                          to node 0; no text: its end
//   taken {bytes}                 ->                                          so much more input may come
//   done                          ->                                          all have ended, and nothing is left
//
// When either stream ends, whatever the reason, the helper kills its nodes.

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kumi::launch::remote {

/// Both sides must agree on it, on boot::wire_version and on Kumi's version.
inline constexpr std::uint32_t link_version = 1;

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

/// The first that a helper says.
struct Hello {
    std::string version;         // Kumi's, and those of both protocols
    std::int64_t wall_clock_ns = 0;
    std::uint32_t cores = 1;     // that its nodes may use together
};
std::string encode(const Hello& hello);

/// What a program and its helper of this build say they are.
std::string full_version(std::string_view version);

/// How far another host's clock is ahead of ours, at least, if it showed `theirs` at a time between `before` and
/// `after`.
std::int64_t clock_difference_ns(std::int64_t theirs, std::int64_t before, std::int64_t after) noexcept;

/// So much may come before the hello.
inline constexpr std::size_t noise_bytes_max = 65536;

/// Input that may be under way to node 0.
inline constexpr std::uint32_t input_bytes_max = 65536;

/// What a host has to do for a job.
struct JobOrder {
    std::uint32_t first = 0;
    std::uint32_t count = 1;
    bool bind = true;
    bool is_terminal = false;
    std::uint16_t rows = 0;
    std::uint16_t columns = 0;
    std::string folder; // to run in
    std::string program;
    std::vector<std::string> arguments;
    std::vector<std::string> environment;     // laid over the host's own
    std::optional<std::string> cluster_text;  // of the cluster file
};
std::vector<std::byte> encode(const JobOrder& order);
Result<JobOrder> decode_order(Bytes bytes);

/// Puts together what comes over a link, however it is cut.
class LinkReader {
public:
    void add(Bytes bytes);

    /// The hello, once it is there whole; what comes before it is thrown away.
    std::optional<Hello> next_hello();
    /// The next whole frame. A header that makes no sense is an error.
    Result<std::optional<LinkFrame>> next();
    /// What came and was not taken yet.
    Bytes left() const noexcept { return Bytes(bytes_).subspan(taken_bytes_); }

private:
    void take(std::size_t bytes);

    std::vector<std::byte> bytes_;
    std::size_t taken_bytes_ = 0; // at its start
};

} // namespace kumi::launch::remote
