#include "kumi/reliable/sender.hpp"

#include "kumi/base/assert.hpp"
#include "kumi/reliable/credits.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace kumi::reliable {
namespace {

using namespace std::chrono_literals;

/// Damage to a piece is damage to one message. Starts say where pieces lie, so all of their packet is checked.
bool holds_piece(const Block& block) noexcept { return block.is_long && !block.is_starts; }

constexpr std::size_t slots_at_first = 64;
constexpr std::uint32_t overtaking_max = 256;
/// After this many arrivals overtaking_ is reduced.
constexpr std::uint32_t arrivals_per_easing = 512;

} // namespace

Sender::Sender(BlockPool& pool, const SenderOptions& options, PeerCounters& counters)
    : pool_(pool), options_(options), counters_(counters), first_(options.first_sequence), unsent_(first_),
      next_(first_), fragmented_(options.first_sequence - 1), weight_sent_(options.first_sequence),
      credit_(options.first_sequence + options.credit_guaranteed), congestion_(options.first_sequence),
      latest_(options.first_sequence) {
    set_packet_bytes(options.packet_bytes);
}

Sender::~Sender() {
    if (reserved_ != nullptr) cancel();
    clear();
}

void Sender::set_packet_bytes(std::uint32_t bytes) noexcept {
    KUMI_ASSERT(bytes >= packet_bytes_min && bytes <= packet_bytes_max && bytes % 8 == 0);
    options_.packet_bytes = bytes;
    packed_bytes_max_ = std::min<std::size_t>(bytes, packed_bytes_most);
    fragmented_bytes_ = 0; // fragments of different sizes cannot be reassembled
}

// ---- messages in

Block* Sender::take(std::size_t bytes) noexcept {
    // The first slots must exist before the first message is accepted.
    Block* const block = slots_.empty() && !grow_slots() ? nullptr : pool_.take(bytes);
    if (block == nullptr) return found_no_memory_ = true, nullptr;
    queue_bytes_ += block->capacity();
    return block;
}

void Sender::give_back(Block* block) noexcept {
    if (!block->is_starts) queue_bytes_ -= block->capacity();
    pool_.give_back(block);
}

std::byte* Sender::try_reserve(std::size_t bytes) noexcept {
    KUMI_ASSERT(reserved_ == nullptr);
    if (!has_room(bytes)) return nullptr;
    reserved_ = take(padded(bytes));
    return reserved_ == nullptr ? nullptr : reserved_->data();
}

void Sender::commit(std::size_t bytes) noexcept {
    Block* const block = reserved_;
    KUMI_ASSERT(block != nullptr);
    reserved_ = nullptr;
    if (bytes <= append_bytes_max()) { // has room for certain: the reservation holds it
        if (!fits_open_packet(bytes)) close_open_packet();
        if (append(Bytes(block->data(), bytes))) return give_back(block);
    }
    std::memset(block->data() + bytes, 0, padded(bytes) - bytes);
    block->bytes = static_cast<std::uint32_t>(bytes);
    close_open_packet();
    queue_.push(block);
}

void Sender::cancel() noexcept {
    KUMI_ASSERT(reserved_ != nullptr);
    give_back(reserved_);
    reserved_ = nullptr;
}

bool Sender::try_append(const Pieces& message) noexcept {
    if (!fits_open_packet(message.size())) {
        close_open_packet();
        if (!has_room(packed_bytes_max_)) return false;
    }
    return append(message);
}

/// Adds the message to the open packet, or to a new one if there is none. False if the system has no memory.
bool Sender::append(const Pieces& message) noexcept {
    if (open_ == nullptr) {
        open_ = take(packed_bytes_max_);
        if (open_ == nullptr) return false;
        open_->stride = static_cast<std::uint32_t>(packed_bytes_max_);
        open_->bytes = sizeof(PacketHeader);
    }
    write_record(open_->data() + open_->bytes, message);
    open_->bytes += static_cast<std::uint32_t>(record_bytes(message.size()));
    return true;
}

bool Sender::try_append_long(const Pieces& message, base::FunctionRef<void()> on_part) noexcept {
    const std::uint32_t stride = options_.packet_bytes; // on_part() may change it for later messages
    const std::size_t piece_max = stride - piece_head_bytes;
    const std::size_t pieces = (message.size() + piece_max - 1) / piece_max;
    const std::size_t bytes = padded(message.size()) + pieces * piece_head_bytes;
    if (!has_room(bytes)) return false;
    Block* const block = take(bytes);
    if (block == nullptr) return false;
    block->bytes = block->unfilled = static_cast<std::uint32_t>(bytes);
    block->stride = stride;
    block->is_long = true;
    close_open_packet();
    queue_.push(block);
    filling_ = block;
    const std::size_t packets_of_part = std::max<std::size_t>(1, series_bytes_max / stride);
    std::size_t packets = 0;
    std::byte* at = block->data();
    for (std::size_t offset = 0; offset < message.size(); offset += piece_max, at += stride, ++packets) {
        if (packets == packets_of_part) {
            packets = 0;
            on_part();
            if (filling_ != block) return true; // the peer is gone, and the block with it
        }
        const RecordHeader record{static_cast<std::uint32_t>(message.size()), static_cast<std::uint32_t>(offset)};
        const std::size_t piece = std::min(piece_max, message.size() - offset);
        std::memcpy(at + sizeof(PacketHeader), &record, sizeof record);
        std::memset(at + piece_head_bytes + padded(piece) - 8, 0, 8); // the padding
        message.copy_part(at + piece_head_bytes, offset, piece);
        block->unfilled -= static_cast<std::uint32_t>(piece_head_bytes + padded(piece));
    }
    filling_ = nullptr;
    return true;
}

void Sender::close_open_packet() noexcept {
    if (open_ == nullptr) return;
    queue_.push(open_);
    open_ = nullptr;
}

// ---- packets out

bool Sender::grow_slots() noexcept {
    if (slots_.size() >= options_.window_packets_max) return false;
    const std::size_t count =
        slots_.empty() ? std::min<std::size_t>(slots_at_first, options_.window_packets_max) : slots_.size() * 2;
    std::vector<Slot> more;
    try {
        more.resize(count);
    } catch (const std::bad_alloc&) {
        return false; // then fewer packets are under way at once
    }
    for (Sequence i = first_; i != next_; ++i) more[i & (more.size() - 1)] = slot(i);
    slots_ = std::move(more);
    slots_mask_ = static_cast<Sequence>(slots_.size() - 1);
    return true;
}

/// Cuts the next packet from the queue and gives it a sequence.
bool Sender::cut() noexcept {
    if (queue_.empty() || queue_.front()->cut + queue_.front()->unfilled == queue_.front()->bytes) return false;
    if (next_ - first_ == slots_.size() && !grow_slots()) return false;
    Block* const block = queue_.front();
    Slot& cut = slot(next_);
    cut = Slot{.block = block, .offset = block->cut, .bytes = 0, .sent_at = {}, .transmission = 0, .ends_block = false,
               .arrived = false, .lost = false, .retransmitted = false, .in_burst = false,
               .is_started = false};
    if (block->stride != 0) {
        cut.bytes = std::min(block->bytes - block->cut, block->stride);
        block->cut += cut.bytes;
    } else if (block->started != 0) {
        --block->started;
        cut.is_started = true;
        cut.offset = block->cut + start_bytes;
        cut.bytes = block->started_stride;
        block->cut += block->started_stride;
    } else if (cut_starts(*block)) {
        return true;
    } else {
        const std::uint32_t piece =
            std::min(block->bytes - block->cut, options_.packet_bytes - static_cast<std::uint32_t>(piece_head_bytes));
        block->cut += piece;
        cut.bytes = static_cast<std::uint32_t>(piece_head_bytes + padded(piece));
    }
    cut.ends_block = block->cut == block->bytes;
    if (cut.ends_block) queue_.pop();
    ++next_;
    return true;
}

/// How many packets like the one that was just prepared may follow it in the series: further pieces of its size, of the
/// same message. The message's last piece does not count, which is smaller, or ends its block.
std::uint32_t Sender::count_alike(const Slot& last, Instant now) const noexcept {
    const Block& block = *last.block;
    const bool is_strided = holds_piece(block) && last.bytes == block.stride;
    if (!(is_strided || last.is_started) || last.ends_block || next_ - unsent_ != prepared_whole_) return 0;
    const std::uint64_t under_way = under_way_bytes_ + prepared_bytes_;
    const std::uint32_t weight = weight_sent_ + prepared_weight_, limit = credit_limit(now);
    if (under_way >= congestion_.window_bytes() || !is_before(weight, limit)) return 0;
    const std::size_t filled = block.bytes - block.unfilled - block.cut;
    const std::size_t pieces = filled == 0 ? 0 : (filled - 1) / last.bytes;
    const std::size_t with_starts = is_strided ? pieces : block.started;
    const std::size_t free_slots = slots_.size() - (next_ - first_);
    const std::size_t in_credit = (limit - weight) / weight_of(last.bytes);
    const std::size_t in_window = (congestion_.window_bytes() - under_way) / last.bytes;
    return static_cast<std::uint32_t>(
        std::min({pieces, with_starts, free_slots, in_credit, in_window, series_max - prepared_count_}));
}

/// Cuts the next packet of those that count_alike() has counted.
void Sender::cut_alike() noexcept {
    const Slot& last = slot(next_ - 1);
    Slot& cut = slot(next_++);
    cut = last;
    cut.offset += last.bytes;
    cut.block->cut += last.bytes;
    if (last.is_started) --cut.block->started;
    --alike_;
}

/// Cuts a packet, in a block of its own, with the starts of the next pieces of a message that was filled in place.
/// False: that is not worth it, or the system has no memory.
bool Sender::cut_starts(Block& message) noexcept {
    const std::uint32_t stride = options_.packet_bytes;
    if (stride < started_packet_min || stride > started_packet_max) return false;
    const std::uint32_t count = std::min((message.bytes - message.cut) / stride, starts_max(stride));
    if (count < starts_min) return false;
    Block* const block = pool_.take(stride);
    if (block == nullptr) return false;
    block->is_long = block->is_starts = true;
    block->bytes = block->cut = block->stride = stride;
    const RecordHeader record{message.bytes, message.cut + starts_mark};
    const StartsHeader starts{stride, count};
    std::byte* at = block->data() + sizeof(PacketHeader);
    std::memcpy(at, &record, sizeof record);
    std::memcpy(at + sizeof record, &starts, sizeof starts);
    at += sizeof record + sizeof starts;
    for (std::uint32_t i = 0; i < count; ++i, at += start_bytes)
        std::memcpy(at, message.data() + message.cut + std::size_t{i} * stride, start_bytes);
    std::memset(at, 0, static_cast<std::size_t>(block->data() + stride - at));
    message.started = count;
    message.started_stride = stride;
    Slot& cut = slot(next_++);
    cut.block = block;
    cut.offset = 0;
    cut.bytes = stride;
    cut.ends_block = true;
    return true;
}

std::uint32_t Sender::credit_limit(Instant now) const noexcept {
    const std::uint32_t guaranteed_limit = weight_sent_ + options_.credit_guaranteed;
    const bool quiet = first_ == unsent_ && now - last_sent_ > CreditPool::quiet_sender;
    return quiet && is_before(guaranteed_limit, credit_) ? guaranteed_limit : credit_;
}

bool Sender::may_leave_next(Instant now) noexcept {
    const Sequence sequence = unsent_ + static_cast<Sequence>(prepared_retransmits_ ? 0 : prepared_whole_);
    if (sequence == next_ && !cut()) return false;
    const Slot& next = slot(sequence);
    const std::uint64_t under_way = under_way_bytes_ + prepared_bytes_;
    if (under_way != 0 && under_way + next.bytes > congestion_.window_bytes()) return false;
    if (congestion_.paced_until() > now) return false;
    const std::uint32_t line = weight_sent_ + prepared_weight_ + weight_of(next.bytes);
    if (!is_before(credit_limit(now), line)) return true;
    // No packet is under way whose acknowledgement could bring credit: ask for it after a while.
    if (first_ == unsent_ && prepared_count_ == 0 && timeout_deadline_ == never)
        timeout_deadline_ = now + round_trip_.timeout(tries_);
    return false;
}

bool Sender::next_packet(std::size_t room, Instant now, PacketHeader& header, OutPacket& packet,
                         Heads& heads) noexcept {
    if (prepared_count_ == 0) prepared_retransmits_ = repairs_ != 0;
    if (prepared_count_ == series_max) return false;
    std::byte* const head_memory = heads[prepared_count_];
    Sequence sequence = unsent_ + static_cast<Sequence>(prepared_whole_);
    if (alike_ != 0) {
        cut_alike();
    } else if (prepared_count_ != 0 && prepared_[prepared_count_ - 1].fragment_end != 0) {
        sequence = prepared_[prepared_count_ - 1].sequence;
    } else if (prepared_retransmits_) {
        if (prepared_whole_ == repairs_) return false;
        sequence = prepared_count_ == 0 ? first_ : prepared_[prepared_count_ - 1].sequence + 1;
        while (!slot(sequence).lost) ++sequence;
    } else if (!may_leave_next(now)) {
        return false;
    }
    const Slot& next = slot(sequence);
    std::uint32_t fragment_end = 0;
    if (next.bytes > options_.packet_bytes) [[unlikely]] {
        fragment_end = describe_fragment(sequence, room, header, packet, head_memory);
        if (fragment_end == 0) return false;
        if (fragment_end == next.bytes - sizeof(PacketHeader)) fragment_end = 0;
    } else {
        if (next.bytes > room) return false;
        describe(sequence, header, packet, head_memory);
    }
    if (prepared_retransmits_ && tries_ != 0) header.flags |= flag::ack_now;
    const bool lends_start = next.is_started && packet.head != head_memory;
    if (lends_start) kept_ = &heads;
    prepared_[prepared_count_++] = {sequence, static_cast<std::uint16_t>(fragment_end), lends_start};
    if (fragment_end != 0) return true;
    ++prepared_whole_;
    prepared_bytes_ += next.bytes;
    prepared_weight_ += weight_of(next.bytes);
    if (prepared_retransmits_) return true;
    if (alike_ == 0) alike_ = count_alike(next, now);
    const std::uint32_t since = bytes_since_ack_request_ + prepared_bytes_ - prepared_ack_requests_;
    const std::uint32_t often = bytes_per_ack_request();
    if (since < often) return true;
    prepared_ack_requests_ += since - since % often;
    header.flags |= flag::ack_now;
    return true;
}

void Sender::describe(Sequence sequence, PacketHeader& header, OutPacket& packet, std::byte* head_memory) noexcept {
    const Slot& which = slot(sequence);
    header.sequence = sequence;
    header.flags = static_cast<std::uint8_t>(flag::data | (which.lost ? flag::retransmission : 0));
    header.bytes = static_cast<std::uint16_t>(which.bytes);
    if (which.block->stride != 0) {
        packet = {which.block->data() + which.offset, which.bytes, {}, holds_piece(*which.block)};
        return;
    }
    const RecordHeader record{which.block->bytes, which.offset};
    std::byte* const content = which.block->data() + which.offset;
    if (which.is_started && !prepared_retransmits_) {
        std::byte* const start = content - start_bytes;
        std::memcpy(head_memory, start, start_bytes); // until put_starts_back()
        std::memcpy(start + sizeof(PacketHeader), &record, sizeof record);
        packet = {start, which.bytes, {}, true};
        return;
    }
    std::memcpy(head_memory + sizeof(PacketHeader), &record, sizeof record);
    packet = {head_memory, piece_head_bytes, Bytes(content, which.bytes - piece_head_bytes), true};
}

void Sender::put_starts_back() noexcept {
    for (std::size_t i = 0; i < prepared_count_; ++i) {
        if (!prepared_[i].lends_start) continue;
        const Slot& which = slot(prepared_[i].sequence);
        std::memcpy(which.block->data() + which.offset - start_bytes, (*kept_)[i], start_bytes);
    }
    kept_ = nullptr;
}

/// True while a packet that was sent in fragments is under way. The peer reassembles one packet at a time.
bool Sender::is_fragmented_under_way() const noexcept {
    if (is_before(fragmented_, first_) || !is_before(fragmented_, unsent_)) return false;
    const Slot& sent = slot(fragmented_);
    return !sent.arrived && !sent.lost;
}

/// Prepares the next fragment, if it may be sent and fits into `room`. Returns where it ends in the packet's records,
/// or 0.
std::uint32_t Sender::describe_fragment(Sequence sequence, std::size_t room, PacketHeader& header, OutPacket& packet,
                                    std::byte* head_memory) noexcept {
    const Slot& which = slot(sequence);
    const bool goes_on = prepared_count_ != 0 && prepared_[prepared_count_ - 1].sequence == sequence;
    if (!goes_on && (prepared_count_ != 0 || is_fragmented_under_way())) return 0;
    const auto stride = static_cast<std::uint16_t>(options_.packet_bytes - piece_head_bytes);
    const std::uint32_t already_sent = fragmented_ == sequence ? fragmented_bytes_ : 0;
    std::uint32_t from = goes_on ? prepared_[prepared_count_ - 1].fragment_end : already_sent;
    if (from % stride != 0) from = 0; // the fragments before it had another size
    const FragmentHeader part{static_cast<std::uint16_t>(which.bytes - sizeof(PacketHeader)), stride, from};
    const std::uint32_t bytes = std::min<std::uint32_t>(part.bytes - from, stride);
    const bool is_last = from + bytes == part.bytes;
    if (piece_head_bytes + bytes > room) return 0;
    header.sequence = sequence;
    header.flags = static_cast<std::uint8_t>(flag::data | flag::fragment | (which.lost ? flag::retransmission : 0) |
                                             (is_last ? flag::ack_now : 0));
    header.bytes = static_cast<std::uint16_t>(piece_head_bytes + bytes);
    std::memcpy(head_memory + sizeof(PacketHeader), &part, sizeof part);
    std::byte* const content = which.block->data() + which.offset;
    if (which.block->stride != 0) {
        packet = {head_memory, piece_head_bytes, Bytes(content + sizeof(PacketHeader) + from, bytes),
                  holds_piece(*which.block)};
    } else if (from != 0) {
        packet = {head_memory, piece_head_bytes, Bytes(content + from - sizeof(RecordHeader), bytes), true};
    } else { // the record's header is not in the block
        constexpr std::size_t copied = head_bytes_max - piece_head_bytes - sizeof(RecordHeader);
        const RecordHeader record{which.block->bytes, which.offset};
        std::memcpy(head_memory + piece_head_bytes, &record, sizeof record);
        std::memcpy(head_memory + piece_head_bytes + sizeof record, content, copied);
        packet = {head_memory, head_bytes_max, Bytes(content + copied, bytes - sizeof record - copied), true};
    }
    return from + bytes;
}

void Sender::on_sent(std::size_t count, Sequence transmission, bool in_burst, Instant now) noexcept {
    if (!prepared_retransmits_) credit_ = credit_limit(now);
    std::uint32_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (prepared_[i].fragment_end != 0) [[unlikely]] {
            fragmented_ = prepared_[i].sequence;
            fragmented_bytes_ = prepared_[i].fragment_end;
            continue;
        }
        if (fragmented_ == prepared_[i].sequence) fragmented_bytes_ = 0;
        Slot& sent = slot(prepared_[i].sequence);
        sent.sent_at = now;
        sent.transmission = transmission + static_cast<Sequence>(i);
        bytes += sent.bytes;
        if (prepared_retransmits_) {
            sent.lost = false;
            sent.retransmitted = true;
            --repairs_;
            ++counters_.repairs_sent;
            continue;
        }
        sent.in_burst = in_burst;
        weight_sent_ += weight_of(sent.bytes);
        ++unsent_;
    }
    under_way_bytes_ += bytes;
    bytes_since_ack_request_ = (bytes_since_ack_request_ + bytes) % bytes_per_ack_request();
    congestion_.on_sent(bytes, now, round_trip_);
    forget_prepared();
    last_sent_ = now;
    if (timeout_deadline_ == never) timeout_deadline_ = now + round_trip_.timeout(tries_);
}

std::byte* Sender::send_alone(std::uint32_t packet_bytes, Sequence transmission, Instant now) noexcept {
    const bool alone = idle() && !slots_.empty() && congestion_.paced_until() <= now;
    if (!alone || queue_bytes_ != 0 || is_before(credit_limit(now), weight_sent_ + weight_of(packet_bytes)))
        return nullptr;
    Block* const block = take(packet_bytes);
    if (block == nullptr) return nullptr;
    credit_ = credit_limit(now);
    block->bytes = block->cut = block->stride = packet_bytes;
    slot(next_) = Slot{.block = block,
                       .offset = 0,
                       .bytes = packet_bytes,
                       .sent_at = now,
                       .transmission = transmission,
                       .ends_block = true,
                       .arrived = false,
                       .lost = false,
                       .retransmitted = false,
                       .in_burst = false,
                       .is_started = false};
    unsent_ = ++next_;
    under_way_bytes_ += packet_bytes;
    weight_sent_ += weight_of(packet_bytes);
    last_sent_ = now;
    timeout_deadline_ = now + round_trip_.timeout(tries_);
    return block->data();
}

// ---- acknowledgements in

void Sender::tolerate_overtaking() noexcept {
    overtaking_ = std::min(overtaking_ * 2 + 4, overtaking_max);
    arrivals_ = 0;
}

std::uint32_t Sender::on_arrived(Slot& arrived, const PacketHeader& header, Instant now) noexcept {
    arrived.arrived = true;
    if (arrived.lost) { // marked as lost, but it was only late
        arrived.lost = false;
        --repairs_;
        tolerate_overtaking();
    } else {
        under_way_bytes_ -= arrived.bytes;
    }
    // the first transmission arrived, not the repair
    if (arrived.retransmitted && is_before(header.latest, arrived.transmission)) {
        ++counters_.repairs_needless;
        tolerate_overtaking();
    }
    if (arrived.transmission == header.latest) {
        const Duration sample = now - arrived.sent_at - std::chrono::microseconds(header.held_us);
        if (sample > Duration{0}) {
            round_trip_.on_sample(sample);
            congestion_.on_sample(sample);
        }
    }
    if (arrived.in_burst && !arrived.retransmitted) burst_arrived_ = true, bursts_lost_alone_ = 0;
    else if (std::exchange(burst_lost_, false) && !burst_arrived_) ++bursts_lost_alone_;
    if (++arrivals_ % arrivals_per_easing == 0 && overtaking_ != 0) overtaking_ -= overtaking_ / 8 + 1;
    return arrived.bytes;
}

bool Sender::on_news(const PacketHeader& header, Bytes words, Sequence next_transmission, Instant now) noexcept {
    if (is_before(unsent_, header.expected) || !is_before(header.latest, next_transmission)) return false;
    if (is_before(credit_, header.credit)) {
        credit_ = header.credit;
        if (first_ == unsent_) timeout_deadline_ = never, tries_ = 0; // there is credit now: no need to ask for it
    }
    const bool later = is_before(latest_, header.latest);
    if (later) latest_ = header.latest, silent_tries_ = 0;
    std::uint32_t bytes = 0;
    bool sound = true;
    for (; is_before(first_, header.expected); ++first_) {
        Slot& done = slot(first_);
        if (done.arrived) --arrived_ahead_;
        else bytes += on_arrived(done, header, now);
        if (done.ends_block) give_back(done.block);
    }
    for (std::size_t i = 0; sound && i < words.size() / 8; ++i) {
        std::uint64_t word = 0;
        std::memcpy(&word, words.data() + i * 8, sizeof word);
        for (; word != 0; word &= word - 1) {
            const Sequence sequence =
                header.expected + 1 + static_cast<Sequence>(i * 64) + static_cast<Sequence>(std::countr_zero(word));
            if (!is_before(sequence, unsent_)) {
                sound = false;
                break;
            }
            if (is_before(sequence, first_) || slot(sequence).arrived) continue;
            ++arrived_ahead_;
            bytes += on_arrived(slot(sequence), header, now);
        }
    }
    // The first packet cannot have arrived behind itself; a peer that says so is believed.
    for (; first_ != unsent_ && slot(first_).arrived; ++first_) {
        --arrived_ahead_;
        if (slot(first_).ends_block) give_back(slot(first_).block);
    }
    if (bytes == 0) {
        if (later) find_lost(overtaking_, now);
        return sound;
    }
    if (congestion_.on_arrived(bytes, latest_, next_transmission, round_trip_)) ++counters_.congested;
    tries_ = 0;
    timeout_deadline_ = first_ == unsent_ ? never : now + round_trip_.timeout(0);
    find_lost(overtaking_, now);
    return sound;
}

void Sender::find_lost(std::uint32_t overtaking, Instant now) noexcept {
    suspect_deadline_ = never;
    if (first_ == unsent_) return;
    if (arrived_ahead_ == 0 && !is_before(slot(first_).transmission, latest_)) return; // no packet was overtaken
    for (Sequence i = first_; i != unsent_; ++i) {
        Slot& candidate = slot(i);
        if (candidate.arrived || candidate.lost || !is_before(candidate.transmission, latest_)) continue;
        if (is_before(candidate.transmission + overtaking, latest_)) mark_lost(candidate);
        else suspect_deadline_ = now + std::max<Duration>(round_trip_.smooth() / 2, 100us);
    }
}

void Sender::mark_lost(Slot& lost) noexcept {
    lost.lost = true;
    ++repairs_;
    under_way_bytes_ -= lost.bytes;
    congestion_.on_lost(lost.bytes);
    if (lost.in_burst && !lost.retransmitted) burst_lost_ = true;
}

// ---- time

Instant Sender::deadline(Instant now) const noexcept {
    Instant next = std::min(suspect_deadline_, timeout_deadline_);
    if (has_closed() && congestion_.paced_until() > now) next = std::min(next, congestion_.paced_until());
    return next;
}

bool Sender::on_time(Instant now) noexcept {
    if (now >= suspect_deadline_) find_lost(0, now);
    if (now < timeout_deadline_) return false;
    timeout_deadline_ = never;
    if (!waits_for_peer()) return false;
    ++tries_;
    ++counters_.timeouts;
    if (++silent_tries_ >= 3) congestion_.on_silence();
    timeout_deadline_ = now + round_trip_.timeout(tries_);
    if (first_ == unsent_) return true; // only credit is missing
    if (!slot(first_).lost) mark_lost(slot(first_));
    // the first one waits for it, if it is too large as well
    else if (is_fragmented_under_way()) mark_lost(slot(fragmented_));
    return false;
}

namespace {

/// Calls `what` with each message of a block.
void each_message(Block& block, base::FunctionRef<void(Bytes)> what) {
    if (block.stride == 0) return what(Bytes(block.data(), block.bytes));
    if (!block.is_long) {
        for (std::size_t at = sizeof(PacketHeader); at < block.bytes;) {
            RecordHeader record;
            std::memcpy(&record, block.data() + at, sizeof record);
            what(Bytes(block.data() + at + sizeof record, record.bytes));
            at += record_bytes(record.bytes);
        }
        return;
    }
    std::vector<std::byte> message;
    for (std::size_t at = 0; at < block.bytes; at += block.stride) {
        RecordHeader record;
        std::memcpy(&record, block.data() + at + sizeof(PacketHeader), sizeof record);
        const std::size_t piece = std::min<std::size_t>(block.stride - piece_head_bytes, record.bytes - record.offset);
        message.insert(message.end(), block.data() + at + piece_head_bytes,
                       block.data() + at + piece_head_bytes + piece);
    }
    what(message);
}

} // namespace

void Sender::each_unarrived(base::FunctionRef<void(Bytes)> what) const {
    const Block* last = nullptr; // a block may have several slots, and be in the queue as well
    const auto look_at = [&](Block* block) {
        if (block->is_starts) return; // they are part of the message around them
        if (block != last) each_message(*block, what);
        last = block;
    };
    for (Sequence i = first_; i != next_; ++i) look_at(slot(i).block);
    for (Block* block = queue_.front(); block != nullptr; block = block->next) look_at(block);
    if (open_ != nullptr) look_at(open_);
}

void Sender::clear() noexcept {
    kept_ = nullptr; // no starts are put back: the messages go
    forget_prepared();
    filling_ = nullptr;
    for (; first_ != next_; ++first_)
        if (slot(first_).ends_block) give_back(slot(first_).block);
    unsent_ = next_;
    close_open_packet();
    while (!queue_.empty()) give_back(queue_.pop());
    repairs_ = arrived_ahead_ = 0;
    under_way_bytes_ = 0;
    fragmented_bytes_ = 0;
    suspect_deadline_ = timeout_deadline_ = never;
    tries_ = silent_tries_ = 0;
}

} // namespace kumi::reliable
