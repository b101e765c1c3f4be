// A node that does what its arguments say, one after the other: kumi run -n 4 ./actor join 2:exit=3 wait
//
// A step is VERB or VERB=VALUE. "2:" before it: only node 2, once it has joined. "first:" before it: only the process
// that first asks for it in the folder $ACTOR_FOLDER, as nobody has a number before joining.
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <kumi/kumi.hpp>
#include <optional>
#include <poll.h>
#include <sched.h>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace {

volatile std::sig_atomic_t caught = 0;

void write_all(int to, std::string_view text) {
    while (!text.empty()) {
        const ssize_t count = ::write(to, text.data(), text.size());
        if (count < 0 && errno != EINTR) std::_Exit(99);
        if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
    }
}

int signal_named(std::string_view name) {
    if (name == "TERM") return SIGTERM;
    if (name == "INT") return SIGINT;
    if (name == "QUIT") return SIGQUIT;
    if (name == "USR1") return SIGUSR1;
    if (name == "USR2") return SIGUSR2;
    if (name == "WINCH") return SIGWINCH;
    return SIGHUP;
}

long processor_us() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1'000'000 + used.ru_utime.tv_usec + used.ru_stime.tv_usec;
}

void segfault() {
    void* forbidden = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *static_cast<volatile char*>(forbidden) = 1;
}

/// Long lines in small pieces: whoever passes them on must put them together.
void write_lines(unsigned node, long lines) {
    for (long line = 0; line < lines; ++line) {
        const std::string text =
            fmt::format("{} {} {}\n", node, line, std::string(3000, static_cast<char>('a' + node)));
        for (std::size_t at = 0; at < text.size(); at += 177) write_all(1, std::string_view(text).substr(at, 177));
    }
}

void flood(long bytes) {
    const std::string line = std::string(99, 'f') + "\n";
    for (long written = 0; bytes == 0 || written < bytes; written += 100) write_all(1, line);
}

std::string input_summary() {
    unsigned long bytes = 0;
    unsigned long sum = 0;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(0, buffer, sizeof buffer)) > 0;)
        for (ssize_t i = 0; i < got; ++i) sum = sum * 31 + static_cast<unsigned char>(buffer[i]), ++bytes;
    return fmt::format("{} bytes, sum {}", bytes, sum);
}

std::string path_of_input() {
    char path[256] = {};
    return ::readlink("/proc/self/fd/0", path, sizeof path - 1) < 0 ? "closed" : path;
}

std::string allowed_processors() {
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof set, &set);
    std::string text;
    for (int i = 0; i < CPU_SETSIZE; ++i)
        if (CPU_ISSET(i, &set)) text += fmt::format("{}{}", text.empty() ? "" : ",", i);
    return text;
}

bool is_first(std::string_view what) {
    const char* folder = std::getenv("ACTOR_FOLDER");
    const int file =
        ::open(fmt::format("{}/{}", folder == nullptr ? "." : folder, what).c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);
    if (file < 0) return false;
    ::close(file);
    return true;
}

class Actor {
public:
    /// Does one step; false: end with exit_code.
    bool act(std::string_view verb, const std::string& value) {
        const long number = std::atol(value.c_str());
        if (verb == "join") return join();
        if (verb == "join_again") say("{}", kumi::Job::join().error().text());
        else if (verb == "leave") job_.reset();
        else if (verb == "wait") job_->wait_until([] { return false; });
        else if (verb == "wait_ms") wait_ms(number);
        else if (verb == "sleep") ::poll(nullptr, 0, static_cast<int>(number));
        else if (verb == "forever")
            while (true) ::poll(nullptr, 0, -1);
        else if (verb == "ignore") ::signal(signal_named(value), SIG_IGN);
        else if (verb == "handle") ::signal(signal_named(value), [](int signal) { caught = signal; });
        else if (verb == "until_signal") until_signal();
        else if (verb == "say") say("{}", value);
        else if (verb == "complain") write_all(2, value + "\n");
        else if (verb == "bare") write_all(1, value);
        else if (verb == "long") write_all(1, std::string(static_cast<std::size_t>(number), 'x') + "\n");
        else if (verb == "lines") write_lines(job_->node(), number);
        else if (verb == "flood") flood(number);
        else if (verb == "input") say("{}", input_summary());
        else if (verb == "input_path") say("{}", path_of_input());
        else if (verb == "processors") say("may use {}", allowed_processors());
        else if (verb == "stamp") say("died at {}", std::chrono::steady_clock::now().time_since_epoch().count());
        else if (verb == "fork") (void)::fork();
        else if (verb == "exit") std::exit(static_cast<int>(number)); // without leaving: the job is not destroyed
        else if (verb == "late_exit") ::poll(nullptr, 0, static_cast<int>(number)), std::exit(0);
        else if (verb == "abort") std::abort();
        else if (verb == "segfault") segfault();
        else fmt::print(stderr, "actor: {}: no such verb\n", verb), std::_Exit(98);
        return true;
    }

    bool is_node(std::string_view number) const { return number == number_; }
    int exit_code = 0;

private:
    bool join() {
        auto joined = kumi::Job::join();
        if (joined) {
            job_.emplace(std::move(*joined));
            number_ = std::to_string(job_->node());
            return true;
        }
        exit_code = kumi::fail(joined.error());
        return false;
    }

    void wait_ms(long milliseconds) {
        const long before = processor_us();
        job_->wait_until([] { return false; }, kumi::now() + std::chrono::milliseconds(milliseconds));
        say("used {} us", processor_us() - before);
    }

    void until_signal() {
        while (caught == 0) ::poll(nullptr, 0, 10);
        say("got signal {}", static_cast<int>(caught));
    }

    template <class... Arguments>
    void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
        const std::string who = number_.empty() ? "" : fmt::format("node {}: ", number_);
        write_all(1, who + fmt::format(format, std::forward<Arguments>(arguments)...) + "\n");
    }

    std::optional<kumi::Job> job_;
    std::string number_; // of this node, once it has joined
};

} // namespace

int main(int argc, char** argv) {
    Actor actor;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        const std::size_t equals = std::min(word.find('='), word.size());
        std::string_view verb = word.substr(0, equals);
        if (const std::size_t colon = verb.find(':'); colon != std::string_view::npos) {
            const std::string_view who = verb.substr(0, colon);
            verb.remove_prefix(colon + 1);
            if (who == "first" ? !is_first(verb) : !actor.is_node(who)) continue;
        }
        if (!actor.act(verb, std::string(word.substr(std::min(equals + 1, word.size()))))) break;
    }
    return actor.exit_code;
}
