#include "kumi/launch/pmix/callbacks.hpp"

#include "kumi/launch/host/pmi/pmi_frames.hpp"

#include <span>

namespace kumi::launch::pmix {
namespace {

Server* server = nullptr;

pmix_status_t connected(const pmix_proc_t* process, void*, pmix_info_t[], std::size_t, pmix_op_cbfunc_t, void*) {
    server->on_connected(*process);
    return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t finalized(const pmix_proc_t* process, void*, pmix_op_cbfunc_t, void*) {
    server->on_finalized(*process);
    return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t aborted(const pmix_proc_t* process, void*, int code, const char text[], pmix_proc_t[], std::size_t,
                      pmix_op_cbfunc_t, void*) {
    server->on_abort(*process, code, text);
    return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t fence(const pmix_proc_t processes[], std::size_t count, const pmix_info_t[], std::size_t, char* content,
                    std::size_t content_bytes, pmix_modex_cbfunc_t answer, void* argument) {
    return server->on_fence(processes, count, content, content_bytes, answer, argument);
}

pmix_status_t direct_modex(const pmix_proc_t* of, const pmix_info_t[], std::size_t, pmix_modex_cbfunc_t answer,
                           void* argument) {
    return server->on_fetch(*of, answer, argument);
}

pmix_status_t spawn(const pmix_proc_t* process, const pmix_info_t[], std::size_t, const pmix_app_t[], std::size_t,
                    pmix_spawn_cbfunc_t, void*) {
    server->on_abort(*process, 1, host::spawn_refused);
    return PMIX_ERR_NOT_SUPPORTED;
}

pmix_status_t register_events(pmix_status_t*, std::size_t, const pmix_info_t[], std::size_t, pmix_op_cbfunc_t, void*) {
    return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t deregister_events(pmix_status_t*, std::size_t, pmix_op_cbfunc_t, void*) {
    return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t notify(pmix_status_t, const pmix_proc_t*, pmix_data_range_t, pmix_info_t[], std::size_t, pmix_op_cbfunc_t,
                     void*) {
    return PMIX_OPERATION_SUCCEEDED;
}

/// Open MPI prints this way what goes wrong in MPI_Init.
void print(const pmix_proc_t* process, const pmix_info_t data[], std::size_t count, const pmix_info_t[], std::size_t,
           pmix_op_cbfunc_t done, void* argument) {
    for (const pmix_info_t& what : std::span(data, count)) server->on_print(*process, what);
    if (done != nullptr) server->later([=] { done(PMIX_SUCCESS, argument); }); // called from here it would hang
}

} // namespace

pmix_server_module_t callbacks_for(Server& which) {
    server = &which;
    pmix_server_module_t module{};
    module.client_connected2 = connected;
    module.client_finalized = finalized;
    module.abort = aborted;
    module.fence_nb = fence;
    module.direct_modex = direct_modex;
    module.spawn = spawn;
    module.register_events = register_events;
    module.deregister_events = deregister_events;
    module.notify_event = notify;
    module.log = print;
    return module;
}

} // namespace kumi::launch::pmix
