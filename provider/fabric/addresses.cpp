#include "provider/fabric/objects.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace kumi::provider {
namespace {

int close_addresses(fid* fid) {
    AddressVector& addresses = object<AddressVector>(fid);
    {
        const engine::Turn turn = addresses.domain->process->take_turn();
        if (addresses.users != 0) return -FI_EBUSY;
    }
    --addresses.domain->users;
    delete &addresses;
    return 0;
}

/// The endpoint that an address names, if it is one of this job.
std::optional<Peer> peer_at(const Process& process, const Address& address) {
    const bool is_of_job = address.job == process.job() && address.node < process.standing().nodes;
    if (!is_of_job || address.endpoint >= endpoints_max) return std::nullopt;
    return Peer{address.node, static_cast<std::uint8_t>(address.endpoint)};
}

int insert(fid_av* fid, const void* addresses, std::size_t count, fi_addr_t* inserted, std::uint64_t, void*) {
    AddressVector& vector = object<AddressVector>(fid);
    return guarded([&] {
        const engine::Turn turn = vector.domain->process->take_turn();
        int good = 0;
        for (std::size_t i = 0; i < count; ++i) {
            Address address;
            std::memcpy(&address, static_cast<const std::byte*>(addresses) + i * sizeof address, sizeof address);
            const auto peer = peer_at(*vector.domain->process, address);
            const fi_addr_t number = vector.peers.size();
            vector.peers.push_back(peer); // also where there is none: the next has the next number
            if (peer) {
                vector.by_peer.try_emplace(peer->number(), number);
                ++good;
            } else {
                std::fprintf(stderr, "kumi: libfabric over Kumi: an address of another job was inserted; only "
                                     "processes of one job reach each other\n");
            }
            if (inserted != nullptr) inserted[i] = peer ? number : FI_ADDR_NOTAVAIL;
        }
        return good;
    });
}

int remove(fid_av* fid, fi_addr_t* addresses, std::size_t count, std::uint64_t) {
    AddressVector& vector = object<AddressVector>(fid);
    const engine::Turn turn = vector.domain->process->take_turn();
    for (std::size_t i = 0; i < count; ++i) {
        const Peer* const peer = vector.find(addresses[i]);
        if (peer == nullptr) return -FI_EINVAL;
        const auto named = vector.by_peer.find(peer->number());
        if (named != vector.by_peer.end() && named->second == addresses[i]) vector.by_peer.erase(named);
        vector.peers[addresses[i]].reset();
    }
    return 0;
}

int look_up(fid_av* fid, fi_addr_t number, void* to, std::size_t* bytes) {
    AddressVector& vector = object<AddressVector>(fid);
    Process& process = *vector.domain->process;
    const engine::Turn turn = process.take_turn();
    const Peer* const peer = vector.find(number);
    if (peer == nullptr) return -FI_EINVAL;
    const Address address{process.job(), peer->node, peer->endpoint};
    std::memcpy(to, &address, std::min(*bytes, sizeof address));
    const bool is_whole = *bytes >= sizeof address;
    *bytes = sizeof address;
    return is_whole ? 0 : -FI_ETOOSMALL;
}

const char* show(fid_av*, const void* from, char* to, std::size_t* bytes) {
    Address address;
    std::memcpy(&address, from, sizeof address);
    const std::size_t room = *bytes;
    const int length = std::snprintf(to, room, "fi_kumi://%016llx/%u/%u", static_cast<unsigned long long>(address.job),
                                     address.node, address.endpoint);
    *bytes = static_cast<std::size_t>(length) + 1;
    return to;
}

int bind_addresses(fid*, fid*, std::uint64_t) { return 0; } // to an event queue

fi_ops fid_ops{sizeof(fi_ops), close_addresses, bind_addresses, not_here, not_here, not_here, not_here};
fi_ops_av ops{sizeof(fi_ops_av), insert, not_here, not_here, remove, look_up, show, not_here};

} // namespace

int open_addresses(fid_domain* domain, fi_av_attr* attributes, fid_av** addresses, void* context) {
    // Vectors that processes share, and insertions that are told later, are not there.
    if (attributes != nullptr && (attributes->name != nullptr || (attributes->flags & FI_EVENT) != 0))
        return -FI_ENOSYS;
    return guarded([&] {
        auto* const made = new AddressVector();
        static_cast<fid_av&>(*made) = {.fid = {FI_CLASS_AV, context, &fid_ops}, .ops = &ops};
        made->domain = &object<DomainObject>(domain);
        ++made->domain->users;
        if (attributes != nullptr && attributes->type == FI_AV_UNSPEC) attributes->type = FI_AV_TABLE;
        *addresses = made;
        return 0;
    });
}

} // namespace kumi::provider
