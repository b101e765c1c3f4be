#pragma once

#include "kumi/base/clock.hpp"
#include "kumi/reliable/packet.hpp"

#include <utility>

namespace kumi::reliable {

/// Finds out how large packets to one peer may be. What the hosts' interfaces report is only an upper limit: a switch
/// between them may carry less, and drop larger packets silently. So packets start at a size that certainly passes,
/// larger sizes are tried by probes (RFC 8899), and a size that passed is tried again when packets get lost.
///
/// A probe does not time out, because the peer may only be busy. A probe is lost when the peer has received something
/// that was sent after it, and has not answered it.
class PathSize {
public:
    /// Packets of up to `sure_bytes` are assumed to pass until some are lost. With packet_bytes_max there are no probes
    /// at all.
    PathSize(std::uint32_t sure_bytes, std::uint32_t limit_bytes) noexcept;

    /// Largest packet that may be sent now.
    std::uint32_t bytes() const noexcept { return bytes_; }
    std::uint32_t limit() const noexcept { return limit_; }
    /// Packets of this size do not pass. Above limit() if all sizes pass, or nothing is known.
    std::uint32_t too_large() const noexcept { return too_large_; }

    /// Starts probing: packets are sent to the peer from now on.
    void begin(Instant now) noexcept;
    /// The hosts, or a router between them, carry no more than `bytes`.
    void set_limit(std::uint32_t bytes, Instant now) noexcept;
    /// Packets were lost several times in a row: the path may have become smaller.
    void doubt(Instant now) noexcept;

    /// When the next probe is due; `never` if there is none, or one is under way.
    Instant next_probe() const noexcept { return is_out_ ? never : next_at_; }
    std::uint32_t probe_bytes() const noexcept { return probe_bytes_; }
    Sequence probe_number() const noexcept { return number_; }
    /// The probe `number` was sent. Ignored if another probe is due by now.
    void on_probe_sent(Sequence number, Sequence transmission) noexcept;
    /// True while a probe is under way.
    bool is_out() const noexcept { return is_out_; }

    /// The peer has answered the probe `number`.
    void on_answer(Sequence number, Instant now) noexcept;
    /// The peer has received the transmission `latest`. True if the probe is lost therefore.
    bool on_latest(Sequence latest, Instant now) noexcept {
        const bool is_lost = is_out_ && is_before(transmission_, latest);
        if (is_lost) [[unlikely]] on_probe_lost(now);
        return is_lost;
    }

    /// True once after each search that ended below the limit.
    bool take_narrow() noexcept { return std::exchange(is_narrow_, false); }

private:
    void try_next(std::uint32_t bytes, Instant when) noexcept;
    void search(Instant now) noexcept;
    void on_probe_lost(Instant now) noexcept;

    std::uint32_t sure_;
    std::uint32_t limit_;
    std::uint32_t bytes_;
    std::uint32_t too_large_;
    std::uint32_t probe_bytes_ = 0;
    Sequence first_number_ = 1; // number of the first probe of this size
    Sequence number_ = 0;       // of the probe that is under way, or of the next one
    Sequence transmission_ = 0; // of the probe that is under way
    unsigned tries_ = 0;        // lost probes of this size
    bool is_out_ = false;
    bool is_narrow_ = false;
    Instant next_at_ = never;
};

} // namespace kumi::reliable
