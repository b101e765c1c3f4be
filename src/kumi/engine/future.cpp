#include "kumi/engine/future.hpp"

#include "kumi/engine/progress/progress.hpp"

#include <exception>
#include <string>

namespace kumi::engine {

std::shared_ptr<ProgressLink> link_of(Progress* progress) { return progress != nullptr ? progress->link() : nullptr; }

Error error_of_exception(const char* who) {
    try {
        throw;
    } catch (const Error& thrown) {
        return thrown;
    } catch (const std::exception& thrown) {
        return Error(ErrorCode::refused, std::string(who) + " threw: " + thrown.what());
    } catch (...) {
        return Error(ErrorCode::refused, std::string(who) + " threw something that is no std::exception");
    }
}

} // namespace kumi::engine
