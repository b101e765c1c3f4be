#include "udp/ports.hpp"

#include "contestant/work.hpp"

#include "kumi/kumi.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <unistd.h>
#include <vector>

namespace kumi::bench {
namespace {

namespace fs = std::filesystem;

// Messages: from a neighbour, that it is there; to node 0, that this node is ready; from node 0, the end.
enum class Word : std::uint32_t { neighbour, ready, end };
struct Note {
    Word word;
    pid_t process;
};

/// The inodes of all UDP sockets of this network.
std::set<std::string> udp_inodes() {
    std::set<std::string> inodes;
    for (const char* file : {"/proc/net/udp", "/proc/net/udp6"}) {
        std::ifstream lines(file);
        std::string line;
        std::getline(lines, line); // the heading
        while (std::getline(lines, line)) {
            constexpr int fields_before_inode = 9;
            std::istringstream fields(line);
            std::string field;
            for (int i = 0; i <= fields_before_inode; ++i) fields >> field;
            inodes.insert(field);
        }
    }
    return inodes;
}

} // namespace

std::size_t udp_sockets_of(const std::vector<pid_t>& processes) {
    const std::set<std::string> udp = udp_inodes();
    std::set<std::string> found; // a socket of several processes counts once
    for (const pid_t pid : processes) {
        std::error_code gone; // a descriptor may be closed meanwhile
        for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", gone)) {
            const std::string target = fs::read_symlink(entry.path(), gone).string();
            constexpr std::string_view start = "socket:[";
            if (!target.starts_with(start)) continue;
            const std::string inode = target.substr(start.size(), target.size() - start.size() - 1);
            if (udp.contains(inode)) found.insert(inode);
        }
    }
    return found.size();
}

int count_ports(const Task& task) {
    auto job = PmJob::join();
    if (!job) return fail(job.error());
    std::vector<pid_t> processes; // at node 0: those that have talked to their neighbours
    bool neighbour_came = false;
    bool counted = false;
    job->on_message([&](Message& message) {
        Note note{};
        if (!read_value(message.bytes(), note)) return;
        if (note.word == Word::neighbour) neighbour_came = true;
        if (note.word == Word::ready) processes.push_back(note.process);
        if (note.word == Word::end) counted = true;
    });
    const auto say = [&](Node to, Word word) { return job->send(to, bytes_of(Note{word, ::getpid()})); };
    if (auto sent = say((job->node() + 1) % job->nodes(), Word::neighbour); !sent) return fail(sent.error());
    job->wait_until([&] { return neighbour_came; });
    if (auto sent = say(0, Word::ready); !sent) return fail(sent.error());
    if (job->node() != 0) return job->wait_until([&] { return counted; }) ? 0 : 1;
    job->wait_until([&] { return processes.size() == job->nodes(); });
    processes.push_back(::getppid()); // kumi run
    const std::size_t sockets = udp_sockets_of(processes);
    if (sockets == 0)
        return fail(error("no node has a UDP socket: the job does not run over udp, which KUMI_DEVICE=udp asks for"));
    report(("udp." + task.what).c_str(), static_cast<double>(sockets));
    for (Node node = 1; node < job->nodes(); ++node)
        if (auto sent = say(node, Word::end); !sent) return fail(sent.error());
    return 0;
}

} // namespace kumi::bench
