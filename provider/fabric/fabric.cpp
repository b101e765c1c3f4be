#include "provider/fabric/objects.hpp"

#include <cstdio>
#include <cstring>

namespace kumi::provider {
namespace {

// ---- fabric

int close_fabric(fid* fid) {
    delete &object<FabricObject>(fid);
    return 0;
}

fi_ops fabric_fid_ops{sizeof(fi_ops), close_fabric, not_here, not_here, not_here, not_here, not_here};
fi_ops_fabric fabric_ops{sizeof(fi_ops_fabric), open_domain, not_here, open_events, not_here, not_here, not_here};

// ---- event queue: nothing ever happens that it would tell

struct EventObject : fid_eq {
    using Base = fid_eq;
};

int close_events(fid* fid) {
    delete &object<EventObject>(fid);
    return 0;
}
ssize_t read_events(fid_eq*, std::uint32_t*, void*, std::size_t, std::uint64_t) { return -FI_EAGAIN; }
ssize_t wait_for_events(fid_eq*, std::uint32_t*, void*, std::size_t, int, std::uint64_t) { return -FI_EAGAIN; }

fi_ops event_fid_ops{sizeof(fi_ops), close_events, not_here, not_here, not_here, not_here, not_here};
ssize_t read_event_error(fid_eq*, fi_eq_err_entry*, std::uint64_t) { return -FI_EAGAIN; }
fi_ops_eq event_ops{sizeof(fi_ops_eq), read_events, read_event_error, not_here, wait_for_events, not_here};

// ---- domain

int close_domain(fid* fid) {
    DomainObject& domain = object<DomainObject>(fid);
    if (domain.users != 0) return -FI_EBUSY;
    delete &domain;
    return 0;
}

/// The program has an event queue for it, into which nothing comes.
int bind_domain(fid*, fid*, std::uint64_t) { return 0; }

fi_ops domain_fid_ops{sizeof(fi_ops), close_domain, bind_domain, not_here, not_here, not_here, not_here};
fi_ops_domain domain_ops{sizeof(fi_ops_domain),
                         open_addresses,
                         open_completions,
                         open_endpoint,
                         not_here,
                         not_here,
                         not_here,
                         not_here,
                         not_here,
                         not_here,
                         not_here,
                         not_here};
fi_ops_mr memory_ops{sizeof(fi_ops_mr), not_here, not_here, not_here};

} // namespace

int open_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) {
    if (attributes->name != nullptr && std::strcmp(attributes->name, fabric_name) != 0) return -FI_ENODATA;
    return guarded([&] {
        auto* const made = new FabricObject();
        static_cast<fid_fabric&>(*made) = {
            .fid = {FI_CLASS_FABRIC, context, &fabric_fid_ops}, .ops = &fabric_ops, .api_version = 0};
        *fabric = made;
        return 0;
    });
}

int open_events(fid_fabric*, fi_eq_attr*, fid_eq** events, void* context) {
    return guarded([&] {
        auto* const made = new EventObject();
        static_cast<fid_eq&>(*made) = {.fid = {FI_CLASS_EQ, context, &event_fid_ops}, .ops = &event_ops};
        *events = made;
        return 0;
    });
}

int open_domain(fid_fabric*, fi_info*, fid_domain** domain, void* context) {
    return guarded([&] {
        const auto process = Process::join();
        if (!process) {
            if (!process.error().told())
                std::fprintf(stderr, "kumi: libfabric over Kumi: %s\n", process.error().text().c_str());
            return -FI_ENODEV;
        }
        auto* const made = new DomainObject();
        static_cast<fid_domain&>(*made) = {
            .fid = {FI_CLASS_DOMAIN, context, &domain_fid_ops}, .ops = &domain_ops, .mr = &memory_ops};
        made->process = *process;
        *domain = made;
        return 0;
    });
}

} // namespace kumi::provider
