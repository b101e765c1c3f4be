#include "provider/info/info.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <string>

namespace kumi::provider {
namespace {

struct Free {
    void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, Free>;

constexpr std::uint32_t version = FI_VERSION(1, 9);

Info hints() { return Info(fi_allocinfo()); }
Info answer(const Info& asked, std::uint32_t of = version) { return Info(info_for(of, asked.get())); }

TEST(ProviderInfo, without_hints_is_all_that_there_is) {
    const Info info(info_for(version, nullptr));
    ASSERT_TRUE(info);
    EXPECT_EQ(info->mode, 0u);
    EXPECT_EQ(info->ep_attr->type, FI_EP_RDM);
    EXPECT_EQ(info->domain_attr->threading, FI_THREAD_SAFE);
    EXPECT_EQ(info->domain_attr->resource_mgmt, FI_RM_ENABLED);
    EXPECT_EQ(info->domain_attr->mr_mode, 0);
    EXPECT_STREQ(info->fabric_attr->name, "kumi");
    EXPECT_EQ(info->fabric_attr->prov_name, nullptr) << "libfabric fills it in";
    for (const std::uint64_t one : {FI_MSG, FI_TAGGED, FI_SEND, FI_RECV, FI_MULTI_RECV, FI_DIRECTED_RECV, FI_SOURCE})
        EXPECT_NE(info->caps & one, 0u);
}

/// As Open MPI 4.1 asks.
TEST(ProviderInfo, suits_open_mpi) {
    const Info asked = hints();
    asked->mode = FI_CONTEXT | FI_CONTEXT2;
    asked->caps = FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV;
    asked->ep_attr->type = FI_EP_RDM;
    asked->tx_attr->msg_order = asked->rx_attr->msg_order = FI_ORDER_SAS;
    asked->tx_attr->op_flags = asked->rx_attr->op_flags = FI_COMPLETION;
    asked->domain_attr->threading = FI_THREAD_DOMAIN;
    asked->domain_attr->av_type = FI_AV_MAP;
    asked->domain_attr->resource_mgmt = FI_RM_ENABLED;
    asked->domain_attr->cq_data_size = 4;
    const Info info = answer(asked, FI_VERSION(1, 5));
    ASSERT_TRUE(info);
    EXPECT_EQ(info->caps, FI_TAGGED | FI_SEND | FI_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV);
    EXPECT_EQ(info->tx_attr->op_flags, FI_COMPLETION);
    EXPECT_EQ(info->rx_attr->op_flags, FI_COMPLETION);
    EXPECT_EQ(info->domain_attr->av_type, FI_AV_MAP);
    EXPECT_GE(info->domain_attr->cq_data_size, 4u);
    EXPECT_EQ(info->ep_attr->mem_tag_format, ~std::uint64_t{0});
}

/// Otherwise libfabric puts layers of its own above this provider.
TEST(ProviderInfo, is_not_there_for_what_it_does_not_have) {
    const auto refuses = [](const auto& change, const char* what) {
        const Info asked = hints();
        change(*asked);
        EXPECT_FALSE(answer(asked)) << what;
    };
    refuses([](fi_info& info) { info.ep_attr->type = FI_EP_MSG; }, "connections");
    refuses([](fi_info& info) { info.ep_attr->type = FI_EP_DGRAM; }, "datagrams");
    refuses([](fi_info& info) { info.caps = FI_TAGGED | FI_RMA; }, "remote memory");
    refuses([](fi_info& info) { info.caps = FI_ATOMIC; }, "atomics");
    refuses([](fi_info& info) { info.addr_format = FI_SOCKADDR_IN; }, "addresses of IP");
    refuses([](fi_info& info) { info.ep_attr->max_msg_size = (std::size_t{1} << 40) + 1; }, "longer messages");
    refuses([](fi_info& info) { info.tx_attr->inject_size = 4097; }, "longer injects");
    refuses([](fi_info& info) { info.tx_attr->iov_limit = 5; }, "more places");
    refuses([](fi_info& info) { info.rx_attr->iov_limit = 5; }, "more places");
    refuses([](fi_info& info) { info.tx_attr->msg_order = FI_ORDER_SAW; }, "another order");
    refuses([](fi_info& info) { info.tx_attr->comp_order = FI_ORDER_STRICT; }, "completions in order");
    refuses([](fi_info& info) { info.rx_attr->comp_order = FI_ORDER_STRICT; }, "completions in order");
    refuses([](fi_info& info) { info.domain_attr->cntr_cnt = 1; }, "counters");
    refuses([](fi_info& info) { info.domain_attr->ep_cnt = 5000; }, "more endpoints");
    refuses([](fi_info& info) { info.ep_attr->tx_ctx_cnt = 2; }, "scalable endpoints");
    refuses([](fi_info& info) { info.domain_attr->max_ep_rx_ctx = 2; }, "scalable endpoints");
    refuses([](fi_info& info) { info.domain_attr->cq_data_size = 9; }, "longer data");
    refuses([](fi_info& info) { info.domain_attr->name = ::strdup("eth0"); }, "another domain");
    refuses([](fi_info& info) { info.fabric_attr->name = ::strdup("ib"); }, "another fabric");
}

TEST(ProviderInfo, takes_its_own_answer_as_hints) {
    const Info first(info_for(version, nullptr));
    const Address address{1, 2, 3};
    first->src_addr = std::malloc(sizeof address);
    std::memcpy(first->src_addr, &address, sizeof address);
    first->src_addrlen = sizeof address;
    const Info again = answer(first);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->caps, first->caps);
    ASSERT_EQ(again->src_addrlen, sizeof address);
    EXPECT_EQ(std::memcmp(again->src_addr, &address, sizeof address), 0);
    EXPECT_EQ(again->dest_addr, nullptr);
    first->src_addrlen = 4;
    EXPECT_FALSE(answer(first)) << "no address of this provider";
}

TEST(ProviderInfo, progress_is_as_the_program_wants_it) {
    const Info asked = hints();
    EXPECT_EQ(answer(asked)->domain_attr->data_progress, FI_PROGRESS_MANUAL);
    asked->domain_attr->data_progress = FI_PROGRESS_AUTO;
    EXPECT_EQ(answer(asked)->domain_attr->data_progress, FI_PROGRESS_AUTO);
    EXPECT_EQ(answer(asked, FI_VERSION(1, 4))->domain_attr->mr_mode, static_cast<int>(FI_MR_SCALABLE));
}

} // namespace
} // namespace kumi::provider
