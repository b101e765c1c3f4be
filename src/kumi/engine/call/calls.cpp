#include "kumi/engine/call/calls.hpp"

#include "kumi/base/system/machine.hpp"
#include "kumi/engine/dispatcher.hpp"

#include <exception>
#include <utility>

namespace kumi::engine {
namespace {

constexpr std::uint16_t ask_kind = kind_in_service(Kind::ask);
constexpr std::uint16_t answer_kind = kind_in_service(Kind::answer);

} // namespace

Calls::Calls(Dispatcher& dispatcher) noexcept : dispatcher_(dispatcher), port_(dispatcher.add_service(*this)) {}

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
    if (auto sent = port_.request(to, ask_kind, Ask{id, numbers_[function], 0}, arguments); !sent) {
        operations.end(id);
        return sent.error();
    }
    return std::uint64_t{id.generation} << 32 | id.index;
}

Handled Calls::on_answer(const Turn& turn, Node source, Bytes body) {
    Done what;
    if (!read_value(body, what)) return Handled::no;
    Operation* const operation = dispatcher_.operations().find(turn, what.operation);
    if (operation == nullptr) return Handled::yes; // it was cancelled
    if (!operation->answered || !operation->is_from(source)) return Handled::no;
    const auto answered = std::move(operation->answered);
    dispatcher_.operations().end(turn, what.operation);
    answered(body.subspan(sizeof what));
    return Handled::yes;
}

// ---- being asked

Handled Calls::on_message(const Turn& turn, Node source, std::uint16_t kind, Bytes body) {
    switch (kind) {
    case ask_kind: return on_ask(source, body);
    case answer_kind: return on_answer(turn, source, body);
    default: return Handled::no;
    }
}

Handled Calls::on_ask(Node source, Bytes body) {
    Ask what;
    if (!read_value(body, what) || !has(what.function)) return Handled::no;
    const Bytes arguments = body.subspan(sizeof what);
    tasks_.push_back({source, what.operation, function_of_[what.function], {arguments.begin(), arguments.end()}, {}});
    return Handled::later;
}

void Calls::run_later(const Turn& turn, std::uint32_t number, Bytes arguments, Ran ran) {
    tasks_.push_back(
        {dispatcher_.node(), no_operation, function_of_[number], {arguments.begin(), arguments.end()}, std::move(ran)});
    dispatcher_.loop().call(turn);
}

bool Calls::has_tasks(const Turn&) const noexcept {
    if (tasks_.empty()) return false;
    return task_thread_ == nullptr ||
           (task_thread_ == dispatcher_.loop().turn_holder() && task_depth_ < task_depth_max);
}

bool Calls::run_task() noexcept {
    Task task;
    {
        const Turn turn = dispatcher_.take_turn();
        if (!has_tasks(turn)) return false;
        task = std::move(tasks_.front());
        tasks_.pop_front();
        ++task_depth_;
        task_thread_ = dispatcher_.loop().turn_holder();
    }
    auto answer = run(task.function, task.arguments);
    const Turn turn = dispatcher_.take_turn();
    end(turn, task, std::move(answer));
    if (--task_depth_ == 0) task_thread_ = nullptr;
    dispatcher_.loop().wake_waiters(turn); // for what the function changed
    return true;
}

void Calls::end(const Turn& turn, const Task& task, Result<std::vector<std::byte>> answer) {
    if (task.ran) return task.ran(std::move(answer));
    port_.note_handled(turn, task.source); // so the answer tells of it
    if (answer) port_.reply(turn, task.source, answer_kind, Done{task.operation, 0}, *answer);
    else dispatcher_.operations().refuse(turn, task.source, task.operation, answer.error());
}

Result<std::vector<std::byte>> Calls::run(std::uint32_t index, Bytes arguments) const {
    const FunctionEntry& function = dispatcher_.messages().handlers().functions()[index];
    try {
        auto answer = function.run(arguments);
        if (answer.size() <= dispatcher_.message_bytes_max()) return answer;
        return error(ErrorCode::too_large, "function {} answered with {}; the largest is {}", function.name,
                     base::readable_bytes(answer.size()), base::readable_bytes(dispatcher_.message_bytes_max()));
    } catch (const std::exception& thrown) {
        return error(ErrorCode::refused, "function {} threw: {}", function.name, thrown.what());
    } catch (...) {
        return error(ErrorCode::refused, "function {} threw something that is no std::exception", function.name);
    }
}

} // namespace kumi::engine
