#include "kumi/launch/console/output.hpp"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <unistd.h>

namespace kumi::launch {

bool Sink::flush() {
    std::size_t written = 0;
    while (written < waiting_.size() && error_number_ == 0) {
        pollfd room{descriptor_, POLLOUT, 0};
        if (::poll(&room, 1, 0) <= 0) break;
        // At most one page: that much a pipe which has room takes without blocking.
        const std::size_t piece = std::min<std::size_t>(waiting_.size() - written, 4096);
        const ssize_t count = ::write(descriptor_, waiting_.data() + written, piece);
        if (count > 0) written += static_cast<std::size_t>(count);
        else if (errno != EINTR && errno != EAGAIN) error_number_ = errno;
    }
    waiting_.erase(0, error_number_ != 0 ? waiting_.size() : written);
    return error_number_ == 0;
}

void Collector::add(std::string_view text) {
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        if (end == std::string_view::npos) {
            partial_ += text;
            if (partial_.size() > line_bytes_max) finish();
            return;
        }
        if (partial_.empty()) {
            put_line(text.substr(0, end + 1));
        } else {
            partial_ += text.substr(0, end + 1);
            put_line(partial_);
            partial_.clear();
        }
        text.remove_prefix(end + 1);
    }
}

void Collector::finish() {
    if (partial_.empty()) return;
    partial_ += '\n';
    put_line(partial_);
    partial_.clear();
}

void Collector::put_line(std::string_view line) {
    if (!label_.empty()) sink_->add(label_);
    sink_->add(line);
}

} // namespace kumi::launch
