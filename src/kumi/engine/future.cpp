#include "kumi/engine/future.hpp"

#include "kumi/engine/progress/progress.hpp"

#include <string>

namespace kumi::engine {

std::shared_ptr<ProgressLink> link_of(Progress* progress) { return progress != nullptr ? progress->link() : nullptr; }

Error error_of_exception(const char* who) {
    try {
        throw;
    } catch (const Error& thrown) {
        return thrown;
    } catch (...) {
        return error_of_thrown(who, ErrorCode::refused);
    }
}

} // namespace kumi::engine
