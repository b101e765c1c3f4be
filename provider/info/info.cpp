#include "provider/info/info.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

namespace kumi::provider {
namespace {

constexpr std::uint64_t places = FI_LOCAL_COMM | FI_REMOTE_COMM;
constexpr std::uint64_t to_send = FI_MSG | FI_TAGGED | FI_SEND;
constexpr std::uint64_t to_receive = FI_MSG | FI_TAGGED | FI_RECV | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE;
constexpr std::uint64_t all_caps = to_send | to_receive | places;
constexpr std::uint64_t order = FI_ORDER_SAS;
constexpr std::uint64_t send_flags = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |
                                     FI_DELIVERY_COMPLETE | FI_REMOTE_CQ_DATA | FI_MORE;
constexpr std::uint64_t receive_flags = FI_COMPLETION | FI_MULTI_RECV | FI_MORE;
constexpr std::size_t length_max = std::size_t{1} << 40;
constexpr std::size_t queue_length = 1024;
constexpr std::size_t objects_max = 1024; // a hint; endpoints are fewer

bool are_within(std::uint64_t asked, std::uint64_t offered) noexcept { return (asked & ~offered) == 0; }

/// Nothing, or this.
template <class Value>
bool fits(Value asked, Value offered) noexcept {
    return asked == Value{} || asked == offered;
}

/// The hint names nothing, or this.
bool is_named(const char* asked, const char* offered) noexcept {
    return asked == nullptr || std::strcmp(asked, offered) == 0;
}

/// What follows from asking for messages without saying which way.
std::uint64_t expanded(std::uint64_t caps) noexcept {
    if ((caps & (FI_MSG | FI_TAGGED)) != 0 && (caps & (FI_SEND | FI_RECV)) == 0) caps |= FI_SEND | FI_RECV;
    return caps;
}

/// Progress that the program asks for: it makes the calls itself, unless it wants otherwise. Both are there.
fi_progress progress_for(fi_progress asked) noexcept { return asked == FI_PROGRESS_AUTO ? asked : FI_PROGRESS_MANUAL; }

bool suits(const fi_ep_attr& hints) noexcept {
    return fits(hints.type, FI_EP_RDM) && fits(hints.protocol, protocol) && hints.max_msg_size <= length_max &&
           hints.tx_ctx_cnt <= 1 && hints.rx_ctx_cnt <= 1 && hints.auth_key_size == 0 && hints.protocol_version <= 1;
}

bool suits(const fi_domain_attr& hints) noexcept {
    return is_named(hints.name, domain_name) && are_within(hints.caps, places) &&
           hints.cq_data_size <= sizeof(std::uint64_t) && hints.max_ep_tx_ctx <= 1 && hints.max_ep_rx_ctx <= 1 &&
           hints.max_ep_stx_ctx == 0 && hints.max_ep_srx_ctx == 0 && hints.cntr_cnt == 0 &&
           hints.cq_cnt <= objects_max && hints.ep_cnt <= objects_max && hints.tx_ctx_cnt <= objects_max &&
           hints.rx_ctx_cnt <= objects_max;
}

bool suits(const fi_tx_attr& hints) noexcept {
    return are_within(hints.caps, to_send | places) && are_within(hints.op_flags, send_flags) &&
           are_within(hints.msg_order, order) && hints.comp_order == FI_ORDER_NONE &&
           hints.inject_size <= inject_bytes_max && hints.size <= queue_length && hints.iov_limit <= places_max &&
           hints.rma_iov_limit == 0;
}

bool suits(const fi_rx_attr& hints) noexcept {
    return are_within(hints.caps, to_receive | places) && are_within(hints.op_flags, receive_flags) &&
           are_within(hints.msg_order, order) && hints.comp_order == FI_ORDER_NONE && hints.size <= queue_length &&
           hints.iov_limit <= places_max;
}

bool suits(const fi_info& hints) noexcept {
    return are_within(expanded(hints.caps), all_caps) && fits(hints.addr_format, std::uint32_t{address_format}) &&
           (hints.ep_attr == nullptr || suits(*hints.ep_attr)) &&
           (hints.domain_attr == nullptr || suits(*hints.domain_attr)) &&
           (hints.tx_attr == nullptr || suits(*hints.tx_attr)) && (hints.rx_attr == nullptr || suits(*hints.rx_attr)) &&
           (hints.fabric_attr == nullptr || is_named(hints.fabric_attr->name, fabric_name)) &&
           (hints.src_addr == nullptr || hints.src_addrlen == sizeof(Address)) &&
           (hints.dest_addr == nullptr || hints.dest_addrlen == sizeof(Address));
}

void* copy_of(const void* address, std::size_t bytes) {
    void* const copy = address == nullptr ? nullptr : std::malloc(bytes);
    if (copy != nullptr) std::memcpy(copy, address, bytes);
    return copy;
}

} // namespace

fi_info* info_for(std::uint32_t version, const fi_info* hints) {
    if (hints != nullptr && !suits(*hints)) return nullptr;
    fi_info* const info = fi_allocinfo();
    if (info == nullptr) return nullptr;
    const bool asks_caps = hints != nullptr && hints->caps != 0;
    info->caps = (asks_caps ? expanded(hints->caps) : all_caps) | places;
    info->addr_format = address_format;
    if (hints != nullptr) {
        info->src_addr = copy_of(hints->src_addr, hints->src_addrlen);
        info->src_addrlen = info->src_addr == nullptr ? 0 : hints->src_addrlen;
        info->dest_addr = copy_of(hints->dest_addr, hints->dest_addrlen);
        info->dest_addrlen = info->dest_addr == nullptr ? 0 : hints->dest_addrlen;
    }
    fi_ep_attr& endpoint = *info->ep_attr;
    endpoint.type = FI_EP_RDM;
    endpoint.protocol = protocol;
    endpoint.protocol_version = 1;
    endpoint.max_msg_size = length_max;
    endpoint.mem_tag_format = ~std::uint64_t{0};
    endpoint.tx_ctx_cnt = endpoint.rx_ctx_cnt = 1;

    const fi_domain_attr* const wanted = hints == nullptr ? nullptr : hints->domain_attr;
    fi_domain_attr& domain = *info->domain_attr;
    domain.name = ::strdup(domain_name);
    domain.threading = FI_THREAD_SAFE;
    domain.control_progress = progress_for(wanted == nullptr ? FI_PROGRESS_UNSPEC : wanted->control_progress);
    domain.data_progress = progress_for(wanted == nullptr ? FI_PROGRESS_UNSPEC : wanted->data_progress);
    domain.resource_mgmt = FI_RM_ENABLED;
    domain.av_type = wanted == nullptr ? FI_AV_UNSPEC : wanted->av_type;
    // No memory is registered; programs of versions before 1.5 say that so.
    domain.mr_mode = FI_VERSION_LT(version, FI_VERSION(1, 5)) ? static_cast<int>(FI_MR_SCALABLE) : 0;
    domain.mr_key_size = sizeof(std::uint64_t);
    domain.cq_data_size = sizeof(std::uint64_t);
    domain.cq_cnt = domain.ep_cnt = domain.tx_ctx_cnt = domain.rx_ctx_cnt = objects_max;
    domain.max_ep_tx_ctx = domain.max_ep_rx_ctx = 1;
    domain.caps = places;

    fi_tx_attr& sends = *info->tx_attr;
    sends.caps = info->caps & (to_send | places);
    sends.op_flags = hints == nullptr || hints->tx_attr == nullptr ? 0 : hints->tx_attr->op_flags;
    sends.msg_order = order;
    sends.inject_size = inject_bytes_max;
    sends.size = queue_length;
    sends.iov_limit = places_max;

    fi_rx_attr& receives = *info->rx_attr;
    receives.caps = info->caps & (to_receive | places);
    receives.op_flags = hints == nullptr || hints->rx_attr == nullptr ? 0 : hints->rx_attr->op_flags;
    receives.msg_order = order;
    receives.size = queue_length;
    receives.iov_limit = places_max;

    info->fabric_attr->name = ::strdup(fabric_name);
    return info;
}

} // namespace kumi::provider
