#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace kumi::provider {

/// An endpoint of some process of the job. For matching it is a number.
struct Peer {
    std::uint32_t node = 0;
    std::uint8_t endpoint = 0;

    std::uint32_t number() const noexcept { return std::uint32_t{endpoint} << 24 | node; }
    static Peer of_number(std::uint32_t number) noexcept {
        return {number & 0xffffff, static_cast<std::uint8_t>(number >> 24)};
    }
};
inline constexpr std::uint32_t nodes_max = 1u << 24;
inline constexpr std::size_t endpoints_max = 255; // of one process; the number of all sources has no endpoint 255

/// What a program is told of an operation that is over. Values of `flags` and `error` are those of libfabric.
struct Completion {
    void* context = nullptr;
    std::uint64_t flags = 0;
    std::size_t length = 0;
    void* buffer = nullptr;
    std::uint64_t data = 0;
    std::uint64_t tag = 0;
    std::uint32_t source = 0;                  // Peer::number(), of a receive
    std::uint64_t address = ~std::uint64_t{0}; // the source's in the endpoint's vector, if that is asked for and known
    int error = 0;
    std::size_t excess = 0; // bytes that did not fit
};

/// Completions until the program reads them. Grows while it does not.
class CompletionQueue {
public:
    void push(const Completion& completion) { completions_.push_back(completion); }
    bool is_empty() const noexcept { return completions_.empty(); }
    const Completion& front() const noexcept { return completions_.front(); }
    void pop() noexcept { completions_.pop_front(); }

private:
    std::deque<Completion> completions_;
};

} // namespace kumi::provider
