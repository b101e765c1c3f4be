#include "kumi/launch/pmix/server.hpp"

#include "kumi/launch/host/pmi/packed_text.hpp"
#include "kumi/launch/host/pmi/pmi_frames.hpp"
#include "kumi/launch/pmix/callbacks.hpp"
#include "kumi/launch/pmix/job_info.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fmt/ranges.h>
#include <future>
#include <memory>
#include <pmix.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace kumi::launch::pmix {
namespace {

using boot::Kind;
using host::longest_text;

/// The end of a call of libpmix that ends later, on its own thread.
class Completion {
public:
    static void complete(pmix_status_t status, void* self) {
        static_cast<Completion*>(self)->status_.set_value(status);
    }
    /// The outcome of a call that has answered `begun`.
    pmix_status_t after(pmix_status_t begun) {
        if (begun == PMIX_OPERATION_SUCCEEDED) return PMIX_SUCCESS;
        return begun == PMIX_SUCCESS ? status_.get_future().get() : begun;
    }

private:
    std::promise<pmix_status_t> status_;
};

Result<void> check(pmix_status_t status, const char* what) {
    if (status == PMIX_SUCCESS) return {};
    return error("PMIx: {}: {}", what, PMIx_Error_string(status));
}

pmix_proc_t process(const std::string& job, pmix_rank_t node) {
    pmix_proc_t one;
    PMIX_LOAD_PROCID(&one, job.c_str(), node);
    return one;
}

void answer_question(pmix_modex_cbfunc_t answer, void* argument, pmix_status_t status, Bytes content) {
    auto* const copy = new std::vector<std::byte>(content.begin(), content.end());
    const auto release = [](void* bytes) { delete static_cast<std::vector<std::byte>*>(bytes); };
    answer(status, copy->empty() ? nullptr : reinterpret_cast<const char*>(copy->data()), copy->size(), argument,
           release, copy);
}

} // namespace

Server::Server(host::JobMap map, std::string folder, base::Descriptor socket)
    : map_(std::move(map)), folder_(std::move(folder)), socket_(std::move(socket)),
      tasks_wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

// ---- starting

Result<void> Server::start() {
    Infos info = server_info(map_, folder_);
    pmix_server_module_t module = callbacks_for(*this);
    if (auto begun = check(PMIx_server_init(&module, info.data(), info.size()), "starting the server"); !begun)
        return begun;
    if (auto registered = register_job(); !registered) return registered;
    const auto found = variables();
    if (!found) return found.error();
    std::string texts;
    for (const std::string& variable : *found) texts.append(variable).push_back('\0');
    send(Kind::environment, bytes_of(std::string_view(texts)));
    return {};
}

Result<void> Server::register_job() {
    auto info = job_info(map_, folder_);
    if (!info) return info.error();
    Completion job;
    const pmix_status_t begun = PMIx_server_register_nspace(map_.name.c_str(), static_cast<int>(map_.here().count),
                                                            info->data(), info->size(), Completion::complete, &job);
    if (auto ok = check(job.after(begun), "registering the job"); !ok) return ok;
    for (std::uint32_t slot = 0; slot < map_.here().count; ++slot) {
        const pmix_proc_t one = process(map_.name, map_.here().first + slot);
        Completion client;
        const pmix_status_t started =
            PMIx_server_register_client(&one, ::geteuid(), ::getegid(), nullptr, Completion::complete, &client);
        if (auto ok = check(client.after(started), "registering a process"); !ok) return ok;
    }
    return {};
}

/// The variables of a process, but for its rank, which is all that differs.
Result<std::vector<std::string>> Server::variables() const {
    const pmix_proc_t one = process(map_.name, map_.here().first);
    char** environment = nullptr;
    if (auto ok = check(PMIx_server_setup_fork(&one, &environment), "preparing processes"); !ok) return ok.error();
    std::vector<std::string> all;
    for (char** variable = environment; variable != nullptr && *variable != nullptr; ++variable) {
        if (std::string_view(*variable).find('=') != std::string_view::npos &&
            !std::string_view(*variable).starts_with("PMIX_RANK="))
            all.emplace_back(*variable);
        std::free(*variable);
    }
    std::free(environment);
    return all;
}

// ---- what processes ask, on libpmix's thread

void Server::send(Kind kind, Bytes body) {
    const std::lock_guard lock(sending_);
    // The starter reads always. When it is gone, serve() ends.
    (void)boot::send_frame(socket_.get(), kind, body);
}

void Server::tell(Kind kind, const pmix_proc_t& process, Bytes body) {
    const bool is_here = map_.name == process.nspace && process.rank - map_.here().first < map_.here().count;
    if (is_here) send(kind, host::with_node(process.rank, body));
}

void Server::on_abort(const pmix_proc_t& process, int code, const char* text) {
    const std::string_view said = text == nullptr ? "" : text;
    tell(Kind::mpi_aborted, process, host::encode(host::Abort{code, std::string(said == "N/A" ? "" : said)}));
}

pmix_status_t Server::on_fence(const pmix_proc_t* processes, std::size_t count, char* content,
                               std::size_t content_bytes, pmix_modex_cbfunc_t answer, void* argument) {
    std::vector<pmix_rank_t> nodes;
    for (const pmix_proc_t& one : std::span(processes, count)) {
        if (map_.name != one.nspace) return PMIX_ERR_NOT_SUPPORTED; // of another job
        nodes.push_back(one.rank);
    }
    std::ranges::sort(nodes);
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    const bool are_all = nodes.empty() || nodes.back() == PMIX_RANK_WILDCARD;
    const std::string key = are_all ? "x*" : fmt::format("x{}", fmt::join(nodes, ","));
    {
        const std::lock_guard lock(mutex_);
        fences_[key].push_back({answer, argument});
    }
    const Bytes bytes = std::as_bytes(std::span(content, content_bytes)); // stays libpmix's
    send(Kind::fence, host::encode(host::Fence{key, {bytes.begin(), bytes.end()}}));
    return PMIX_SUCCESS;
}

pmix_status_t Server::on_fetch(const pmix_proc_t& of, pmix_modex_cbfunc_t answer, void* argument) {
    if (map_.name != of.nspace || of.rank >= map_.nodes()) return PMIX_ERR_NOT_FOUND;
    host::Fetch fetch{.id = 0, .asker = map_.here().first, .target = of.rank, .status = PMIX_SUCCESS, .content = {}};
    {
        const std::lock_guard lock(mutex_);
        fetch.id = fetch_id_++;
        fetches_.emplace(fetch.id, Question{answer, argument});
    }
    send(Kind::fetch, host::encode(fetch));
    return PMIX_SUCCESS;
}

void Server::on_fetched_here(std::uint32_t id, std::uint32_t asker, std::uint32_t target, pmix_status_t status,
                             const char* content, std::size_t bytes) {
    const Bytes found = std::as_bytes(std::span(content, content == nullptr ? 0 : bytes));
    send(Kind::fetched, host::encode(host::Fetch{id, asker, target, status, {found.begin(), found.end()}}));
}

void Server::on_print(const pmix_proc_t& process, const pmix_info_t& what) {
    const pmix_value_t& value = what.value;
    std::string_view text;
    if (value.type == PMIX_STRING && value.data.string != nullptr) text = value.data.string;
    if (value.type == PMIX_BYTE_OBJECT && value.data.bo.bytes != nullptr)
        text = longest_text({value.data.bo.bytes, value.data.bo.size});
    if (text.empty()) return;
    std::string line(text);
    if (line.back() != '\n') line += '\n';
    tell(Kind::output, process, bytes_of(std::string_view(line)));
}

void Server::later(std::function<void()> task) {
    {
        const std::lock_guard lock(mutex_);
        tasks_.push_back(std::move(task));
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(tasks_wake_.get(), &one, sizeof one);
}

// ---- what `kumi run` and other hosts answer, on the main thread

void Server::serve() {
    while (true) {
        std::array<pollfd, 2> ready{{{socket_.get(), POLLIN, 0}, {tasks_wake_.get(), POLLIN, 0}}};
        if (::poll(ready.data(), ready.size(), -1) < 0) continue;
        if (ready[1].revents != 0) run_tasks();
        if (ready[0].revents == 0) continue;
        const bool open = frames_.read_from(socket_.get());
        while (true) {
            auto frame = frames_.next();
            if (!frame) return;
            if (!*frame) break;
            on_frame(**frame);
        }
        if (!open) return;
    }
}

void Server::run_tasks() {
    std::uint64_t wakes = 0;
    [[maybe_unused]] const auto got = ::read(tasks_wake_.get(), &wakes, sizeof wakes);
    std::deque<std::function<void()>> tasks;
    {
        const std::lock_guard lock(mutex_);
        tasks.swap(tasks_);
    }
    for (const auto& task : tasks) task();
}

void Server::on_frame(const boot::Frame& frame) {
    switch (frame.kind) {
    case Kind::fenced: return on_fenced(frame);
    case Kind::fetch: return on_fetch_from_afar(frame);
    case Kind::fetched: return on_fetched(frame);
    default: return;
    }
}

void Server::on_fenced(const boot::Frame& frame) {
    const auto fence = host::decode_fence(frame.body);
    if (!fence) return;
    Question question{};
    {
        const std::lock_guard lock(mutex_);
        const auto found = fences_.find(fence->key);
        if (found == fences_.end()) return;
        question = found->second.front();
        found->second.pop_front();
        if (found->second.empty()) fences_.erase(found);
    }
    answer_question(question.answer, question.argument, PMIX_SUCCESS, fence->content);
}

void Server::on_fetch_from_afar(const boot::Frame& frame) {
    const auto fetch = host::decode_fetch(frame.body);
    if (!fetch) return;
    struct Asked {
        Server* server;
        std::uint32_t id, asker, target;
    };
    auto asked = std::make_unique<Asked>(Asked{this, fetch->id, fetch->asker, fetch->target});
    const auto answer = [](pmix_status_t status, char* content, std::size_t bytes, void* argument) {
        const std::unique_ptr<Asked> for_whom(static_cast<Asked*>(argument));
        for_whom->server->on_fetched_here(for_whom->id, for_whom->asker, for_whom->target, status, content, bytes);
    };
    const pmix_proc_t one = process(map_.name, fetch->target);
    const pmix_status_t begun = PMIx_server_dmodex_request(&one, answer, asked.get());
    if (begun == PMIX_SUCCESS) asked.release(); // `answer` has it
    else on_fetched_here(fetch->id, fetch->asker, fetch->target, begun, nullptr, 0);
}

void Server::on_fetched(const boot::Frame& frame) {
    const auto fetch = host::decode_fetch(frame.body);
    if (!fetch) return;
    Question question{};
    {
        const std::lock_guard lock(mutex_);
        const auto found = fetches_.find(fetch->id);
        if (found == fetches_.end()) return;
        question = found->second;
        fetches_.erase(found);
    }
    answer_question(question.answer, question.argument, fetch->status, fetch->content);
}

} // namespace kumi::launch::pmix
