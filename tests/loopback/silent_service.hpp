#pragma once

#include "kumi/engine/dispatcher.hpp"

namespace kumi::loopback {

/// A service that takes no messages: it has a port, by which a part of a layer can send. It must outlive the engine.
class SilentService final : public engine::Service {
public:
    explicit SilentService(engine::Dispatcher& dispatcher) : port(dispatcher.add_service(*this)) {}

    engine::Handled on_message(const engine::Turn&, pm::Node, std::uint16_t, Bytes) override {
        return engine::Handled::no;
    }

    engine::Port port;
};

} // namespace kumi::loopback
