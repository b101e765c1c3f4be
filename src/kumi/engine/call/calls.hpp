#pragma once

// Functions of the program that other nodes call (Engine::invoke), and that groups run. A function may wait, so it runs
// as a task: outside of handlers, without the turn, one thread at a time. A function that waits may run further tasks
// meanwhile, on top of itself, task_depth_max deep. A request for a function counts as handled when the function has
// returned: that bounds how many wait.

#include "kumi/engine/call/function.hpp"
#include "kumi/engine/operation/operations.hpp"
#include "kumi/engine/service.hpp"

#include <deque>
#include <functional>
#include <vector>

namespace kumi::engine {

class Calls final : public Service {
public:
    explicit Calls(Dispatcher& dispatcher) noexcept;

    /// The number on the wire of each function of Handlers, as all nodes have agreed.
    void set_numbers(std::vector<std::uint32_t> numbers);
    std::uint32_t number_of(std::uint32_t function) const noexcept { return numbers_[function]; }
    bool has(std::uint32_t number) const noexcept { return number < function_of_.size(); }

    /// Runs the function of that index on `to`; `answered` gets what it answers, or why not. An error here: never sent.
    Result<std::uint64_t> ask(Node to, std::uint32_t function, Bytes arguments, Operation::Answered answered);
    /// Runs a function of this node as a task; `ran` gets what it answers, or why not.
    using Ran = std::function<void(Result<std::vector<std::byte>>)>;
    void run_later(const Turn& turn, std::uint32_t number, Bytes arguments, Ran ran);
    /// Runs one at once: it must not wait.
    Result<std::vector<std::byte>> run_now(std::uint32_t number, Bytes arguments) const {
        return run(function_of_[number], arguments);
    }

    /// This thread may run a task.
    bool has_tasks(const Turn& turn) const noexcept;
    /// Runs one, without the turn. False: there was none for this thread.
    bool run_task() noexcept;

private:
    struct Task {
        Node source;
        OperationId operation;
        std::uint32_t function;
        std::vector<std::byte> arguments;
        Ran ran; // instead of an answer to the source
    };

    Handled on_message(const Turn& turn, Node source, std::uint16_t kind, Bytes body) override;
    Handled on_ask(Node source, Bytes body);
    Handled on_answer(const Turn& turn, Node source, Bytes body);
    Result<std::vector<std::byte>> run(std::uint32_t function, Bytes arguments) const;
    void end(const Turn& turn, const Task& task, Result<std::vector<std::byte>> answer);

    static constexpr int task_depth_max = 32;

    Dispatcher& dispatcher_;
    Port port_;
    std::vector<std::uint32_t> numbers_;     // by function
    std::vector<std::uint32_t> function_of_; // by number
    std::deque<Task> tasks_;
    int task_depth_ = 0;
    const void* task_thread_ = nullptr; // that runs tasks
};

} // namespace kumi::engine
