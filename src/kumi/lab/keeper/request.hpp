#pragma once

// What the kumi command asks a lab's keeper, over a Unix socket, and what it is answered.
//
// A request is its length and texts that end in a zero, and the command's standard streams as descriptors. While a
// request is carried out each further byte is a signal to pass on; the answer is a number and a text. Then it is over.

#include "kumi/base/descriptor.hpp"
#include "kumi/base/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kumi::lab {

struct Request {
    std::string verb;                      // "exec", "link", ...
    std::vector<std::string> words;        // what it is about
    std::string folder;                    // where the command was run
    std::vector<std::string> environment;  // "NAME=value"
    std::vector<base::Descriptor> streams; // standard input, output and error; of a received request
};

/// With this process's standard streams.
Result<void> send_request(int socket, const Request& request);
Result<Request> receive_request(int socket);

/// The exit code of a command that could not be run on its host; ssh has the same.
inline constexpr int not_reached = 255;

struct Answer {
    std::int32_t code = 0; // to exit with
    std::string text;      // for the user: what was asked for, or what went wrong
};

/// Nobody may be there any more, and that is no error.
void send_answer(int socket, const Answer& answer);
/// Waits for it. The error: the keeper went away before it had answered.
Result<Answer> receive_answer(int socket);

} // namespace kumi::lab
