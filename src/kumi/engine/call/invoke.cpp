#include "kumi/engine/call/invoke.hpp"

#include "kumi/engine/dispatcher.hpp"

namespace kumi::engine {

Progress& progress_of(Dispatcher& dispatcher) noexcept { return dispatcher.progress(); }

Error not_an_answer(Bytes bytes, const std::string& name, Node from) {
    return error(ErrorCode::refused, "function {} on node {}: {} bytes came back that are not its answer: {}", name,
                 from, bytes.size(), error_of_thrown(ErrorCode::refused).text());
}

Result<std::uint64_t> ask(Dispatcher& dispatcher, Node to, Handle function, const std::string& name,
                          const ArgumentBytes& arguments, std::function<void(const Result<Bytes>&)> answered) {
    if (!dispatcher.messages().handlers().has_made(function)) [[unlikely]]
        return dispatcher.messages().check_handle("function " + name, function).error();
    if (!arguments)
        return error(arguments.error().code(), "function {} on node {}: its arguments cannot be sent: {}", name, to,
                     arguments.error().text());
    if (arguments->size() > Calls::bytes_max)
        return error(ErrorCode::too_large,
                     "function {} on node {}: its arguments take {} bytes, and the most is {}: put large data into a "
                     "segment",
                     name, to, arguments->size(), Calls::bytes_max);
    return dispatcher.calls().ask(to, function.index, *arguments, std::move(answered));
}

} // namespace kumi::engine
