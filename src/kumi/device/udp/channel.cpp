#include "kumi/device/udp/channel.hpp"

#include "kumi/base/assert.hpp"
#include "kumi/base/log.hpp"
#include "kumi/base/system/machine.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/eventfd.h>

namespace kumi::device::udp {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t hello_version = 5;
/// Datagrams of this size pass nearly everywhere (RFC 8899, BASE_PLPMTU). Probes find out whether larger ones do.
constexpr std::uint32_t sure_path_bytes = 1200;
/// No process listens at this port, so a host that is alive answers with an ICMP message.
constexpr std::uint16_t closed_port = 1;
/// How long a closing channel waits for its messages to arrive.
constexpr Duration linger_max = 60s;
/// Receives of a closing channel that has not polled: enough for what a socket holds, and no more for a peer that never
/// ends to send.
constexpr std::uint64_t unread_receives_max = 1000;
/// This many receives in a row that find something are a stream.
constexpr unsigned stream_receives = 4;
/// Few large batches are received at a time, so that they stay in the caches.
constexpr std::size_t small_batch_bytes = 4096;
constexpr std::size_t large_batches_max = 4;
/// How often peers are checked for silence.
constexpr Duration look_for_silence_every = 100ms;
constexpr std::size_t message_bytes_all = std::size_t{256} << 20;
constexpr std::size_t message_bytes_most = std::size_t{16} << 20;
constexpr std::size_t message_bytes_least = std::size_t{64} << 10;

/// Grows by one every 16 ms, so a restarted node has a larger one.
std::uint32_t new_incarnation() noexcept {
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(wall).count() / 16);
}

bool carries_data(const reliable::Series& series) noexcept {
    reliable::PacketHeader header;
    std::memcpy(&header, series.packets[0].head, sizeof header);
    return (header.flags & reliable::flag::data) != 0;
}

std::size_t message_bytes_max(const Options& options, Node nodes) noexcept {
    if (options.message_bytes_max != 0) return options.message_bytes_max;
    return std::clamp(message_bytes_all / nodes, message_bytes_least, message_bytes_most);
}

reliable::EndpointOptions endpoint_options(const Options& options, Node self, Node nodes, const base::JobKeys& keys,
                                           std::uint32_t incarnation, std::size_t receive_bytes) {
    return {.self = self,
            .nodes = nodes,
            .token = keys.token,
            .incarnation = incarnation,
            // Encryption protects better than a checksum. KUMI_FAULT damages packets before UDP's checksum is computed.
            .checked = options.encrypt                                    ? reliable::Checked::nothing
                       : options.checks_all || options.faults.corrupt > 0 ? reliable::Checked::everything
                                                                          : reliable::Checked::heads,
            .message_bytes_max = message_bytes_max(options, nodes),
            .receive_bytes = receive_bytes,
            .silence_max = options.silence_max,
            .watch_every = options.watch_every,
            .has_alternatives = options.has_alternatives,
            .memory_wait_max = options.memory_wait_max};
}

} // namespace

// ---- opening and closing

Result<std::unique_ptr<UdpChannel>> UdpChannel::bind(const Options& options, Node self, Node nodes,
                                                     const base::JobKeys& keys) {
    auto local = Address::parse(options.address, options.port);
    if (!local) return error("udp: {}", local.error().text());
    if (local->is_any())
        return error("udp: other nodes cannot send to {}: use the address of one interface", options.address);
    auto socket = Socket::open(*local, options);
    if (!socket) return socket.error();
    base::Descriptor bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!bell) return system_error(errno, "making a descriptor to be woken by (eventfd)");
    std::unique_ptr<Seal> seal;
    if (options.encrypt) {
        auto made = Seal::make(options, keys, self);
        if (!made) return made.error();
        seal = *std::move(made);
    }
    std::unique_ptr<UdpChannel> channel(
        new UdpChannel(options, self, nodes, keys, *std::move(socket), std::move(bell), std::move(seal)));
    return channel;
}

UdpChannel::UdpChannel(const Options& options, Node self, Node nodes, const base::JobKeys& keys, Socket socket,
                       base::Descriptor bell, std::unique_ptr<Seal> seal)
    : options_(options), self_(self), nodes_(nodes), incarnation_(new_incarnation()), socket_(std::move(socket)),
      endpoint_(endpoint_options(options, self, nodes, keys, incarnation_, socket_.receive_buffer_bytes())),
      seal_(std::move(seal)), addresses_(nodes), sent_(nodes), no_memory_warned_(nodes), silences_(nodes),
      bell_(std::move(bell)) {
    if (options.faults.any()) {
        faults_.emplace(options.faults);
        faults_->seed(options.faults.seed + self); // different faults on each node
    }
    traits_ = {.device = "udp",
               .message_bytes_max = endpoint_.options().message_bytes_max,
               .bytes_per_peer_max = 2 * reliable::Endpoint::bytes_per_peer_max(endpoint_.options()),
               .latency_class_ns = 20'000,
               .bandwidth_class_mb = 1'000};
}

Hello UdpChannel::hello() const noexcept {
    const reliable::Introduction mine = endpoint_.introduction();
    return {.address = socket_.local().wire(),
            .incarnation = mine.incarnation,
            .credit_guaranteed = mine.credit_guaranteed,
            .encrypt = options_.encrypt ? 1u : 0u,
            .version = hello_version,
            .seal = seal_ != nullptr ? seal_->offer() : SealOffer{},
            .host = base::host_id().value_or(base::HostId{})};
}

Result<void> UdpChannel::meet(std::span<const Hello> hellos) {
    std::vector<SealOffer> offers;
    const base::HostId unknown{}, &own_host = hellos[self_].host;
    for (Node node = 0; node < nodes_; ++node) {
        const Hello& hello = hellos[node];
        if (hello.version != hello_version)
            return error("udp: node {} uses version {} of the protocol, this node version {}: use one version of Kumi",
                         node, hello.version, hello_version);
        if (hello.encrypt != (options_.encrypt ? 1u : 0u))
            return error("udp: node {} {} and this one {}: set encrypt alike on all nodes", node,
                         hello.encrypt != 0 ? "encrypts" : "does not encrypt", options_.encrypt ? "does" : "does not");
        if (!Address::from_wire(hello.address, addresses_[node]))
            return error("udp: node {} sent an address that is not valid", node);
        if (addresses_[node].family() != socket_.local().family())
            return error("udp: this node is at {} and node {} at {}: use IPv4 on all nodes, or IPv6",
                         socket_.local().host_text(), node, addresses_[node].host_text());
        const bool is_elsewhere = hello.host != own_host && hello.host != unknown && own_host != unknown;
        if (is_elsewhere && (addresses_[node].is_loopback() || socket_.local().is_loopback()))
            return error("udp: node {} at {} is on another host than this one at {}: set KUMI_UDP_ADDRESS to the "
                         "address of a network card on each host, or name the networks in a cluster file and do not "
                         "set KUMI_DEVICE",
                         node, addresses_[node].host_text(), socket_.local().host_text());
        const bool known =
            node > 0 && addresses_[node].host_text() == addresses_[node - 1].host_text() && node - 1 != self_;
        std::uint32_t packet_bytes = reliable::packet_bytes_max;
        if (known) {
            packet_bytes = endpoint_.path(node - 1).limit();
        } else if (node != self_) {
            auto path = socket_.path_bytes(addresses_[node]);
            if (!path) return path.error();
            packet_bytes = packet_bytes_for(*path);
        }
        const bool is_far = node != self_ && addresses_[node].host_text() != socket_.local().host_text() &&
                            !addresses_[node].is_loopback();
        const bool is_tried = is_far || (node != self_ && options_.faults.largest != 0);
        endpoint_.introduce(node, {hello.incarnation, hello.credit_guaranteed, packet_bytes,
                                   is_tried ? packet_bytes_for(sure_path_bytes) : reliable::packet_bytes_max});
        offers.push_back(hello.seal);
    }
    if (seal_ != nullptr) {
        seal_->meet(std::move(offers));
        sealed_.resize(reliable::Sender::series_max * seal_bytes + 2 * reliable::packet_bytes_max);
    }
    met_ = true;
    is_plain_ = seal_ == nullptr && !faults_;
    return {};
}

std::uint32_t UdpChannel::packet_bytes_for(std::uint32_t path_bytes) const noexcept {
    if (options_.packet_bytes_max != 0) path_bytes = std::min(path_bytes, options_.packet_bytes_max);
    const std::uint32_t room = path_bytes - std::min<std::uint32_t>(path_bytes, options_.encrypt ? seal_bytes : 0);
    return std::clamp(room & ~7u, reliable::packet_bytes_min, reliable::packet_bytes_max);
}

UdpChannel::~UdpChannel() {
    if (met_) linger();
}

/// Waits until messages have arrived at nodes that continue; then tells all peers that this node is leaving.
void UdpChannel::linger() noexcept {
    const auto forget = [](pm::Message&) {};
    const auto tell = [&](bool more) {
        while (endpoint_.next_farewell(series_, more)) put_on_wire(series_, now());
    };
    const Instant deadline = now() + linger_max;
    endpoint_.begin_close();
    flush();
    // A peer whose messages this node has not even looked at is told, too.
    for (std::uint64_t i = 0, before = receives_ + 1; i < unread_receives_max && before != receives_; ++i) {
        before = receives_;
        poll(forget, pm::all_messages);
    }
    while (!endpoint_.all_arrived() && now() < deadline) {
        tell(true); // peers that have all do not wait for those that do not
        if (poll(forget, pm::all_messages) == 0 && !endpoint_.all_arrived() && arm()) sleep(deadline);
    }
    if (faults_) faults_->flush([&](Node to, Bytes packet) { send_packet(to, packet); });
    for (const bool more : {true, false}) tell(more); // one may get lost; if both do, the closed port tells the peer
}

// ---- sending

pm::SendSlot UdpChannel::try_reserve(Node to, std::size_t bytes) noexcept {
    KUMI_ASSERT(to < nodes_ && bytes <= traits_.message_bytes_max);
    std::byte* const room = endpoint_.try_reserve(to, bytes);
    if (room != nullptr) return {to, MutableBytes(room, bytes)};
    note_refusal();
    return {};
}

void UdpChannel::commit(const pm::SendSlot& slot) noexcept {
    const Instant time = now();
    endpoint_.commit(slot.to(), slot.bytes().size(), time);
    count_sent(slot.to(), slot.bytes().size());
    if (endpoint_.has_ready()) transmit(time);
    if (is_slept_on_) [[unlikely]] update_sleeper();
}

void UdpChannel::cancel(const pm::SendSlot& slot) noexcept { endpoint_.cancel(slot.to()); }

bool UdpChannel::send(Node to, const Pieces& bytes) noexcept {
    KUMI_ASSERT(to < nodes_ && bytes.size() <= traits_.message_bytes_max);
    Instant time = now();
    if (is_plain_ && to != self_) {
        if (const Bytes packet = endpoint_.try_send_now(to, bytes, time); !packet.empty()) {
            count_sent(to, bytes.size());
            if (!socket_.send_plain(addresses_[to], packet)) [[unlikely]]
                endpoint_.on_not_sent(to);
            if (is_slept_on_) [[unlikely]] update_sleeper();
            return true;
        }
    }
    const auto leave = [&] { send_part(to, time = now()); };
    if (!endpoint_.try_send(to, bytes, time, leave)) return note_refusal(), false;
    count_sent(to, bytes.size());
    if (endpoint_.has_ready()) transmit(time);
    if (is_slept_on_) [[unlikely]] update_sleeper();
    return true;
}

/// Sends what is copied of a long message so far. Where nothing may leave, acknowledgements are taken in, which let
/// more leave. A packet with messages waits for poll().
void UdpChannel::send_part(Node to, Instant time) noexcept {
    const std::uint64_t before = endpoint_.counters(to).packets_sent;
    transmit(time);
    if (endpoint_.counters(to).packets_sent != before || polling_) return;
    if (batches_.empty() && !endpoint_.is_reading()) {
        batches_ = socket_.receive(1);
        batch_at_ = 0;
        receives_ += batches_.empty() ? 0 : 1;
    }
    while (!batches_.empty() && !endpoint_.is_reading()) feed(time);
    transmit(time);
}

void UdpChannel::flush() noexcept {
    endpoint_.flush();
    if (endpoint_.has_ready()) transmit(now());
    if (is_slept_on_) [[unlikely]] update_sleeper();
}

void UdpChannel::transmit(Instant time) noexcept {
    blocked_ = false;
    while (endpoint_.next_series(series_, time))
        if (!put_on_wire(series_, time)) {
            blocked_ = true;
            ++sends_blocked_;
            return;
        }
}

/// False if the socket's send buffer is full.
bool UdpChannel::put_on_wire(const reliable::Series& series, Instant time) noexcept {
    std::span<const Datagram> datagrams = seal_series(series, time);
    if (datagrams.empty()) return give_up_keyless(series, time), true;
    if (series.to == self_) pass_to_self(datagrams);
    else if (faults_) pass_through_faults(series.to, datagrams);
    else return send_packets(series, datagrams, time);
    endpoint_.on_sent(series, series.count, datagrams.size() > 1, time);
    return true;
}

/// The datagrams of the series, encrypted where needed. Empty if there is no key for the destination.
std::span<const Datagram> UdpChannel::seal_series(const reliable::Series& series, Instant time) noexcept {
    std::byte* at = sealed_.data();
    for (std::size_t i = 0; i < series.count; ++i) {
        const reliable::OutPacket& packet = series.packets[i];
        const Bytes head(packet.head, packet.head_bytes);
        if (seal_ == nullptr) {
            datagrams_[i] = {head, packet.body};
            continue;
        }
        const std::size_t bytes = seal_->close(series.to, head, packet.body, at, time);
        if (bytes == 0) return {};
        datagrams_[i] = {Bytes(at, bytes), {}};
        at += bytes;
    }
    return {datagrams_.data(), series.count};
}

void UdpChannel::give_up_keyless(const reliable::Series& series, Instant time) noexcept {
    base::log_warning("udp: cannot agree on a key with node {} at {}, so nothing is sent there: its public key is not "
                      "valid, or memory ran out",
                      series.to, addresses_[series.to].host_text());
    endpoint_.on_sent(series, series.count, false, time);
    endpoint_.give_up(series.to);
}

bool UdpChannel::send_packets(const reliable::Series& series, std::span<const Datagram> datagrams,
                              Instant time) noexcept {
    const Address& to = addresses_[series.to];
    const bool burst = datagrams.size() > 1 && socket_.has_bursts() && !series.is_retransmission;
    std::size_t count = datagrams.size();
    Socket::Sent sent = Socket::Sent::all;
    if (count == 1) sent = socket_.send(to, datagrams[0]);
    else if (burst) sent = socket_.send_burst(to, datagrams);
    else sent = socket_.send_each(to, datagrams, count);
    bursts_ += burst ? 1 : 0;
    switch (sent) {
    case Socket::Sent::all:
    case Socket::Sent::dropped: break;
    case Socket::Sent::blocked: return endpoint_.on_sent(series, 0, burst, time), false;
    case Socket::Sent::too_large: on_too_large(series.to, 0, time); break; // lost; retransmissions are fragmented
    case Socket::Sent::burst_refused:
        if (burst) {
            base::log_warning("udp: the system refuses to send bursts to {} (UDP_SEGMENT); going on without them",
                              to.host_text());
            socket_.stop_bursts();
        }
        break;
    case Socket::Sent::unreachable:
        // Nobody waits for an answer to a bare packet.
        if (carries_data(series) && !std::exchange(unreachable_warned_, true))
            base::log_warning("udp: cannot send from {} to {} at the moment (is the network up?); trying again",
                              socket_.local().host_text(), to.text());
        break;
    }
    endpoint_.on_sent(series, sent == Socket::Sent::all ? count : datagrams.size(), burst, time);
    if (socket_.has_errors()) take_errors(time);
    return true;
}

void UdpChannel::pass_to_self(std::span<const Datagram> datagrams) noexcept {
    try {
        for (const Datagram& datagram : datagrams) {
            std::vector<std::byte> packet;
            packet.reserve(datagram.head.size() + datagram.body.size());
            packet.insert(packet.end(), datagram.head.begin(), datagram.head.end());
            packet.insert(packet.end(), datagram.body.begin(), datagram.body.end());
            to_self_.push_back(std::move(packet));
        }
    } catch (const std::bad_alloc&) {
        // These packets are lost, and will be retransmitted.
    }
}

void UdpChannel::pass_through_faults(Node to, std::span<const Datagram> datagrams) {
    if (datagrams.size() > 1 && faults_->faults().burst_vanish && socket_.has_bursts()) {
        ++bursts_;
        return;
    }
    for (const Datagram& datagram : datagrams) {
        std::vector<std::byte> packet(datagram.head.begin(), datagram.head.end());
        packet.insert(packet.end(), datagram.body.begin(), datagram.body.end());
        faults_->pass(to, packet, [&](Node where, Bytes bytes) { send_packet(where, bytes); });
    }
}

// ---- receiving

std::size_t UdpChannel::poll(pm::Handler handler, std::size_t messages_max) noexcept {
    KUMI_ASSERT(!polling_); // a handler must not poll
    polling_ = true;
    const Instant time = now();
    endpoint_.flush();
    if (endpoint_.has_ready()) transmit(time);
    bool may_receive = batches_.empty(); // only once: another receive would delay an answer
    std::size_t handed_out = 0;
    reliable::Arrival arrival;
    while (handed_out < messages_max) {
        if (endpoint_.next_message(arrival, time)) {
            ++handed_out;
            deliver(arrival, handler);
        } else if (!feed(time)) {
            if (!std::exchange(may_receive, false)) break;
            batches_ = socket_.receive(receive_window_);
            batch_at_ = 0;
            receives_ += batches_.empty() ? 0 : 1;
            const bool full = batches_.size() == receive_window_;
            receives_in_a_row_ = full ? receives_in_a_row_ + 1 : 0;
            const std::size_t most = !batches_.empty() && batches_.front().size() > small_batch_bytes
                                         ? large_batches_max
                                         : Socket::batches_max;
            receive_window_ = receives_in_a_row_ < stream_receives ? 1 : std::min(receive_window_ * 2, most);
            if (batches_.empty() && to_self_.empty() && !endpoint_.is_stalled()) break;
        }
    }
    if (socket_.has_errors()) take_errors(time);
    if (faults_) faults_->flush([&](Node to, Bytes packet) { send_packet(to, packet); });
    if (endpoint_.has_ready()) transmit(time);
    if (time >= endpoint_.next_deadline()) {
        on_time(time);
        transmit(time);
    }
    if (silent_ > 0) [[unlikely]] look_for_silence(time); // an answer may have arrived and stopped all timers
    if (gone_handled_ != endpoint_.gone_count()) [[unlikely]] warn_of_no_memory();
    polling_ = false;
    if (is_slept_on_) [[unlikely]] update_sleeper();
    return handed_out;
}

/// Gives the next received datagram to the endpoint. False if there is none.
bool UdpChannel::feed(Instant time) noexcept {
    if (!to_self_.empty()) {
        from_self_ = std::move(to_self_.front());
        to_self_.pop_front();
        feed_packet(from_self_, time);
        return true;
    }
    if (batches_.empty()) return false;
    if (batches_.front().empty()) ++empty_; // of wake(), or of a stranger
    else batch_at_ += feed_packet(batches_.front().subspan(batch_at_), time);
    if (batch_at_ >= batches_.front().size()) {
        batches_ = batches_.subspan(1);
        batch_at_ = 0;
    }
    return true;
}

/// Returns the size of the first packet in `bytes`, or of all bytes if that is not known.
std::size_t UdpChannel::feed_packet(MutableBytes bytes, Instant time) noexcept {
    if (seal_ == nullptr) return endpoint_.on_packet(bytes, time);
    Bytes packet;
    switch (seal_->open(bytes, packet)) {
    case Seal::Opened::yes: endpoint_.on_packet(packet, time); return packet.size() + seal_bytes;
    case Seal::Opened::truncated: ++truncated_; break;
    case Seal::Opened::foreign: ++foreign_; break;
    case Seal::Opened::forged: ++forged_; break;
    case Seal::Opened::replayed: ++replayed_; return Seal::bytes_of_sealed(bytes);
    }
    return bytes.size();
}

void UdpChannel::deliver(reliable::Arrival& arrival, pm::Handler handler) noexcept {
    if (arrival.block == nullptr) {
        pm::Message message(arrival.source, arrival.bytes);
        return handler(message);
    }
    pm::Message message(arrival.source, arrival.bytes, this, reinterpret_cast<std::uintptr_t>(arrival.block));
    handler(message);
    if (!message.was_kept()) endpoint_.release(arrival.block);
}

void UdpChannel::release(std::uint64_t token) noexcept {
    endpoint_.release(reinterpret_cast<reliable::Block*>(static_cast<std::uintptr_t>(token)));
    wake(); // a message may have waited for the block
}

// ---- time, waiting

void UdpChannel::on_time(Instant time) noexcept {
    endpoint_.on_time(time);
    while (const auto narrow = endpoint_.next_narrow_path()) warn_of_narrow_path(*narrow);
    while (const auto silent = endpoint_.next_host_check())
        socket_.send(addresses_[*silent].with_port(closed_port), {});
    if (socket_.has_bursts())
        for (Node peer = 0; peer < nodes_; ++peer)
            if (peer != self_) check_bursts(peer);
    look_for_silence(time);
}

/// Where there are alternatives, the caller, which knows all of them, warns the user.
void UdpChannel::look_for_silence(Instant time) noexcept {
    if (options_.has_alternatives || time - looked_for_silence_ < look_for_silence_every) return;
    looked_for_silence_ = time;
    for (Node peer = 0; peer < nodes_; ++peer)
        if (peer != self_) warn_of_silence(peer, time);
}

/// Warns the user of a peer that does not answer, and reports when it answers again.
void UdpChannel::warn_of_silence(Node peer, Instant time) noexcept {
    const bool is_lost = lost(peer);
    pm::Silence& silence = silences_[peer];
    const auto news = silence.look(is_lost ? Duration{0} : endpoint_.unanswered(peer, time), time);
    if (news == pm::Silence::News::began) ++silent_;
    if (news == pm::Silence::News::ended) --silent_;
    if (news == pm::Silence::News::began)
        base::log_warning("udp: node {} at {} has not answered for {:.1f} s; waiting on", peer,
                          addresses_[peer].host_text(), silence.seconds(time));
    else if (news == pm::Silence::News::ended && !is_lost)
        base::log_warning("udp: node {} at {} answers again, after {:.1f} s", peer, addresses_[peer].host_text(),
                          silence.seconds(time));
}

/// Turns bursts off if they never arrive while single packets do: the offload of a card or virtual switch is broken.
void UdpChannel::check_bursts(Node peer) noexcept {
    constexpr unsigned losses_needed = 8;
    if (endpoint_.sender(peer).bursts_lost_alone() < losses_needed) return;
    base::log_warning(
        "udp: bursts to {} get lost although single packets arrive: an offload (UDP_SEGMENT) is broken; going on "
        "without bursts",
        addresses_[peer].host_text());
    socket_.stop_bursts();
}

/// Warns of peers that are gone because there was no memory, on this node or on theirs.
void UdpChannel::warn_of_no_memory() noexcept {
    gone_handled_ = endpoint_.gone_count();
    for (Node peer = 0; peer < nodes_; ++peer) {
        const reliable::Gone gone = endpoint_.gone(peer);
        const bool is_here = gone == reliable::Gone::no_memory_here;
        if (!is_here && gone != reliable::Gone::no_memory_there) continue;
        if (std::exchange(no_memory_warned_[peer], std::uint8_t{1}) != 0) continue;
        if (is_here)
            base::log_warning("udp: there has been no memory for a message of {} {} node {} at {} for {} s, so that "
                              "node is given up: this host needs more memory, or the job smaller messages",
                              base::readable_bytes(endpoint_.wanted_bytes(peer)),
                              endpoint_.wanted_for_sending(peer) ? "to" : "from", peer, addresses_[peer].host_text(),
                              endpoint_.options().memory_wait_max / 1s);
        else
            base::log_warning("udp: node {} at {} has no memory for a message, and has given this node up", peer,
                              addresses_[peer].host_text());
    }
}

bool UdpChannel::arm() noexcept {
    flush();
    if (!has_something_to_do()) return true;
    gone_seen_ = endpoint_.gone_count();
    refused_ = false;
    return false;
}

/// True if the caller must not sleep.
bool UdpChannel::has_something_to_do() const noexcept {
    if (gone_seen_ != endpoint_.gone_count()) return true; // a thread may wait for a node that is gone
    // A message that was refused may find room now: its sender must try again.
    if (refused_ && refused_at_ != endpoint_.rooms_made()) return true;
    return !batches_.empty() || !to_self_.empty() || endpoint_.is_reading();
}

void UdpChannel::sleep(Instant deadline) noexcept {
    deadline = std::min(deadline, endpoint_.next_deadline());
    // Sequentially consistent, as in wake(): either wake() sees that this thread sleeps, or this thread sees that
    // wake() was called.
    asleep_.store(Asleep::receiving);
    if (!woken_.exchange(false)) {
        if (blocked_ || endpoint_.next_ack_deadline() != never) {
            socket_.wait(deadline, blocked_);
        } else {
            batches_ = socket_.receive_by(deadline);
            receives_ += batches_.empty() ? 0 : 1;
        }
    }
    asleep_.store(Asleep::no);
    refused_ = false;
}

pm::Watched UdpChannel::begin_sleep() noexcept {
    asleep_.store(Asleep::watching); // sequentially consistent, as in sleep()
    const bool was_woken = woken_.exchange(false);
    watched_ = {.descriptor = socket_.descriptor(),
                .or_writable = blocked_,
                .bell = bell_.get(),
                .deadline = was_woken ? Instant::min() : endpoint_.next_deadline()};
    is_slept_on_ = true;
    return watched_;
}

void UdpChannel::end_sleep() noexcept {
    is_slept_on_ = false;
    asleep_.store(Asleep::no);
    woken_.exchange(false); // a wake() before this has ended this sleep
    refused_ = false;
    eventfd_t rings;
    if (rung_.exchange(false)) ::eventfd_read(bell_.get(), &rings);
}

/// Ends the sleep of another thread if it watches too little: this thread has used the channel, and there may be an
/// earlier deadline or something to do.
void UdpChannel::update_sleeper() noexcept {
    if (polling_) return; // poll() calls this again at its end
    const bool sees_all = endpoint_.next_deadline() >= watched_.deadline && (watched_.or_writable || !blocked_);
    if (sees_all && !has_something_to_do()) return;
    is_slept_on_ = false;
    ring();
}

/// May be called from any thread.
void UdpChannel::ring() noexcept {
    ::eventfd_write(bell_.get(), 1);
    rung_.store(true); // after the write: a thread that sees the flag can always reset the bell
}

void UdpChannel::wake() noexcept {
    woken_.store(true);
    const Asleep asleep = asleep_.load();
    // An empty datagram to itself ends a sleep, so a sleep is one plain receive, which has the lowest latency. Relaxed:
    // only a count.
    if (asleep == Asleep::receiving) nudges_.fetch_add(1, std::memory_order_relaxed), socket_.nudge();
    if (asleep == Asleep::watching) ring();
}

// ---- what the path says

void UdpChannel::take_errors(Instant time) noexcept {
    constexpr int errors_max = 64; // at a time
    PathError said;
    for (int i = 0; i < errors_max && socket_.next_error(said); ++i) {
        const bool about_host = said.error_number == ECONNREFUSED && said.destination.port() == closed_port;
        for (Node peer = 0; peer < nodes_; ++peer) {
            if (about_host && said.destination == addresses_[peer].with_port(closed_port))
                endpoint_.on_host_alive(peer);
            else if (!(said.destination == addresses_[peer])) continue;
            else if (said.error_number == ECONNREFUSED) endpoint_.on_refused(peer, time);
            else if (said.error_number == EMSGSIZE) on_too_large(peer, said.packet_bytes_max, time);
        }
    }
}

/// The path carries less than before. New packets are made smaller; those that already have a sequence are fragmented.
void UdpChannel::on_too_large(Node peer, std::uint32_t path_bytes, Instant time) noexcept {
    if (path_bytes == 0) {
        const auto path = socket_.path_bytes(addresses_[peer]);
        if (!path) return; // losses will show it
        path_bytes = *path;
    }
    const std::uint32_t before = endpoint_.path(peer).limit();
    const std::uint32_t bytes = std::min(before, packet_bytes_for(path_bytes));
    if (bytes == before) return;
    base::log_debug("udp: packets to node {} shrink from {} to {} bytes", peer, before, bytes);
    endpoint_.set_packet_bytes(peer, bytes, time);
}

void UdpChannel::warn_of_narrow_path(Node peer) noexcept {
    const reliable::PathSize& path = endpoint_.path(peer);
    const std::uint32_t seal = options_.encrypt ? seal_bytes : 0;
    const std::string text = fmt::format("udp: from {} to node {} at {} only packets of up to {} bytes arrive, and the "
                                         "hosts send up to {}: a switch between them "
                                         "carries less than the MTU of the hosts; going on with smaller packets",
                                         socket_.local().host_text(), peer, addresses_[peer].host_text(),
                                         path.bytes() + seal, path.limit() + seal);
    base::log_line(std::exchange(narrow_path_warned_, true) ? base::Severity::debug : base::Severity::warning, text);
}

// ---- counters

std::vector<pm::Counter> UdpChannel::counters() const {
    std::vector<pm::Counter> all{{"receives", receives_},           {"bursts_sent", bursts_},
                                 {"sends_blocked", sends_blocked_}, {"sends_unreachable", socket_.unreachables()},
                                 {"sends_dropped", socket_.drops()},     {"receive_overruns", socket_.overruns()}};
    for (std::size_t i = 0; i < reliable::drop_causes; ++i) {
        const auto cause = static_cast<reliable::Drop>(i);
        std::uint64_t count = endpoint_.drops().of(cause);
        if (cause == reliable::Drop::truncated) count += truncated_;
        if (cause == reliable::Drop::foreign) count += foreign_;
        all.push_back({name_of(cause), count});
    }
    const std::uint64_t nudges = nudges_.load(std::memory_order_relaxed);
    all.push_back({"dropped_empty", empty_ > nudges ? empty_ - nudges : 0});
    all.push_back({"dropped_forged", forged_});
    all.push_back({"dropped_replayed", replayed_});
    return all;
}

std::vector<pm::Counter> UdpChannel::counters(Node peer) const {
    const reliable::PeerCounters& counted = endpoint_.counters(peer);
    return {{"packets_sent", counted.packets_sent},         {"bytes_sent", counted.bytes_sent},
            {"packets_received", counted.packets_received}, {"bytes_received", counted.bytes_received},
            {"repairs_sent", counted.repairs_sent},         {"repairs_needless", counted.repairs_needless},
            {"repairs_asked", counted.repairs_asked},       {"timeouts", counted.timeouts},
            {"bare_acks_sent", counted.bare_acks_sent},     {"duplicates", counted.duplicates},
            {"overtaken", counted.overtaken},               {"congested", counted.congested}};
}

} // namespace kumi::device::udp
