#pragma once

// Functions of the program that other nodes call (Engine::invoke), and that groups run. A function may wait, so it runs
// as a task: outside of handlers and without the turn.
//
// Where the engine has a background, workers run the tasks (workers.hpp), so a function that computes for long keeps
// neither messages nor waits of this node from going on. Without a background the threads that poll or wait run them,
// one at a time; a function that waits may run further tasks on top of itself then, task_depth_max deep.
//
// A request for a function counts as handled when it is in line, unless much is in line already: then it counts when
// the function begins. That bounds what waits here.

#include "kumi/engine/call/collected_parts.hpp"
#include "kumi/engine/call/function.hpp"
#include "kumi/engine/call/workers.hpp"
#include "kumi/engine/operation/operations.hpp"
#include "kumi/engine/service.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace kumi::engine {

class Calls final : public Service {
public:
    /// Arguments, or an answer.
    static constexpr std::uint64_t bytes_max = std::uint64_t{1} << 30;

    explicit Calls(Dispatcher& dispatcher);

    /// The number on the wire of each function of Handlers, as all nodes have agreed.
    void set_numbers(std::vector<std::uint32_t> numbers);
    std::uint32_t number_of(std::uint32_t function) const noexcept { return numbers_[function]; }
    bool has(std::uint32_t number) const noexcept { return number < function_of_.size(); }

    /// Runs the function of that index on `to`; `answered` gets what it answers, or why not. An error here: never sent.
    Result<std::uint64_t> ask(Node to, std::uint32_t function, Bytes arguments, Operation::Answered answered);
    /// Runs a function of this node as a task; `ran` gets what it answers, or why not.
    void run_later(const Turn& turn, std::uint32_t number, Bytes arguments, FunctionAnswered ran);
    /// Runs one at once: it must not wait.
    Result<std::vector<std::byte>> run_now(std::uint32_t number, Bytes arguments) const;

    /// This thread runs a function.
    bool is_in_function(const Turn& turn) const noexcept;
    /// This thread may run a task.
    bool has_tasks(const Turn&) const noexcept { return !tasks_.empty() && may_run_task(); }
    /// Runs one, without the turn. False: there was none for this thread.
    bool run_task() noexcept;
    /// Waits for the functions that run, and drops tasks in line. Without the turn, before the engine ends.
    void stop() noexcept;

private:
    /// A function to be run, and where its answer goes.
    struct Task {
        Node source;
        OperationId operation;
        std::uint32_t function;
        std::optional<std::size_t> late; // bytes of a request that is counted as handled when this begins
        std::vector<std::byte> arguments;
        FunctionAnswered ran; // instead of an answer to the source
    };
    /// By which an answer gets back here, also from a future that a function has returned. The engine may have ended
    /// when that is ready.
    struct Link {
        std::mutex mutex;
        std::condition_variable left;
        Calls* calls = nullptr; // null: it has ended
        unsigned users = 0;     // threads that use it
    };

    Handled on_message(const Turn& turn, Node source, std::uint16_t kind, Bytes body) override;
    void on_lost(const Turn& turn, Node lost) noexcept override;
    Handled on_ask(const Turn& turn, Node source, Bytes body);
    Handled on_part(Node source, CollectedParts& parts, Bytes body);
    Handled on_answer(const Turn& turn, Node source, Bytes body);
    Result<void> send_parts(Node to, std::uint16_t kind, OperationId operation, Bytes whole);
    std::size_t part_bytes() const noexcept;
    bool add_task(const Turn& turn, Task task);
    bool may_run_task() const noexcept;
    void run(Task task, bool may_run) noexcept;
    void run(std::uint32_t function, Bytes arguments, const FunctionAnswered& answered) const noexcept;
    void end(const Task& task, Result<std::vector<std::byte>> answer);

    static void give(Link& link, const Task& task, Result<std::vector<std::byte>> answer);

    static constexpr int task_depth_max = 32;
    /// Bytes of arguments in line, beyond which requests are counted late.
    static constexpr std::size_t line_bytes_max = std::size_t{16} << 20;
    static constexpr std::size_t line_tasks_max = 4096;

    Dispatcher& dispatcher_;
    Port port_;
    std::vector<std::uint32_t> numbers_;     // by function
    std::vector<std::uint32_t> function_of_; // by number
    CollectedParts arguments_{bytes_max};    // of calls that are still to come
    CollectedParts answers_{bytes_max};
    std::size_t line_bytes_ = 0; // of tasks that have not begun
    std::size_t line_tasks_ = 0;
    bool has_stopped_ = false;
    std::shared_ptr<Link> link_;
    std::unique_ptr<Workers> workers_; // from the first task on, where there is a background

    // Without a background.
    std::deque<Task> tasks_;
    int task_depth_ = 0;
    const void* task_thread_ = nullptr; // that runs tasks
};

} // namespace kumi::engine
