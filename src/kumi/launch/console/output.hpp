#pragma once

// What nodes print comes out in whole lines, each with its node's label if wanted. One Collector per stream of a
// node cuts what arrives into lines; one Sink per stream of ours takes them, without ever blocking the watcher.

#include "kumi/base/bytes.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace kumi::launch {

/// Our own standard output or error. Holds what it cannot write yet; ask full() before bringing more.
class Sink {
public:
    explicit Sink(int descriptor) : descriptor_(descriptor) {}

    void add(std::string_view text) { waiting_ += text; }
    /// Writes what can be written now. False when nothing can be written any more, see error_number(): what comes
    /// later is thrown away.
    bool flush();
    /// Why nothing can be written any more: EPIPE when nobody reads. 0 while all is well.
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

/// One stream of one node.
class Collector {
public:
    /// `label` stands before each line; empty for none.
    Collector(Sink& sink, std::string label) : sink_(&sink), label_(std::move(label)) {}

    void add(std::string_view text);
    /// The stream has ended: a last line without its end gets one.
    void finish();

private:
    /// A line longer than this comes out in pieces: a node cannot make us hold more.
    static constexpr std::size_t line_bytes_max = std::size_t{1} << 16;

    void put_line(std::string_view line);

    Sink* sink_;
    std::string label_;
    std::string partial_;
};

} // namespace kumi::launch
