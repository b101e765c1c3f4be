#pragma once

// A channel that passes everything on to another one, for tests that change some of it.

#include "kumi/pm/channel.hpp"
#include "kumi/pm/device.hpp"

#include <memory>
#include <utility>

namespace kumi::loopback {

class PassingChannel : public pm::Channel {
public:
    explicit PassingChannel(std::unique_ptr<pm::Channel> channel)
        : owned_(std::move(channel)), channel_(owned_.get()) {}
    /// To a channel that another object owns.
    explicit PassingChannel(pm::Channel& channel) : channel_(&channel) {}

    pm::Node self() const noexcept override { return channel_->self(); }
    pm::Node nodes() const noexcept override { return channel_->nodes(); }
    const pm::Traits& traits() const noexcept override { return channel_->traits(); }
    pm::SendSlot try_reserve(pm::Node to, std::size_t bytes) noexcept override {
        return channel_->try_reserve(to, bytes);
    }
    void commit(const pm::SendSlot& slot) noexcept override { channel_->commit(slot); }
    void cancel(const pm::SendSlot& slot) noexcept override { channel_->cancel(slot); }
    std::size_t poll(pm::Handler handler, std::size_t messages_max) noexcept override {
        return channel_->poll(handler, messages_max);
    }
    bool arm() noexcept override { return channel_->arm(); }
    void sleep(Instant deadline) noexcept override { channel_->sleep(deadline); }
    void wake() noexcept override { channel_->wake(); }
    bool lost(pm::Node node) const noexcept override { return channel_->lost(node); }
    void give_up(pm::Node node) noexcept override { channel_->give_up(node); }
    pm::Traffic sent(pm::Node to) const noexcept override { return channel_->sent(to); }
    pm::JointSleep* joint_sleep() noexcept override { return channel_->joint_sleep(); }
    pm::Ways* ways() noexcept override { return channel_->ways(); }
    void flush() noexcept override { channel_->flush(); }

private:
    std::unique_ptr<pm::Channel> owned_; // or none
    pm::Channel* channel_;
};

/// Opens another device's channels and wraps each in a `Made`, which is given `argument`, too.
template <class Made, class Wrapped, class Argument>
class WrappingDevice final : public pm::Device {
public:
    WrappingDevice(Wrapped device, Argument argument) : device_(std::move(device)), argument_(std::move(argument)) {}

    std::string_view name() const noexcept override { return device_.name(); }
    Result<std::unique_ptr<pm::Channel>> open(const pm::Opening& opening) override {
        auto channel = device_.open(opening);
        if (!channel) return channel.error();
        return std::unique_ptr<pm::Channel>(std::make_unique<Made>(*std::move(channel), argument_));
    }

private:
    Wrapped device_;
    Argument argument_;
};

} // namespace kumi::loopback
