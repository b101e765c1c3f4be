#pragma once

// The objects of libfabric: what fi_fabric(), fi_domain() and so on hand out. The base of each is what libfabric knows:
// through its pointers to functions it calls back, and object() finds the object.

#include "provider/info/info.hpp"
#include "provider/process.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <unordered_map>
#include <vector>

namespace kumi::provider {

/// For functions that this provider does not have: libfabric calls through every pointer without a look.
struct NotHere {
    template <class Answer, class... Arguments>
    using Function = Answer (*)(Arguments...);

    template <class Answer, class... Arguments>
    constexpr operator Function<Answer, Arguments...>() const noexcept {
        return [](Arguments...) -> Answer {
            if constexpr (std::is_pointer_v<Answer>) return nullptr;
            else if constexpr (!std::is_void_v<Answer>) return static_cast<Answer>(-FI_ENOSYS);
        };
    }
};
inline constexpr NotHere not_here;

/// The object that libfabric knows by its base.
template <class Object>
Object& object(typename Object::Base* base) noexcept {
    return static_cast<Object&>(*base);
}
/// Or by the beginning of that.
template <class Object>
Object& object(fid* start) noexcept {
    return object<Object>(reinterpret_cast<typename Object::Base*>(start));
}

struct FabricObject : fid_fabric {
    using Base = fid_fabric;
};

struct DomainObject : fid_domain {
    using Base = fid_domain;

    Process* process = nullptr;
    std::atomic<unsigned> users{0}; // objects that were opened here
};

struct AddressVector : fid_av {
    using Base = fid_av;

    DomainObject* domain = nullptr;
    // With the turn.
    unsigned users = 0;                     // endpoints that are bound to it
    std::vector<std::optional<Peer>> peers; // by fi_addr_t
    Addresses by_peer;                      // the first of each

    const Peer* find(fi_addr_t address) const noexcept {
        return address < peers.size() && peers[address] ? &*peers[address] : nullptr;
    }
};

struct CompletionObject : fid_cq {
    using Base = fid_cq;

    DomainObject* domain = nullptr;
    fi_cq_format format = FI_CQ_FORMAT_CONTEXT;
    bool can_wait = false;
    bool is_signalled = false; // with the turn
    unsigned users = 0;        // with the turn: bindings of endpoints
    CompletionQueue queue;     // with the turn
};

struct EndpointObject : fid_ep {
    using Base = fid_ep;

    explicit EndpointObject(Messages& messages) noexcept : fid_ep{}, endpoint(messages) {}

    DomainObject* domain = nullptr;
    AddressVector* peers = nullptr;
    std::vector<CompletionObject*> queues;
    std::uint64_t caps = 0;
    std::uint64_t send_flags = 0; // where a call has none
    std::uint64_t receive_flags = 0;
    bool are_sends_selective = false; // only those that ask for a completion get one
    bool are_receives_selective = false;
    Endpoint endpoint;
};

// What opens them; in the form that libfabric calls.
int open_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context);
int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context);
int open_events(fid_fabric* fabric, fi_eq_attr* attributes, fid_eq** events, void* context);
int open_addresses(fid_domain* domain, fi_av_attr* attributes, fid_av** addresses, void* context);
int open_completions(fid_domain* domain, fi_cq_attr* attributes, fid_cq** completions, void* context);
int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context);

// Of an endpoint.
extern fi_ops_msg message_ops;
extern fi_ops_tagged tagged_ops;

/// Calls `function`. What it throws becomes a code of libfabric.
template <class Function>
auto guarded(Function&& function) noexcept -> decltype(function()) {
    try {
        return function();
    } catch (const std::bad_alloc&) {
        return -FI_ENOMEM;
    } catch (const std::exception&) { // such as no more threads
        return -FI_EOTHER;
    }
}

} // namespace kumi::provider
