#pragma once

// The protocol between the kumi command and a lab's keeper, over a Unix socket: one request and one answer for each
// connection.
//
// A request is its length and texts that end in a zero, and the command's standard streams as descriptors. While the
// request is carried out, each further byte is a signal to pass on. The answer is a number and a text.

#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kumi::lab {

struct Request {
    std::string verb;                      // "exec", "link", ...
    std::vector<std::string> words;        // that follow the verb
    std::string folder;                    // where the command was run
    std::vector<std::string> environment;  // "NAME=value"
    std::vector<base::Descriptor> streams; // standard input, output and error; of a received request
};

/// Sends a request with the standard streams of this process.
Result<void> send_request(int socket, const Request& request);
Result<Request> receive_request(int socket);

/// The exit code of a command that could not be run on its host; ssh has the same.
inline constexpr int not_reached = 255;

struct Answer {
    std::int32_t code = 0; // to exit with
    std::string text;      // for the user: what was asked for, or what went wrong
};

/// Sends an answer. It is no error if nobody is there any more.
void send_answer(int socket, const Answer& answer);
/// Waits for the answer. The error: the keeper went away before it had answered.
Result<Answer> receive_answer(int socket);

} // namespace kumi::lab
