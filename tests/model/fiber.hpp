#pragma once

// Several stacks in one thread.

#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#if defined(KUMI_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace kumi::model {

/// A stack that runs `round` once per resume(), with any number of suspend() inside. Reused from one execution to the
/// next, since setting up a stack costs more than a whole execution.
class Fiber final {
public:
    explicit Fiber(std::function<void()> round) : round_(std::move(round)) {
        Allocator allocator(stack_bytes);
        stack_ = allocator.allocate();
        const boost::context::preallocated place(stack_.sp, stack_.size, stack_);
        inside_ = boost::context::fiber(std::allocator_arg, place, allocator,
                                        [this](boost::context::fiber&& outside) { return main(std::move(outside)); });
    }
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;
    ~Fiber() {
        closing_ = true;
        resume();
#if defined(KUMI_ADDRESS_SANITIZER)
        // The outermost frames of the stack have not returned, so their red zones are still poisoned. What is mapped
        // here next would seem to have them.
        __asan_unpoison_memory_region(static_cast<char*>(stack_.sp) - stack_.size, stack_.size);
#endif
    }

    void resume() {
#if defined(KUMI_ADDRESS_SANITIZER)
        void* saved = nullptr;
        __sanitizer_start_switch_fiber(&saved, static_cast<char*>(stack_.sp) - stack_.size, stack_.size);
#endif
        inside_ = std::move(inside_).resume();
#if defined(KUMI_ADDRESS_SANITIZER)
        __sanitizer_finish_switch_fiber(saved, nullptr, nullptr);
#endif
    }

    void suspend() {
#if defined(KUMI_ADDRESS_SANITIZER)
        void* saved = nullptr;
        __sanitizer_start_switch_fiber(&saved, outside_bottom_, outside_bytes_);
#endif
        outside_ = std::move(outside_).resume();
#if defined(KUMI_ADDRESS_SANITIZER)
        __sanitizer_finish_switch_fiber(saved, &outside_bottom_, &outside_bytes_);
#endif
    }

private:
    using Allocator = boost::context::protected_fixedsize_stack;
    static constexpr std::size_t stack_bytes = 256 * 1024;

    boost::context::fiber main(boost::context::fiber&& outside) {
        outside_ = std::move(outside);
#if defined(KUMI_ADDRESS_SANITIZER)
        __sanitizer_finish_switch_fiber(nullptr, &outside_bottom_, &outside_bytes_);
#endif
        while (!closing_) {
            round_();
            suspend();
        }
#if defined(KUMI_ADDRESS_SANITIZER)
        __sanitizer_start_switch_fiber(nullptr, outside_bottom_, outside_bytes_);
#endif
        return std::move(outside_);
    }

    std::function<void()> round_;
    boost::context::stack_context stack_;
    boost::context::fiber inside_;    // where resume() goes on
    boost::context::fiber outside_;   // where suspend() goes on
    [[maybe_unused]] const void* outside_bottom_ = nullptr; // for AddressSanitizer, which is told of every switch
    [[maybe_unused]] std::size_t outside_bytes_ = 0;
    bool closing_ = false;
};

} // namespace kumi::model
