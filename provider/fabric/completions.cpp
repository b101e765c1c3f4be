#include "provider/fabric/objects.hpp"

#include <algorithm>
#include <cstring>

namespace kumi::provider {
namespace {

std::size_t entry_bytes(fi_cq_format format) noexcept {
    switch (format) {
    case FI_CQ_FORMAT_MSG: return sizeof(fi_cq_msg_entry);
    case FI_CQ_FORMAT_DATA: return sizeof(fi_cq_data_entry);
    case FI_CQ_FORMAT_TAGGED: return sizeof(fi_cq_tagged_entry);
    default: return sizeof(fi_cq_entry);
    }
}

/// The formats are beginnings of the longest of them.
void write_entry(const Completion& completion, void* to, std::size_t bytes) noexcept {
    static_assert(offsetof(fi_cq_tagged_entry, tag) == offsetof(fi_cq_data_entry, data) + sizeof(std::uint64_t));
    const fi_cq_tagged_entry entry{completion.context, completion.flags, completion.length,
                                   completion.buffer,  completion.data,  completion.tag};
    std::memcpy(to, &entry, bytes);
}

/// Takes what is there, up to the first error.
ssize_t take(const Turn&, CompletionObject& completions, void* to, std::size_t count, fi_addr_t* sources) {
    if (completions.queue.is_empty()) return -FI_EAGAIN;
    const std::size_t bytes = entry_bytes(completions.format);
    std::size_t taken = 0;
    while (taken < count && !completions.queue.is_empty() && completions.queue.front().error == 0) {
        const Completion& completion = completions.queue.front();
        write_entry(completion, static_cast<std::byte*>(to) + taken * bytes, bytes);
        if (sources != nullptr) sources[taken] = completion.address;
        completions.queue.pop();
        ++taken;
    }
    if (taken != 0 || count == 0) return static_cast<ssize_t>(taken);
    return -FI_EAVAIL;
}

ssize_t read_from(fid_cq* fid, void* to, std::size_t count, fi_addr_t* sources) {
    CompletionObject& completions = object<CompletionObject>(fid);
    const engine::Turn turn = completions.domain->process->take_turn();
    // A program that asks for none wants room for its sends.
    if (completions.queue.is_empty() || count == 0) completions.domain->process->make_progress(turn);
    return take(turn, completions, to, count, sources);
}

ssize_t read(fid_cq* fid, void* to, std::size_t count) { return read_from(fid, to, count, nullptr); }

ssize_t read_error(fid_cq* fid, fi_cq_err_entry* to, std::uint64_t) {
    CompletionObject& completions = object<CompletionObject>(fid);
    const engine::Turn turn = completions.domain->process->take_turn();
    if (completions.queue.is_empty() || completions.queue.front().error == 0) return -FI_EAGAIN;
    const Completion& completion = completions.queue.front();
    to->op_context = completion.context;
    to->flags = completion.flags;
    to->len = completion.length;
    to->buf = completion.buffer;
    to->data = completion.data;
    to->tag = completion.tag;
    to->olen = completion.excess;
    to->err = completion.error;
    to->prov_errno = completion.error;
    to->err_data_size = 0;
    completions.queue.pop();
    return 1;
}

ssize_t wait_from(fid_cq* fid, void* to, std::size_t count, fi_addr_t* sources, const void*, int milliseconds) {
    CompletionObject& completions = object<CompletionObject>(fid);
    if (!completions.can_wait) return -FI_ENOSYS;
    const Instant deadline = milliseconds < 0 ? never : now() + std::chrono::milliseconds(milliseconds);
    completions.domain->process->wait(
        [&](const Turn&) { return !completions.queue.is_empty() || std::exchange(completions.is_signalled, false); },
        deadline);
    return take(completions.domain->process->take_turn(), completions, to, count, sources);
}

ssize_t wait(fid_cq* fid, void* to, std::size_t count, const void* condition, int milliseconds) {
    return wait_from(fid, to, count, nullptr, condition, milliseconds);
}

int signal(fid_cq* fid) {
    CompletionObject& completions = object<CompletionObject>(fid);
    const engine::Turn turn = completions.domain->process->take_turn();
    completions.is_signalled = true;
    completions.domain->process->messages().dispatcher().loop().call(turn);
    return 0;
}

const char* show_error(fid_cq*, int error, const void*, char* to, std::size_t bytes) {
    const char* const text = fi_strerror(error);
    if (to != nullptr && bytes != 0) std::strncpy(to, text, bytes - 1), to[bytes - 1] = '\0';
    return text;
}

int close_completions(fid* fid) {
    CompletionObject& completions = object<CompletionObject>(fid);
    {
        const engine::Turn turn = completions.domain->process->take_turn();
        if (completions.users != 0) return -FI_EBUSY;
    }
    --completions.domain->users;
    delete &completions;
    return 0;
}

fi_ops fid_ops{sizeof(fi_ops), close_completions, not_here, not_here, not_here, not_here, not_here};
fi_ops_cq ops{sizeof(fi_ops_cq), read, read_from, read_error, wait, wait_from, signal, show_error};

} // namespace

int open_completions(fid_domain* domain, fi_cq_attr* attributes, fid_cq** completions, void* context) {
    const fi_wait_obj wait = attributes->wait_obj;
    if (wait != FI_WAIT_NONE && wait != FI_WAIT_UNSPEC) return -FI_ENOSYS;
    return guarded([&] {
        auto* const made = new CompletionObject();
        static_cast<fid_cq&>(*made) = {.fid = {FI_CLASS_CQ, context, &fid_ops}, .ops = &ops};
        made->domain = &object<DomainObject>(domain);
        made->can_wait = wait != FI_WAIT_NONE;
        if (attributes->format == FI_CQ_FORMAT_UNSPEC) attributes->format = FI_CQ_FORMAT_CONTEXT;
        made->format = attributes->format;
        ++made->domain->users;
        *completions = made;
        return 0;
    });
}

} // namespace kumi::provider
