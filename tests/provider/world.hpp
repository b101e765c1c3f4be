#pragma once

// A process of a job whose processes all run the same tests, by calls of libfabric alone.

#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace kumi::provider_test {

inline void check(ssize_t code, const char* what) {
    if (code < 0) throw std::runtime_error(std::string(what) + ": " + fi_strerror(static_cast<int>(-code)));
}

template <class Fid>
struct Close {
    void operator()(Fid* fid) const { EXPECT_EQ(fi_close(&fid->fid), 0); }
};
template <class Fid>
using Owned = std::unique_ptr<Fid, Close<Fid>>;

/// What a test gets of a completion.
struct Told {
    fi_cq_tagged_entry entry{};
    fi_cq_err_entry error{}; // if err is not 0
    fi_addr_t source = FI_ADDR_NOTAVAIL;
};

/// An endpoint with a queue of its own.
class Port {
public:
    Port(fid_domain* domain, fi_info* info, std::uint64_t bind_flags = FI_TRANSMIT | FI_RECV) {
        fid_av* av = nullptr;
        fi_av_attr av_attributes{};
        check(fi_av_open(domain, &av_attributes, &av, nullptr), "fi_av_open");
        addresses_.reset(av);
        fid_cq* cq = nullptr;
        fi_cq_attr attributes{};
        attributes.format = FI_CQ_FORMAT_TAGGED;
        attributes.wait_obj = FI_WAIT_UNSPEC;
        check(fi_cq_open(domain, &attributes, &cq, nullptr), "fi_cq_open");
        queue_.reset(cq);
        fid_ep* ep = nullptr;
        check(fi_endpoint(domain, info, &ep, nullptr), "fi_endpoint");
        endpoint_.reset(ep);
        check(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
        check(fi_ep_bind(ep, &cq->fid, bind_flags), "fi_ep_bind");
        check(fi_enable(ep), "fi_enable");
        std::size_t bytes = sizeof name_;
        check(fi_getname(&ep->fid, name_, &bytes), "fi_getname");
        std::memcpy(&node, name_ + 8, sizeof node);
    }

    /// The endpoint of the same number on another node.
    fi_addr_t at(std::uint32_t other) {
        while (peers_.size() <= other) {
            const auto next = static_cast<std::uint32_t>(peers_.size());
            std::memcpy(name_ + 8, &next, sizeof next);
            fi_addr_t address = FI_ADDR_NOTAVAIL;
            EXPECT_EQ(fi_av_insert(addresses_.get(), name_, 1, &address, 0, nullptr), 1);
            peers_.push_back(address);
        }
        return peers_[other];
    }
    fid_ep* operator*() const { return endpoint_.get(); }
    fid_cq* queue() const { return queue_.get(); }
    fid_av* addresses() const { return addresses_.get(); }

    /// The next completion, whichever.
    Told next() {
        Told told;
        while (true) {
            const ssize_t got = fi_cq_readfrom(queue(), &told.entry, 1, &told.source);
            if (got == 1) return told;
            if (got == -FI_EAVAIL) {
                EXPECT_EQ(fi_cq_readerr(queue(), &told.error, 0), 1);
                return told;
            }
            EXPECT_EQ(got, -FI_EAGAIN);
            if (got != -FI_EAGAIN) return told;
        }
    }
    /// Whether none comes for a while.
    bool is_quiet() {
        fi_cq_tagged_entry entry;
        for (int i = 0; i < 2000; ++i)
            if (fi_cq_read(queue(), &entry, 1) != -FI_EAGAIN) return false;
        return true;
    }

    void send(std::uint32_t to, const void* from, std::size_t bytes, std::uint64_t tag, void* context = nullptr) {
        while (true) {
            const ssize_t code = fi_tsend(**this, from, bytes, nullptr, at(to), tag, context);
            if (code != -FI_EAGAIN) return check(code, "fi_tsend");
            keep_going();
        }
    }
    void inject(std::uint32_t to, const void* from, std::size_t bytes, std::uint64_t tag) {
        while (true) {
            const ssize_t code = fi_tinject(**this, from, bytes, at(to), tag);
            if (code != -FI_EAGAIN) return check(code, "fi_tinject");
            keep_going();
        }
    }
    void receive(fi_addr_t from, void* to, std::size_t bytes, std::uint64_t tag, std::uint64_t ignore = 0,
                 void* context = nullptr) {
        check(fi_trecv(**this, to, bytes, nullptr, from, tag, ignore, context), "fi_trecv");
    }

    std::uint32_t node = 0;

private:
    /// Makes room; what comes meanwhile is for next().
    void keep_going() { fi_cq_read(queue(), nullptr, 0); }

    Owned<fid_av> addresses_;
    Owned<fid_cq> queue_;
    Owned<fid_ep> endpoint_;
    std::vector<fi_addr_t> peers_;
    unsigned char name_[64] = {};
};

struct World {
    World() {
        fi_info* const hints = fi_allocinfo();
        hints->caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE;
        hints->ep_attr->type = FI_EP_RDM;
        hints->tx_attr->op_flags = FI_COMPLETION;
        hints->rx_attr->op_flags = FI_COMPLETION;
        hints->fabric_attr->prov_name = ::strdup("kumi");
        check(fi_getinfo(FI_VERSION(1, 9), nullptr, nullptr, 0, hints, &info), "fi_getinfo");
        fi_freeinfo(hints);
        fid_fabric* made_fabric = nullptr;
        check(fi_fabric(info->fabric_attr, &made_fabric, nullptr), "fi_fabric");
        fabric.reset(made_fabric);
        fid_domain* made_domain = nullptr;
        check(fi_domain(made_fabric, info, &made_domain, nullptr), "fi_domain");
        domain.reset(made_domain);
        port.emplace_back(domain.get(), info);
        meeting.emplace_back(domain.get(), info);
        nodes = static_cast<std::uint32_t>(std::stoul(std::getenv("KUMI_NODES")));
        port.front().at(nodes - 1); // inserts all: messages of others have no source
    }
    ~World() {
        port.clear();
        meeting.clear();
        fi_freeinfo(info);
    }

    Port& main() { return port.front(); }
    std::uint32_t node() { return main().node; }
    /// All nodes wait for each other.
    void meet(std::uint32_t all) {
        Port& mine = meeting.front();
        const std::uint32_t me = mine.node;
        for (std::uint32_t i = 1; me == 0 && i < all; ++i) mine.receive(mine.at(i), nullptr, 0, 1);
        if (me != 0) mine.inject(0, nullptr, 0, 1), mine.receive(mine.at(0), nullptr, 0, 2);
        for (std::uint32_t i = 1; i < (me == 0 ? all : 2); ++i) mine.next();
        for (std::uint32_t i = 1; me == 0 && i < all; ++i) mine.inject(i, nullptr, 0, 2);
    }
    void meet() { meet(nodes); }

    fi_info* info = nullptr;
    Owned<fid_fabric> fabric;
    Owned<fid_domain> domain;
    std::uint32_t nodes = 0;
    std::vector<Port> port, meeting; // one each
};
inline World* world = nullptr;

/// Bytes that depend on their place and on `seed`.
inline std::vector<unsigned char> pattern(std::size_t bytes, unsigned seed) {
    std::vector<unsigned char> all(bytes);
    for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<unsigned char>((i * 31 + i / 251 + seed) & 0xff);
    return all;
}

} // namespace kumi::provider_test
