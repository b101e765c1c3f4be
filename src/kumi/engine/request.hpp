#pragma once

// How the core's files send requests.

#include "kumi/engine/core.hpp"
#include "kumi/engine/outgoing.hpp"

namespace kumi::engine {

template <class Head>
Result<void> Core::request(Kind kind, Node to, const Head& head, Bytes body) {
    auto message = outgoing(kind, true, head);
    return request_bytes(to, message.bytes(), body);
}

} // namespace kumi::engine
