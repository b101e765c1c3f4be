#include "kumi/engine/call/calls.hpp"

#include "kumi/base/sync/thread_mark.hpp"
#include "kumi/base/system/machine.hpp"
#include "kumi/engine/dispatcher.hpp"
#include "kumi/engine/progress/wait_observer.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace kumi::engine {
namespace {

constexpr std::uint16_t ask_kind = kind_in_service(Kind::ask);
constexpr std::uint16_t answer_kind = kind_in_service(Kind::answer);
constexpr std::uint16_t ask_part_kind = kind_in_service(Kind::ask_part);
constexpr std::uint16_t answer_part_kind = kind_in_service(Kind::answer_part);

} // namespace

Calls::Calls(Dispatcher& dispatcher)
    : dispatcher_(dispatcher), port_(dispatcher.add_service(*this)), link_(std::make_shared<Link>()) {
    link_->calls = this;
}

void Calls::set_numbers(std::vector<std::uint32_t> numbers) {
    numbers_ = std::move(numbers);
    function_of_ = inverse_of(numbers_);
}

// ---- asking

Result<std::uint64_t> Calls::ask(Node to, std::uint32_t function, Bytes arguments, Operation::Answered answered) {
    if (auto known = dispatcher_.check_node("calling a function on", to); !known) return known.error();
    OperationService& operations = dispatcher_.operations();
    const OperationId id =
        operations.begin(Operation{.peer = to, .what = "call", .answered = std::move(answered)});
    const bool has_parts = arguments.size() > part_bytes();
    Result<void> sent;
    if (has_parts) {
        sent = send_parts(to, ask_part_kind, id, arguments);
        arguments = {};
    }
    if (sent) sent = port_.request(to, ask_kind, Ask{id, numbers_[function], has_parts ? 1u : 0u}, arguments);
    if (!sent) {
        operations.end(id);
        return sent.error();
    }
    return std::uint64_t{id.generation} << 32 | id.index;
}

std::size_t Calls::part_bytes() const noexcept { return std::min(chunk_bytes, dispatcher_.message_bytes_max() / 2); }

/// As requests, so that the receiver's credits bound what is under way; whatever follows them must be a request, too.
Result<void> Calls::send_parts(Node to, std::uint16_t kind, OperationId operation, Bytes whole) {
    for (std::size_t at = 0; at < whole.size();) {
        const Bytes part = whole.subspan(at, std::min(part_bytes(), whole.size() - at));
        if (auto sent = port_.request(to, kind, CallPart{operation, whole.size(), at}, part); !sent) return sent;
        at += part.size();
    }
    return {};
}

Handled Calls::on_answer(const Turn& turn, Node source, Bytes body) {
    Done what;
    if (!read_value(body, what)) return Handled::no;
    std::optional<std::vector<std::byte>> whole;
    if (what.value != 0) {
        whole = answers_.take(source, what.operation);
        if (!whole) return Handled::no;
    }
    Operation* const operation = dispatcher_.operations().find(turn, what.operation);
    if (operation == nullptr) return Handled::yes; // it was cancelled
    if (!operation->answered || !operation->is_from(source)) return Handled::no;
    const auto answered = std::move(operation->answered);
    dispatcher_.operations().end(turn, what.operation);
    answered(whole ? Bytes(*whole) : body.subspan(sizeof what));
    return Handled::yes;
}

// ---- being asked

Handled Calls::on_message(const Turn& turn, Node source, std::uint16_t kind, Bytes body) {
    switch (kind) {
    case ask_kind: return on_ask(turn, source, body);
    case answer_kind: return on_answer(turn, source, body);
    case ask_part_kind: return on_part(source, arguments_, body);
    case answer_part_kind: return on_part(source, answers_, body);
    default: return Handled::no;
    }
}

Handled Calls::on_part(Node source, CollectedParts& parts, Bytes body) {
    CallPart what;
    if (!read_value(body, what)) return Handled::no;
    return handled_if(parts.add(source, what, body.subspan(sizeof what)));
}

Handled Calls::on_ask(const Turn& turn, Node source, Bytes body) {
    Ask what;
    if (!read_value(body, what) || !has(what.function)) return Handled::no;
    std::vector<std::byte> arguments;
    if (what.has_parts != 0) {
        auto whole = arguments_.take(source, what.operation);
        if (!whole) return Handled::no;
        arguments = *std::move(whole);
    } else {
        const Bytes rest = body.subspan(sizeof what);
        arguments.assign(rest.begin(), rest.end());
    }
    const bool is_late = line_bytes_ > line_bytes_max || line_tasks_ > line_tasks_max;
    const std::optional<std::size_t> late = is_late ? std::optional(body.size()) : std::nullopt;
    const bool was_added =
        add_task(turn, {source, what.operation, function_of_[what.function], late, std::move(arguments), {}});
    return was_added && is_late ? Handled::later : Handled::yes;
}

void Calls::run_later(const Turn& turn, std::uint32_t number, Bytes arguments, FunctionAnswered ran) {
    add_task(turn, {dispatcher_.node(),
                    no_operation,
                    function_of_[number],
                    std::nullopt,
                    {arguments.begin(), arguments.end()},
                    std::move(ran)});
}

void Calls::on_lost(const Turn&, Node lost) noexcept {
    arguments_.drop(lost);
    answers_.drop(lost);
}

// ---- running

/// False: there is no thread for it, and the caller has been told so.
bool Calls::add_task(const Turn& turn, Task task) {
    if (has_stopped_) return true; // nobody waits for it any more
    line_bytes_ += task.arguments.size();
    ++line_tasks_;
    if (!dispatcher_.loop().has_background()) {
        tasks_.push_back(std::move(task));
        dispatcher_.loop().call(turn);
        return true;
    }
    if (!workers_) workers_ = std::make_unique<Workers>(dispatcher_.loop().workers());
    const auto shared = std::make_shared<Task>(std::move(task)); // std::function copies
    Workers::Task work = [this, shared](bool may_run) { run(std::move(*shared), may_run); };
    if (workers_->add(work)) return true;
    line_bytes_ -= shared->arguments.size();
    --line_tasks_;
    shared->late.reset();
    end(*shared, error(ErrorCode::no_memory, "function {}: the system has no thread to run it",
                       dispatcher_.messages().handlers().functions()[shared->function].name));
    return false;
}

void Calls::run(Task task, bool may_run) noexcept {
    const std::vector<std::byte> arguments = std::move(task.arguments);
    {
        const Turn turn = dispatcher_.take_turn();
        line_bytes_ -= arguments.size();
        --line_tasks_;
        if (task.late) port_.note_handled(turn, task.source, *task.late);
    }
    const std::uint32_t function = task.function;
    const auto answered = [link = link_, task = std::move(task)](Result<std::vector<std::byte>> answer) {
        give(*link, task, std::move(answer));
    };
    if (may_run) return run(function, arguments, answered);
    answered(error(ErrorCode::no_memory, "function {}: {} functions wait here, which is the most there may be",
                   dispatcher_.messages().handlers().functions()[function].name, Workers::usual_threads_max));
}

void Calls::run(std::uint32_t index, Bytes arguments, const FunctionAnswered& answered) const noexcept {
    const FunctionEntry& function = dispatcher_.messages().handlers().functions()[index];
    try {
        return function.run(arguments, answered);
    } catch (...) {
        answered(error_of_thrown("function " + function.name, ErrorCode::refused));
    }
}

Result<std::vector<std::byte>> Calls::run_now(std::uint32_t number, Bytes arguments) const {
    // Shared: a function may return a future that is ready later, when nobody waits for it any more.
    const auto answer = std::make_shared<std::optional<Result<std::vector<std::byte>>>>();
    run(function_of_[number], arguments, [answer](Result<std::vector<std::byte>> value) {
        if (!*answer) answer->emplace(std::move(value));
    });
    if (!*answer)
        return error(ErrorCode::misuse, "function {} returned a future that is not ready, and must not wait here",
                     dispatcher_.messages().handlers().functions()[function_of_[number]].name);
    return **answer;
}

/// Gives the answer of a function to end(), unless the engine has ended. Not under the lock: end() may wait, and its
/// caller may have the turn.
void Calls::give(Link& link, const Task& task, Result<std::vector<std::byte>> answer) {
    std::unique_lock lock(link.mutex);
    if (link.calls == nullptr) return;
    ++link.users;
    lock.unlock();
    link.calls->end(task, std::move(answer));
    lock.lock();
    if (--link.users == 0) link.left.notify_all();
}

/// Sends the answer of a function to where it goes. With the turn or without.
void Calls::end(const Task& task, Result<std::vector<std::byte>> answer) {
    if (answer && answer->size() > bytes_max)
        answer = error(ErrorCode::too_large, "function {} answered with {}; the largest is {}",
                       dispatcher_.messages().handlers().functions()[task.function].name,
                       base::readable_bytes_beside(answer->size(), bytes_max), base::readable_bytes(bytes_max));
    if (task.ran) {
        task.ran(std::move(answer));
    } else if (!answer) {
        dispatcher_.operations().refuse(dispatcher_.take_turn(), task.source, task.operation, answer.error());
    } else if (answer->size() <= part_bytes()) {
        port_.reply(dispatcher_.take_turn(), task.source, answer_kind, Done{task.operation, 0}, *answer);
    } else if (send_parts(task.source, answer_part_kind, task.operation, *answer)) {
        (void)port_.request(task.source, answer_kind, Done{task.operation, 1}); // an error: nobody is there to know
    }
    const Turn turn = dispatcher_.take_turn();
    dispatcher_.loop().wake_waiters(turn); // for what the function changed
}

bool Calls::is_in_function(const Turn&) const noexcept {
    return WaitObserver::of_this_thread() != nullptr || task_thread_ == base::thread_mark();
}

// ---- without a background

bool Calls::may_run_task() const noexcept {
    return task_thread_ == nullptr || (task_thread_ == base::thread_mark() && task_depth_ < task_depth_max);
}

bool Calls::run_task() noexcept {
    Task task;
    {
        const Turn turn = dispatcher_.take_turn();
        if (!has_tasks(turn)) return false;
        task = std::move(tasks_.front());
        tasks_.pop_front();
        ++task_depth_;
        task_thread_ = base::thread_mark();
    }
    run(std::move(task), true);
    const Turn turn = dispatcher_.take_turn();
    if (--task_depth_ == 0) task_thread_ = nullptr;
    if (!tasks_.empty()) dispatcher_.loop().wake_waiters(turn); // another thread may run them now
    return true;
}

// ---- ending

void Calls::stop() noexcept {
    {
        const Turn turn = dispatcher_.take_turn();
        has_stopped_ = true;
        dispatcher_.loop().end_observed_waits(turn);
    }
    if (workers_) workers_->stop();
    std::unique_lock lock(link_->mutex);
    link_->left.wait(lock, [this] { return link_->users == 0; });
    link_->calls = nullptr;
}

} // namespace kumi::engine
