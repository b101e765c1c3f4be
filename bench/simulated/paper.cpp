#include "simulated/paper.hpp"

#include <algorithm>
#include <bit>
#include <memory>

namespace kumi::bench {
namespace {

constexpr std::size_t whole_bytes_max = 8192;
constexpr int first_tag = 1, part_tag = 2, acknowledge_tag = 3;

std::size_t bitmap_bytes(MPI_Comm all) {
    int nodes = 0;
    MPI_Comm_size(all, &nodes);
    return (static_cast<std::size_t>(nodes) + 7) / 8;
}

std::vector<std::byte> bitmap_of(const group::Set& members, std::size_t bytes) {
    std::vector<std::byte> bitmap(bytes);
    for (const group::Node node : members) bitmap[node / 8] |= std::byte{1} << node % 8;
    return bitmap;
}

group::Set members_in(Bytes bitmap) {
    group::Set members;
    for (group::Node node = 0; node < 8 * bitmap.size(); ++node)
        if ((bitmap[node / 8] >> node % 8 & std::byte{1}) != std::byte{}) members.add(node);
    return members;
}

} // namespace

PaperMulticast::PaperMulticast(MPI_Comm all, const group::Set& members, Bytes content, Allgather allgather)
    : all_(all), allgather_(allgather), members_(members), content_(content.begin(), content.end()) {}

PaperMulticast::PaperMulticast(MPI_Comm all, std::size_t bytes, Allgather allgather)
    : all_(all), allgather_(allgather) {
    // Memory that is not written takes no room, and in most ranks little of this is.
    const std::size_t bitmap = bitmap_bytes(all), room = bitmap + bytes;
    const auto message = std::make_unique_for_overwrite<std::byte[]>(room);
    MPI_Status status;
    MPI_Recv(message.get(), static_cast<int>(room), MPI_BYTE, MPI_ANY_SOURCE, first_tag, all_, &status);
    parent_ = status.MPI_SOURCE;
    members_ = members_in({message.get(), bitmap});
    int self = 0;
    MPI_Comm_rank(all_, &self);
    rank_ = members_.rank(static_cast<group::Node>(self));
    content_.resize(bytes);
    const Range range = first_range(rank_, rank_ - members_.rank(static_cast<group::Node>(parent_)));
    std::copy_n(message.get() + bitmap, range.end - range.begin, content_.data() + range.begin);
}

Bytes PaperMulticast::deliver() {
    for_each_child([&](group::Node rank, group::Node distance) { send_first(rank, distance); });
    if (goes_whole()) return content_;
    if (allgather_ == Allgather::doubling && std::has_single_bit(members())) gather_by_doubling();
    else gather_by_ring();
    return content_;
}

void PaperMulticast::acknowledge() const {
    for_each_child([&](group::Node rank, group::Node) {
        MPI_Recv(nullptr, 0, MPI_BYTE, node(rank), acknowledge_tag, all_, MPI_STATUS_IGNORE);
    });
    if (rank_ != 0) MPI_Send(nullptr, 0, MPI_BYTE, parent_, acknowledge_tag, all_);
}

bool PaperMulticast::goes_whole() const noexcept { return content_.size() <= whole_bytes_max; }

PaperMulticast::Range PaperMulticast::parts(std::size_t begin, std::size_t count) const noexcept {
    const std::size_t end = std::min<std::size_t>(begin + count, members());
    return {begin * content_.size() / members(), end * content_.size() / members()};
}

PaperMulticast::Range PaperMulticast::first_range(group::Node rank, group::Node distance) const noexcept {
    return goes_whole() ? Range{0, content_.size()} : parts(rank, distance);
}

template <class Use>
void PaperMulticast::for_each_child(Use&& use) const {
    for (group::Node distance = std::bit_ceil(members()) / 2; distance > 0; distance /= 2)
        if (rank_ % (2 * distance) == 0 && rank_ + distance < members()) use(rank_ + distance, distance);
}

void PaperMulticast::send_first(group::Node rank, group::Node distance) const {
    const Range range = first_range(rank, distance);
    std::vector<std::byte> message = bitmap_of(members_, bitmap_bytes(all_));
    const Bytes bytes = Bytes(content_).subspan(range.begin, range.end - range.begin);
    message.insert(message.end(), bytes.begin(), bytes.end());
    MPI_Send(message.data(), static_cast<int>(message.size()), MPI_BYTE, node(rank), first_tag, all_);
}

void PaperMulticast::gather_by_ring() {
    const group::Node next = (rank_ + 1) % members(), previous = (rank_ + members() - 1) % members();
    for (group::Node round = 0; round + 1 < members(); ++round)
        exchange(next, parts((rank_ + members() - round) % members(), 1), previous,
                 parts((previous + members() - round) % members(), 1));
}

void PaperMulticast::gather_by_doubling() {
    for (group::Node run = 1; run < members(); run *= 2) { // two runs of ranks exchange what they have
        const group::Node partner = rank_ ^ run;
        exchange(partner, parts(rank_ / run * run, run), partner, parts(partner / run * run, run));
    }
}

void PaperMulticast::exchange(group::Node to, Range sent, group::Node from, Range received) {
    MPI_Sendrecv(content_.data() + sent.begin, static_cast<int>(sent.end - sent.begin), MPI_BYTE, node(to), part_tag,
                 content_.data() + received.begin, static_cast<int>(received.end - received.begin), MPI_BYTE,
                 node(from), part_tag, all_, MPI_STATUS_IGNORE);
}

} // namespace kumi::bench
