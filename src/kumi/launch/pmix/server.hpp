#pragma once

// The PMIx server for the MPI processes of one host: what Open MPI asks its launcher. It is the program kumi-pmix, so
// that no other program loads libpmix; host::PmiServers starts it and talks to it by the frames of boot/wire.hpp.

#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"
#include "kumi/boot/wire.hpp"
#include "kumi/launch/host/job_map.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <pmix_server.h>
#include <string>

namespace kumi::launch::pmix {

/// libpmix calls back without an argument of ours, so a process can have only one Server. It calls from a thread of its
/// own, where nothing may block, and nothing of libpmix be called that waits for that thread.
class Server {
public:
    /// `socket` leads to the starter of the host's nodes; `folder` is for files of libpmix and of the processes.
    Server(host::JobMap map, std::string folder, base::Descriptor socket);
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    /// Starts libpmix's server, tells it the job, and sends the variables by which processes find it.
    Result<void> start();
    /// Serves until the starter closes its end of the socket.
    void serve();

    // What a process asks; called by libpmix.
    void on_connected(const pmix_proc_t& process) { tell(boot::Kind::mpi_joined, process); }
    void on_finalized(const pmix_proc_t& process) { tell(boot::Kind::mpi_left, process); }
    void on_abort(const pmix_proc_t& process, int code, const char* text);
    pmix_status_t on_fence(const pmix_proc_t* processes, std::size_t count, char* content, std::size_t content_bytes,
                           pmix_modex_cbfunc_t answer, void* argument);
    pmix_status_t on_fetch(const pmix_proc_t& of, pmix_modex_cbfunc_t answer, void* argument);
    void on_fetched_here(std::uint32_t id, std::uint32_t asker, std::uint32_t target, pmix_status_t status,
                         const char* content, std::size_t bytes);
    void on_print(const pmix_proc_t& process, const pmix_info_t& what);
    /// Runs `task` on the thread of serve().
    void later(std::function<void()> task);

private:
    struct Question {
        pmix_modex_cbfunc_t answer;
        void* argument;
    };

    Result<void> register_job();
    Result<std::vector<std::string>> variables() const;
    /// Of a process of this host; nothing of others, such as tools that connect.
    void tell(boot::Kind kind, const pmix_proc_t& process, Bytes body = {});
    void send(boot::Kind kind, Bytes body);
    void on_frame(const boot::Frame& frame);
    void on_fenced(const boot::Frame& frame);
    void on_fetch_from_afar(const boot::Frame& frame);
    void on_fetched(const boot::Frame& frame);
    void run_tasks();

    const host::JobMap map_;
    const std::string folder_;
    const base::Descriptor socket_;
    base::Descriptor tasks_wake_;
    boot::FrameReader frames_;

    std::mutex mutex_;                                   // of what follows
    std::map<std::string, std::deque<Question>> fences_; // by key: local processes have met there, others not yet
    std::map<std::uint32_t, Question> fetches_;
    std::uint32_t fetch_id_ = 0;
    std::deque<std::function<void()>> tasks_;
    std::mutex sending_;
};

} // namespace kumi::launch::pmix
