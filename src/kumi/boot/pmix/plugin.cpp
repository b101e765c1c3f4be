#include "kumi/boot/pmix/plugin.hpp"

#include <chrono>
#include <cstdio>
#include <functional>
#include <future>
#include <memory>
#include <pmix.h>
#include <string>
#include <thread>
#include <vector>

namespace kumi::boot::pmix {

struct Client {
    pmix_proc_t self{};
};

namespace {

bool fail(Why* why, const char* call, pmix_status_t status) {
    std::snprintf(why->text, sizeof why->text, "%s: %s", call, PMIx_Error_string(status));
    return false;
}

/// Runs a call of PMIx, which may block for ever, with a time limit. A call that is late is left running in its thread
/// with everything it needs; so it has no reference to anything of the caller's.
bool within(std::uint32_t milliseconds, const char* call, std::function<pmix_status_t()> work, Why* why) {
    auto task = std::make_shared<std::packaged_task<pmix_status_t()>>(std::move(work));
    auto answer = task->get_future();
    std::thread([task] { (*task)(); }).detach();
    if (answer.wait_for(std::chrono::milliseconds(milliseconds)) != std::future_status::ready) {
        std::snprintf(why->text, sizeof why->text, "%s: no answer within %g s", call, milliseconds / 1000.0);
        return false;
    }
    const pmix_status_t status = answer.get();
    return status == PMIX_SUCCESS || fail(why, call, status);
}

pmix_proc_t process(const Client& client, pmix_rank_t rank) {
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, client.self.nspace, rank);
    return proc;
}

/// A value from the server, freed with its last owner.
struct Got {
    ~Got() {
        if (value != nullptr) PMIX_VALUE_RELEASE(value);
    }
    pmix_value_t* value = nullptr;
};

std::shared_ptr<Got> get_value(std::uint32_t milliseconds, const pmix_proc_t& of, std::string key, Why* why) {
    auto got = std::make_shared<Got>();
    const std::string call = "PMIx_Get of " + key;
    const auto work = [got, of, key] { return PMIx_Get(&of, key.c_str(), nullptr, 0, &got->value); };
    if (!within(milliseconds, call.c_str(), work, why)) return nullptr;
    return got;
}

Client* open(std::uint32_t milliseconds, std::uint32_t* node, std::uint32_t* nodes, Why* why) {
    auto client = std::make_shared<Client>();
    if (!within(
            milliseconds, "PMIx_Init", [client] { return PMIx_Init(&client->self, nullptr, 0); }, why))
        return nullptr;
    const auto size = get_value(milliseconds, process(*client, PMIX_RANK_WILDCARD), PMIX_JOB_SIZE, why);
    if (!size) return nullptr;
    if (size->value->type != PMIX_UINT32 || client->self.rank >= size->value->data.uint32) {
        std::snprintf(why->text, sizeof why->text, "it does not say which process this is, and of how many");
        return nullptr;
    }
    *node = client->self.rank;
    *nodes = size->value->data.uint32;
    return new Client(*client);
}

bool put(Client*, const char* key, const void* bytes, std::size_t count, Why* why) {
    pmix_value_t value;
    PMIX_VALUE_CONSTRUCT(&value);
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = static_cast<char*>(const_cast<void*>(bytes)); // copied by PMIx_Put
    value.data.bo.size = count;
    const pmix_status_t status = PMIx_Put(PMIX_GLOBAL, key, &value);
    return status == PMIX_SUCCESS || fail(why, "PMIx_Put", status);
}

bool fence(Client* client, std::uint32_t milliseconds, Why* why) {
    if (!within(milliseconds, "PMIx_Commit", [] { return PMIx_Commit(); }, why)) return false;
    const auto work = [all = process(*client, PMIX_RANK_WILDCARD)] {
        bool yes = true;
        pmix_info_t collect;
        PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
        const pmix_status_t status = PMIx_Fence(&all, 1, &collect, 1);
        PMIX_INFO_DESTRUCT(&collect);
        return status;
    };
    return within(milliseconds, "PMIx_Fence", work, why);
}

bool get(Client* client, std::uint32_t milliseconds, std::uint32_t node, const char* key, void* context,
         void (*take)(void*, const void*, std::size_t), Why* why) {
    const auto got = get_value(milliseconds, process(*client, node), key, why);
    if (!got) return false;
    if (got->value->type != PMIX_BYTE_OBJECT) return fail(why, "PMIx_Get", PMIX_ERR_TYPE_MISMATCH);
    take(context, got->value->data.bo.bytes, got->value->data.bo.size);
    return true;
}

void close(Client* client, std::uint32_t milliseconds) {
    Why ignored;
    within(milliseconds, "PMIx_Finalize", [] { return PMIx_Finalize(nullptr, 0); }, &ignored);
    delete client;
}

constexpr Calls calls{plugin_version, open, put, fence, get, close};

} // namespace
} // namespace kumi::boot::pmix

extern "C" __attribute__((visibility("default"))) const kumi::boot::pmix::Calls* kumi_boot_pmix_calls() {
    return &kumi::boot::pmix::calls;
}
