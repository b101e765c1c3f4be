#pragma once

// PMI-1, the text protocol of hydra and others (Flux RFC 13 describes it): a client asks, the server answers, one line
// each.
//
//   cmd=init pmi_version=1 pmi_subversion=1      cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0
//   cmd=get_maxes                                cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024
//   cmd=get_my_kvsname                           cmd=my_kvsname kvsname=kvs_1
//   cmd=put kvsname=kvs_1 key=a value=b          cmd=put_result rc=0 msg=success
//   cmd=barrier_in                               cmd=barrier_out                      when all have asked
//   cmd=get kvsname=kvs_1 key=a                  cmd=get_result rc=0 msg=success value=b
//   cmd=finalize                                 cmd=finalize_ack
//
// Here is the pure part: lines from bytes, fields from lines. A value has no spaces, so bytes go as hexadecimal digits.

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

/// No server sends more in one line.
inline constexpr std::size_t pmi_line_bytes_max = 65'536;

/// A line that a server sent.
class PmiLine {
public:
    /// A line without its end. One that does not start with a command is no PMI-1.
    static Result<PmiLine> parse(std::string_view text);

    const std::string& command() const noexcept { return command_; }
    std::optional<std::string_view> field(std::string_view name) const noexcept;
    /// A field that is a whole number.
    std::optional<std::int64_t> number(std::string_view name) const noexcept;

private:
    std::string command_;
    std::vector<std::pair<std::string, std::string>> fields_;
};

/// A line to send, with its end.
std::string pmi_request(std::string_view command,
                        std::initializer_list<std::pair<std::string_view, std::string_view>> fields = {});

/// Lines out of what a socket brings, however it is cut.
class PmiLineReader {
public:
    void take(Bytes bytes);

    /// The next whole line. A line without end is an error.
    Result<std::optional<PmiLine>> next();

private:
    std::string text_;
};

std::string hex_of(Bytes bytes);
std::optional<std::vector<std::byte>> bytes_of_hex(std::string_view digits);

/// What people may see of bytes that made no sense.
std::string shown(std::string_view text);

} // namespace kumi::boot
