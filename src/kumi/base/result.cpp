#include "kumi/base/result.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

namespace kumi {

ErrorCode error_code_of(std::uint32_t number) noexcept {
    return number <= static_cast<std::uint32_t>(ErrorCode::ended) ? static_cast<ErrorCode>(number) : ErrorCode::refused;
}

const char* name_of(ErrorCode code) noexcept {
    switch (code) {
    case ErrorCode::failed: return "failed";
    case ErrorCode::timed_out: return "timed out";
    case ErrorCode::node_lost: return "node lost";
    case ErrorCode::refused: return "refused";
    case ErrorCode::misuse: return "misuse";
    case ErrorCode::not_found: return "not found";
    case ErrorCode::too_large: return "too large";
    case ErrorCode::no_memory: return "no memory";
    case ErrorCode::cancelled: return "cancelled";
    case ErrorCode::ended: return "ended";
    }
    return "unknown";
}

namespace {

ErrorCode code_of(int error_number) noexcept {
    switch (error_number) {
    case ENOENT: return ErrorCode::not_found;
    case ETIMEDOUT: return ErrorCode::timed_out;
    case ENOMEM:
    case ENOSPC: return ErrorCode::no_memory;
    default: return ErrorCode::failed;
    }
}

} // namespace

Error format_error(ErrorCode code, fmt::string_view format, fmt::format_args arguments) {
    return Error(code, fmt::vformat(format, arguments));
}

Error system_error(int error_number, std::string tried) {
    char buffer[128];
    // The GNU strerror_r: returns the text, which may or may not lie in the buffer.
    return error(code_of(error_number), "{}: {}", tried, ::strerror_r(error_number, buffer, sizeof buffer));
}

namespace {

/// Of the exception that is being handled; nothing if it is neither an Error nor a std::exception.
std::optional<Error> known_thrown(ErrorCode otherwise) {
    try {
        throw;
    } catch (const std::bad_alloc&) {
        return Error(ErrorCode::no_memory, "there was no memory");
    } catch (const std::exception& thrown) {
        return Error(otherwise, thrown.what());
    } catch (const Error& thrown) {
        return Error(thrown.code(), thrown.text());
    } catch (...) {
        return {};
    }
}

} // namespace

Error error_of_thrown(ErrorCode otherwise) {
    auto known = known_thrown(otherwise);
    return known ? *std::move(known) : Error(otherwise, "what was thrown is no std::exception");
}

Error error_of_thrown(const std::string& name, ErrorCode otherwise) {
    const auto known = known_thrown(otherwise);
    return known ? Error(known->code(), name + " threw: " + known->text())
                 : Error(otherwise, name + " threw something that is no std::exception");
}

int fail(const Error& reason) noexcept {
    if (!reason.told()) std::fprintf(stderr, "kumi: %s\n", reason.text().c_str());
    return EXIT_FAILURE;
}

} // namespace kumi
