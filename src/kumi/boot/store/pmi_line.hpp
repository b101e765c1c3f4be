#pragma once

// PMI-1, the text protocol of hydra and others (described by Flux RFC 13). The client asks and the server answers, one
// line each.
//
//   cmd=init pmi_version=1 pmi_subversion=1      cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0
//   cmd=get_maxes                                cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024
//   cmd=get_my_kvsname                           cmd=my_kvsname kvsname=kvs_1
//   cmd=put kvsname=kvs_1 key=a value=b          cmd=put_result rc=0 msg=success
//   cmd=barrier_in                               cmd=barrier_out                      when all have asked
//   cmd=get kvsname=kvs_1 key=a                  cmd=get_result rc=0 msg=success value=b
//   cmd=finalize                                 cmd=finalize_ack
//
// This is the pure part: it makes lines from bytes, and fields from lines. A value has no spaces, so bytes are sent as
// hexadecimal digits.

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kumi::boot {

/// A longer line is an error: no server sends more.
inline constexpr std::size_t pmi_line_bytes_max = 65'536;

/// A line from the server.
class PmiLine {
public:
    /// Parses a line without its newline. A line that does not start with a command is an error.
    static Result<PmiLine> parse(std::string_view text);

    const std::string& command() const noexcept { return command_; }
    std::optional<std::string_view> field(std::string_view name) const noexcept;
    /// The value of a field, if it is a whole number.
    std::optional<std::int64_t> number(std::string_view name) const noexcept;

private:
    std::string command_;
    std::vector<std::pair<std::string, std::string>> fields_;
};

/// A line to send, a request or an answer, with its newline.
std::string pmi_line(std::string_view command,
                     std::initializer_list<std::pair<std::string_view, std::string_view>> fields = {});

/// Assembles lines from the bytes that a socket delivers in any portions.
class PmiLineReader {
public:
    void take(Bytes bytes);

    /// The next complete line, if there is one. A line that is too long, or has no command, is an error.
    Result<std::optional<PmiLine>> next();
    /// The same without its newline, also where it has no command: lines within a spawn have none.
    Result<std::optional<std::string>> next_text();

private:
    std::string text_;
};

std::string hex_of(Bytes bytes);
std::optional<std::vector<std::byte>> bytes_of_hex(std::string_view digits);

/// The start of a text that could not be parsed, printable, for errors.
std::string shown(std::string_view text);

} // namespace kumi::boot
