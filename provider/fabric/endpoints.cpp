#include "provider/fabric/objects.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace kumi::provider {
namespace {

/// For what was reported as sent, and is still under way, when an endpoint is closed.
constexpr std::chrono::seconds drain_max{5};

int close_endpoint(fid* fid) {
    EndpointObject& mine = object<EndpointObject>(fid);
    Process& process = *mine.domain->process;
    process.wait([&](const Turn& turn) { return !process.messages().has_sends(turn, mine.endpoint); },
                 now() + drain_max);
    {
        const engine::Turn turn = process.take_turn();
        process.messages().remove(turn, mine.endpoint);
        for (CompletionObject* const queue : mine.queues) --queue->users;
        if (mine.peers != nullptr) --mine.peers->users;
    }
    --mine.domain->users;
    delete &mine;
    return 0;
}

int bind(fid* fid, struct fid* other, std::uint64_t flags) {
    EndpointObject& mine = object<EndpointObject>(fid);
    const engine::Turn turn = mine.domain->process->take_turn();
    switch (other->fclass) {
    case FI_CLASS_AV:
        if (mine.peers != nullptr) return -FI_EINVAL;
        mine.peers = &object<AddressVector>(other);
        ++mine.peers->users;
        if ((mine.caps & FI_SOURCE) != 0) mine.endpoint.addresses = &mine.peers->by_peer;
        return 0;
    case FI_CLASS_CQ: {
        if ((flags & (FI_TRANSMIT | FI_RECV)) == 0) return -FI_EINVAL;
        CompletionObject& completions = object<CompletionObject>(other);
        const bool is_selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
        mine.queues.push_back(&completions);
        ++completions.users;
        if ((flags & FI_TRANSMIT) != 0) {
            mine.endpoint.sends = &completions.queue;
            mine.are_sends_selective = is_selective;
        }
        if ((flags & FI_RECV) != 0) {
            mine.endpoint.receives = &completions.queue;
            mine.are_receives_selective = is_selective;
        }
        return 0;
    }
    case FI_CLASS_EQ: return 0;
    default: return -FI_ENOSYS;
    }
}

int control(fid* fid, int command, void*) {
    EndpointObject& mine = object<EndpointObject>(fid);
    if (command != FI_ENABLE) return -FI_ENOSYS;
    if (mine.peers == nullptr) return -FI_ENOAV;
    if (mine.endpoint.sends == nullptr && mine.endpoint.receives == nullptr) return -FI_ENOCQ;
    return 0;
}

ssize_t cancel(fid_t fid, void* context) {
    EndpointObject& mine = object<EndpointObject>(fid);
    const engine::Turn turn = mine.domain->process->take_turn();
    return guarded([&]() -> ssize_t { return mine.endpoint.cancel(turn, context) ? 0 : -FI_ENOENT; });
}

int get_option(fid_t fid, int level, int name, void* value, std::size_t* bytes) {
    if (level != FI_OPT_ENDPOINT) return -FI_ENOPROTOOPT;
    EndpointObject& mine = object<EndpointObject>(fid);
    const engine::Turn turn = mine.domain->process->take_turn();
    std::size_t found = 0;
    if (name == FI_OPT_MIN_MULTI_RECV) found = mine.endpoint.least_left;
    else if (name != FI_OPT_CM_DATA_SIZE) return -FI_ENOPROTOOPT;
    if (*bytes < sizeof found) return -FI_ETOOSMALL;
    std::memcpy(value, &found, sizeof found);
    *bytes = sizeof found;
    return 0;
}

int set_option(fid_t fid, int level, int name, const void* value, std::size_t bytes) {
    if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
    EndpointObject& mine = object<EndpointObject>(fid);
    const engine::Turn turn = mine.domain->process->take_turn();
    if (bytes != sizeof mine.endpoint.least_left) return -FI_EINVAL;
    std::memcpy(&mine.endpoint.least_left, value, bytes);
    return 0;
}

ssize_t size_left(fid_ep*) { return 1024; } // a hint: what is too much is refused for a while

int get_name(fid_t fid, void* to, std::size_t* bytes) {
    EndpointObject& mine = object<EndpointObject>(fid);
    const Process& process = *mine.domain->process;
    const Address address{process.job(), process.standing().node, mine.endpoint.number()};
    const bool is_whole = *bytes >= sizeof address;
    if (to != nullptr) std::memcpy(to, &address, std::min(*bytes, sizeof address));
    *bytes = sizeof address;
    return is_whole ? 0 : -FI_ETOOSMALL;
}

fi_ops fid_ops{sizeof(fi_ops), close_endpoint, bind, control, not_here, not_here, not_here};
fi_ops_ep ops{sizeof(fi_ops_ep), cancel, get_option, set_option, not_here, not_here, size_left, size_left};
fi_ops_cm connection_ops{sizeof(fi_ops_cm), not_here, get_name, not_here, not_here,
                         not_here,          not_here, not_here, not_here, not_here};
fi_ops_rma memory_ops{sizeof(fi_ops_rma), not_here, not_here, not_here, not_here,
                      not_here,           not_here, not_here, not_here, not_here};
fi_ops_atomic atomic_ops{sizeof(fi_ops_atomic),
                         not_here,
                         not_here,
                         not_here,
                         not_here,
                         not_here,
                         not_here,
                         not_here,
                         not_here,
                         not_here,
                         not_here,
                         not_here,
                         not_here,
                         not_here};
fi_ops_collective collective_ops{sizeof(fi_ops_collective),
                                 not_here,
                                 not_here,
                                 not_here,
                                 not_here,
                                 not_here,
                                 not_here,
                                 not_here,
                                 not_here,
                                 not_here,
                                 not_here};

} // namespace

int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context) {
    DomainObject& owner = object<DomainObject>(domain);
    return guarded([&] {
        auto made = std::make_unique<EndpointObject>(owner.process->messages());
        {
            const engine::Turn turn = owner.process->take_turn();
            if (!owner.process->messages().add(turn, made->endpoint)) return -FI_EMFILE;
        }
        static_cast<fid_ep&>(*made) = {.fid = {FI_CLASS_EP, context, &fid_ops},
                                       .ops = &ops,
                                       .cm = &connection_ops,
                                       .msg = &message_ops,
                                       .rma = &memory_ops,
                                       .tagged = &tagged_ops,
                                       .atomic = &atomic_ops,
                                       .collective = &collective_ops};
        made->domain = &owner;
        made->caps = info->caps;
        if (info->tx_attr != nullptr) made->send_flags = info->tx_attr->op_flags;
        if (info->rx_attr != nullptr) made->receive_flags = info->rx_attr->op_flags;
        ++owner.users;
        *endpoint = made.release();
        return 0;
    });
}

} // namespace kumi::provider
