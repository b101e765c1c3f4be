#pragma once

// Prints the nodes' output in whole lines, each with its node's label if wanted. One Collector per stream of a node
// cuts the text that arrives into lines; one Sink per stream of this process writes them, without ever blocking.

#include "kumi/base/bytes.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace kumi::launch {

/// Standard output or error of this process. Keeps text that it cannot write yet; ask full() before adding more.
class Sink {
public:
    explicit Sink(int descriptor) : descriptor_(descriptor) {}

    void add(std::string_view text) { waiting_ += text; }
    /// Writes what can be written now. False when nothing can be written any more, see error_number(): later text is
    /// thrown away.
    bool flush();
    /// Why nothing can be written any more: EPIPE when nobody reads. 0 while there was no error.
    int error_number() const noexcept { return error_number_; }

    bool empty() const noexcept { return waiting_.empty(); }
    bool full() const noexcept { return waiting_.size() > bytes_max; }
    int descriptor() const noexcept { return descriptor_; }

private:
    static constexpr std::size_t bytes_max = std::size_t{1} << 20;

    int descriptor_;
    std::string waiting_;
    int error_number_ = 0;
};

/// Cuts one stream of one node into lines.
class Collector {
public:
    /// `label` stands before each line; empty for none.
    Collector(Sink& sink, std::string label) : sink_(&sink), label_(std::move(label)) {}

    void add(std::string_view text);
    /// The stream has ended: a last line without a newline gets one.
    void finish();

private:
    /// A longer line comes out in pieces, so that a node cannot make this process keep more.
    static constexpr std::size_t line_bytes_max = std::size_t{1} << 16;

    void put_line(std::string_view line);

    Sink* sink_;
    std::string label_;
    std::string partial_;
};

} // namespace kumi::launch
