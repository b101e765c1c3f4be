#include "kumi/engine/invoke.hpp"

#include "kumi/engine/dispatcher.hpp"

namespace kumi::engine {

Progress& progress_of(Dispatcher& dispatcher) noexcept { return dispatcher; }

Result<std::uint64_t> ask(Dispatcher& dispatcher, Node to, std::uint32_t function, const std::string& name,
                          const ArgumentBytes& arguments, std::function<void(const Result<Bytes>&)> answered) {
    if (!arguments)
        return error("function {} on node {}: its arguments cannot be sent: {}", name, to, arguments.error().text());
    if (arguments->size() > dispatcher.message_bytes_max())
        return error("function {} on node {}: its arguments take {} bytes, and a message holds {}: put large data into "
                     "a segment",
                     name, to, arguments->size(), dispatcher.message_bytes_max());
    return dispatcher.calls().ask(to, function, *arguments, std::move(answered));
}

} // namespace kumi::engine
