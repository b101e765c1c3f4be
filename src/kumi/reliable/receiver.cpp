#include "kumi/reliable/receiver.hpp"

#include "kumi/base/assert.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace kumi::reliable {
namespace {

using namespace std::chrono_literals;

/// A gap that persists is reported again after this time, then after twice as long, and so on.
constexpr Duration ask_again_first = 1ms;

bool is_starts(const RecordHeader& record) noexcept {
    return record.offset != whole_message && record.offset % 8 == starts_mark;
}

/// Reads the record at the front of `records`: its header and its content.
bool read_record(Bytes records, RecordHeader& record, Bytes& content) noexcept {
    if (!read_value(records, record)) return false;
    records = records.subspan(sizeof record);
    std::size_t bytes = record.bytes;
    if (is_starts(record)) bytes = records.size();
    else if (record.offset != whole_message) bytes = std::min<std::size_t>(records.size(), bytes - record.offset);
    if (bytes > records.size()) return false;
    content = records.first(bytes);
    return true;
}

/// Whether the starts lie within a message of `message_bytes` and within `content`.
bool are_sound_starts(std::uint32_t message_bytes, std::uint32_t offset, Bytes content) noexcept {
    StartsHeader starts;
    if (!read_value(content, starts)) return false;
    if (starts.stride <= start_bytes || starts.stride % 8 != 0 || starts.count == 0) return false;
    if (starts.count > (content.size() - sizeof starts) / start_bytes) return false;
    return std::uint64_t{starts.count} * starts.stride <= message_bytes - offset;
}

} // namespace

Receiver::Receiver(BlockPool& pool, const ReceiverOptions& options, PeerCounters& counters)
    : pool_(pool), options_(options), counters_(counters), expected_(options.first_sequence),
      latest_(options.first_sequence), told_latest_(options.first_sequence) {}

Receiver::~Receiver() { clear(); }

void Receiver::on_packet(const PacketHeader& header, Instant now) noexcept {
    ++counters_.packets_received;
    counters_.bytes_received += header.bytes;
    if (is_before(latest_, header.transmission)) {
        latest_ = header.transmission;
        latest_at_ = now;
    }
    if ((header.flags & flag::ack_now) != 0) ack_deadline_ = now;
}

/// Checks everything about a packet's records that does not depend on earlier packets.
bool Receiver::is_sound(Bytes records) const noexcept {
    RecordHeader record;
    Bytes content;
    if (!read_value(records, record)) return false;
    if (record.offset != whole_message) {
        if (record.bytes > options_.message_bytes_max || record.offset >= record.bytes) return false;
        if (is_starts(record))
            return are_sound_starts(record.bytes, record.offset - starts_mark, records.subspan(sizeof record));
        return read_record(records, record, content) && sizeof record + padded(content.size()) == records.size();
    }
    while (!records.empty()) {
        if (!read_record(records, record, content) || record.offset != whole_message) return false;
        if (record_bytes(content.size()) > records.size()) return false;
        records = records.subspan(record_bytes(content.size()));
    }
    return true;
}

/// Allocates the block for the message that begins in `records`, if it needs one. False: its reader keeps too many
/// blocks, or the system has no memory.
bool Receiver::make_room_for(Bytes records) noexcept {
    RecordHeader record{};
    read_value(records, record);
    // a whole message, or a later piece of a message that has its block
    if (record.offset != 0 && record.offset != starts_mark) return true;
    // the piece is the whole message
    if (record.offset == 0 && record.bytes + piece_head_bytes <= records.size() + sizeof(PacketHeader)) return true;
    const std::size_t needed = std::size_t{1} << BlockPool::size_class_of(record.bytes);
    // An incomplete message does not count: the peer has begun another one, so it is dropped.
    const std::size_t held = held_bytes_ - (message_ == nullptr ? 0 : message_->capacity());
    if (held != 0 && held + needed > options_.held_bytes_max) return false;
    drop_message();
    room_ = pool_.take(record.bytes);
    if (room_ == nullptr) return wanted_bytes_ = record.bytes, false;
    room_->bytes = record.bytes;
    room_->node = options_.peer;
    held_bytes_ += room_->capacity();
    return true;
}

/// Drops the incomplete message: the rest will not arrive.
void Receiver::drop_message() noexcept {
    for (Block** const block : {&message_, &room_}) {
        if (*block == nullptr) continue;
        on_released(**block);
        pool_.give_back(std::exchange(*block, nullptr));
    }
}

Receiver::Verdict Receiver::on_data(const PacketHeader& header, Bytes records, Instant now) noexcept {
    wanted_bytes_ = 0;
    if (is_before(header.sequence, expected_)) {
        ++counters_.duplicates;
        ack_deadline_ = now; // the acknowledgement was lost, or is late
        return Verdict::duplicate;
    }
    if (!is_sound(records)) return Verdict::malformed;
    // the packet has arrived in one piece
    if (reassembly_ != nullptr && reassembly_sequence_ == header.sequence) drop_reassembly();
    const std::uint32_t ahead = header.sequence - expected_;
    if (ahead >= options_.window_packets_max) return Verdict::beyond_window;
    if (ahead == 0 && !stalled_ && make_room_for(records)) {
        ++expected_;
        asked_ = 0;
        unacknowledged_weight_ += weight_of(header.bytes);
        acknowledge_by(now + options_.ack_delay_max);
        if (aside_count_ != 0) ack_deadline_ = now; // a retransmission: report what is still missing
        return Verdict::next;
    }
    if (!aside_.empty() && aside(header.sequence) != nullptr) {
        ++counters_.duplicates;
        acknowledge_by(now + options_.ack_delay_max);
        return Verdict::duplicate;
    }
    if (!put_aside(header.sequence, records)) return Verdict::beyond_window;
    if (ahead == 0) stalled_ = true;
    else ++counters_.overtaken;
    ack_deadline_ = stalled_ ? std::min(ack_deadline_, now + options_.ack_delay_max) : now;
    return Verdict::put_aside;
}

bool Receiver::make_aside() noexcept {
    if (!aside_.empty()) return true;
    try {
        aside_.resize(options_.window_packets_max);
    } catch (const std::bad_alloc&) {
        return false;
    }
    return true;
}

/// False: there is no room; the peer will retransmit the packet.
bool Receiver::put_aside(Sequence sequence, Bytes records) noexcept {
    const std::size_t needed = std::size_t{1} << BlockPool::size_class_of(records.size());
    if (aside_bytes_ + needed > options_.aside_bytes_max) return false;
    Block* block = pool_.take(records.size());
    if (block == nullptr || !make_aside()) {
        if (block != nullptr) pool_.give_back(block);
        return false;
    }
    std::memcpy(block->data(), records.data(), records.size());
    block->bytes = static_cast<std::uint32_t>(records.size());
    if (aside_count_ == 0 || is_before(aside_last_, sequence)) aside_last_ = sequence;
    aside(sequence) = block;
    aside_bytes_ += block->capacity();
    ++aside_count_;
    return true;
}

Block* Receiver::take_aside() noexcept {
    wanted_bytes_ = 0;
    if (aside_count_ == 0) return nullptr;
    Block* const block = aside(expected_);
    if (block == nullptr) return nullptr;
    if (!make_room_for(Bytes(block->data(), block->bytes))) {
        stalled_ = true;
        return nullptr;
    }
    stalled_ = false;
    aside(expected_) = nullptr;
    aside_bytes_ -= block->capacity();
    --aside_count_;
    ++expected_;
    unacknowledged_weight_ += weight_of(block->bytes + sizeof(PacketHeader));
    return block;
}

// ---- messages

bool Receiver::next_message(Bytes& records, Arrival& arrival) noexcept {
    RecordHeader record;
    Bytes content;
    while (!records.empty()) {
        const bool sound = read_record(records, record, content);
        KUMI_ASSERT(sound); // checked by on_data()
        records = records.subspan(record_bytes(content.size()));
        if (record.offset == whole_message) {
            arrival = {options_.peer, content, nullptr};
            return true;
        }
        if (is_starts(record)) read_starts(record, content);
        else if (read_piece(record, content, arrival)) return true;
    }
    return false;
}

bool Receiver::read_piece(const RecordHeader& record, Bytes piece, Arrival& arrival) noexcept {
    if (record.offset == 0) {
        if (piece.size() == record.bytes) { // complete in one piece: read in place
            drop_message();
            arrival = {options_.peer, piece, nullptr};
            return true;
        }
        KUMI_ASSERT(message_ == nullptr && room_ != nullptr); // make_room_for() saw to it
        message_ = std::exchange(room_, nullptr);
    }
    if (message_ == nullptr || record.bytes != message_->bytes) return false;
    const std::uint32_t start = message_->started != 0 ? start_bytes : 0;
    if (record.offset != message_->cut + start) return false;
    if (start != 0) {
        if (piece.size() != message_->started_stride - start) return false;
        --message_->started;
    }
    std::memcpy(message_->data() + record.offset, piece.data(), piece.size());
    message_->cut += start + static_cast<std::uint32_t>(piece.size());
    if (message_->cut != message_->bytes) return false;
    arrival = {options_.peer, Bytes(message_->data(), message_->bytes), message_};
    message_ = nullptr;
    return true;
}

/// Puts the starts of the next pieces in their places.
void Receiver::read_starts(const RecordHeader& record, Bytes content) noexcept {
    const std::uint32_t offset = record.offset - starts_mark;
    if (offset == 0) {
        KUMI_ASSERT(message_ == nullptr && room_ != nullptr); // make_room_for() saw to it
        message_ = std::exchange(room_, nullptr);
    }
    if (message_ == nullptr || record.bytes != message_->bytes) return;
    if (offset != message_->cut || message_->started != 0) return;
    StartsHeader starts;
    read_value(content, starts); // checked by on_data()
    content = content.subspan(sizeof starts);
    for (std::size_t i = 0; i < starts.count; ++i)
        std::memcpy(message_->data() + offset + i * starts.stride, content.data() + i * start_bytes, start_bytes);
    message_->started = starts.count;
    message_->started_stride = starts.stride;
}

// ---- acknowledgements

Sequence Receiver::arrived() const noexcept {
    Sequence sequence = expected_;
    for (std::uint32_t i = 0; stalled_ && i < aside_count_ && aside(sequence) != nullptr; ++i) ++sequence;
    return sequence;
}

void Receiver::acknowledge(PacketHeader& header, bool with_words, Instant now) noexcept {
    const bool gap = has_gap();
    if (!gap) told_latest_ = latest_, told_latest_at_ = latest_at_;
    // Without the words, packets that have arrived after the gap would look lost. So `latest` then stays as it was when
    // there was last no gap.
    const bool tells_all = !gap || with_words;
    header.expected = arrived();
    header.latest = tells_all ? latest_ : told_latest_;
    header.held_us =
        static_cast<std::uint32_t>(std::max<std::int64_t>(0, (now - (tells_all ? latest_at_ : told_latest_at_)) / 1us));
    unacknowledged_weight_ = 0;
    if (!tells_all) return; // the gap is still to be reported
    ack_deadline_ = never;
    if (!gap) return;
    ack_deadline_ = now + ask_again_first * (1u << std::min(asked_, 6u));
    ++asked_;
}

std::size_t Receiver::write_words(std::byte* to, std::size_t words_max) noexcept {
    if (!has_gap()) return 0;
    const Sequence missing = arrived();
    const std::uint32_t bits = aside_last_ - missing; // for the sequences after it, up to aside_last_
    const std::size_t words = std::min<std::size_t>((bits + 63) / 64, words_max);
    for (std::size_t i = 0; i < words; ++i) {
        std::uint64_t word = 0;
        for (std::uint32_t bit = 0; bit < 64 && i * 64 + bit < bits; ++bit)
            if (aside(missing + 1 + static_cast<Sequence>(i * 64) + bit) != nullptr) word |= std::uint64_t{1} << bit;
        std::memcpy(to + i * 8, &word, sizeof word);
    }
    ++counters_.repairs_asked;
    return words;
}

// ---- parts

bool Receiver::has_arrived(Sequence sequence) const noexcept {
    if (is_before(sequence, expected_)) return true;
    return !aside_.empty() && sequence - expected_ < options_.window_packets_max && aside(sequence) != nullptr;
}

void Receiver::drop_reassembly() noexcept {
    if (reassembly_ != nullptr) pool_.give_back(std::exchange(reassembly_, nullptr));
}

Block* Receiver::on_fragment(Sequence sequence, Bytes part, Verdict& verdict, Instant now) noexcept {
    FragmentHeader head;
    wanted_bytes_ = 0;
    verdict = Verdict::malformed;
    if (!read_value(part, head)) return nullptr;
    part = part.subspan(sizeof head);
    if (head.stride < fragment_bytes_min || head.stride % 8 != 0 || head.bytes % 8 != 0 ||
        head.bytes > packet_bytes_max - sizeof(PacketHeader))
        return nullptr;
    if (head.offset >= head.bytes || head.offset % head.stride != 0) return nullptr;
    if (part.size() != std::min<std::size_t>(head.stride, head.bytes - head.offset)) return nullptr;
    if (has_arrived(sequence)) {
        if (reassembly_sequence_ == sequence) drop_reassembly();
        ++counters_.duplicates;
        ack_deadline_ = now;
        return verdict = Verdict::duplicate, nullptr;
    }
    if (sequence - expected_ >= options_.window_packets_max) return verdict = Verdict::beyond_window, nullptr;
    const bool is_of_reassembly = reassembly_ != nullptr && reassembly_sequence_ == sequence &&
                                  reassembly_stride_ == head.stride && reassembly_->bytes == head.bytes;
    verdict = Verdict::put_aside;
    if (!is_of_reassembly) {
        drop_reassembly();
        reassembly_ = pool_.take(head.bytes);
        if (reassembly_ == nullptr) return wanted_bytes_ = head.bytes, nullptr;
        reassembly_->bytes = head.bytes;
        reassembly_->cut = 0;
        reassembly_sequence_ = sequence;
        reassembly_stride_ = head.stride;
        reassembly_has_ = {};
    }
    const std::size_t place = head.offset / head.stride;
    std::uint64_t& word = reassembly_has_[place / 64];
    const std::uint64_t bit = std::uint64_t{1} << place % 64;
    if ((word & bit) != 0) return nullptr;
    word |= bit;
    std::memcpy(reassembly_->data() + head.offset, part.data(), part.size());
    reassembly_->cut += static_cast<std::uint32_t>(part.size());
    return reassembly_->cut == reassembly_->bytes ? std::exchange(reassembly_, nullptr) : nullptr;
}

void Receiver::clear() noexcept {
    drop_reassembly();
    for (Block*& block : aside_)
        if (block != nullptr) pool_.give_back(std::exchange(block, nullptr));
    aside_count_ = 0;
    aside_bytes_ = 0;
    stalled_ = false;
    drop_message();
    ack_deadline_ = never;
}

} // namespace kumi::reliable
