#pragma once

#include "kumi/base/clock.hpp"
#include "kumi/reliable/packet.hpp"

#include <utility>

namespace kumi::reliable {

/// How large packets to one peer may be. What the hosts' interfaces say is a limit only: a switch between them may
/// carry less, and drop larger packets without a word. So packets begin with a size that surely passes, larger ones are
/// tried by probes (RFC 8899), and a size that passed is tried again when packets get lost.
///
/// No clock says that a probe is lost, for the peer may only be busy: it is lost when the peer has received what was
/// sent after it, and does not answer it.
class PathSize {
public:
    /// Packets of up to `sure_bytes` pass as long as none are lost; with packet_bytes_max nothing is ever tried.
    PathSize(std::uint32_t sure_bytes, std::uint32_t limit_bytes) noexcept;

    /// What packets may have now.
    std::uint32_t bytes() const noexcept { return bytes_; }
    std::uint32_t limit() const noexcept { return limit_; }
    /// Packets of this size do not pass; above limit() if all do, or nothing is known.
    std::uint32_t too_large() const noexcept { return too_large_; }

    /// Packets are sent to the peer from now on.
    void begin(Instant now) noexcept;
    /// The hosts, or a router on the way, carry no more than that.
    void set_limit(std::uint32_t bytes, Instant now) noexcept;
    /// Packets get lost again and again.
    void doubt(Instant now) noexcept;

    /// When the next probe is to be sent; `never`: none, or one is under way.
    Instant next_probe() const noexcept { return is_out_ ? never : next_at_; }
    std::uint32_t probe_bytes() const noexcept { return probe_bytes_; }
    Sequence probe_number() const noexcept { return number_; }
    /// The probe of that number has left. It says nothing any more if another is to be tried meanwhile.
    void on_probe_sent(Sequence number, Sequence transmission) noexcept;
    /// A probe is under way.
    bool is_out() const noexcept { return is_out_; }

    /// The peer answers a probe.
    void on_answer(Sequence number, Instant now) noexcept;
    /// The peer has received that transmission. True: so the probe is lost.
    bool on_latest(Sequence latest, Instant now) noexcept {
        const bool is_lost = is_out_ && is_before(transmission_, latest);
        if (is_lost) [[unlikely]] on_probe_lost(now);
        return is_lost;
    }

    /// Asked once, after each search: whether it has ended below the limit.
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
    Sequence first_number_ = 1; // of the probes of this size
    Sequence number_ = 0;       // of the probe that is under way or comes next
    Sequence transmission_ = 0; // in which it left
    unsigned tries_ = 0;        // of this size that were lost
    bool is_out_ = false;
    bool is_narrow_ = false;
    Instant next_at_ = never;
};

} // namespace kumi::reliable
