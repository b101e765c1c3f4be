#pragma once

// What a handler reaches by its Call: the engine, and the program's job.

#include <memory>

namespace kumi::engine {

class Engine;

class HandlerContext {
public:
    HandlerContext() noexcept;
    ~HandlerContext();
    HandlerContext(const HandlerContext&) = delete;
    HandlerContext& operator=(const HandlerContext&) = delete;

    /// An engine that is the dispatcher's and does not own it. It stays where it is when the program moves its own.
    Engine& engine() noexcept { return *engine_; }
    void set_engine(std::unique_ptr<Engine> engine) noexcept;
    /// The program's Job; null if there is none. The engine does not know what that is.
    void* job() const noexcept { return job_; }
    void set_job(void* job) noexcept { job_ = job; }

private:
    std::unique_ptr<Engine> engine_;
    void* job_ = nullptr;
};

} // namespace kumi::engine
