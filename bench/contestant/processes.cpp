#include "contestant/processes.hpp"

#include "contestant/core.hpp"

#include "kumi/base/result.hpp"

#include <cerrno>
#include <csignal>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kumi::bench {

int run_parts(const std::vector<Part>& parts) {
    std::vector<pid_t> running;
    for (const Part& part : parts) {
        const pid_t pid = ::fork();
        if (pid < 0) return fail(system_error(errno, "starting a part of a benchmark (fork)"));
        if (pid == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (part.core) bind_to_core(*part.core);
            ::_exit(part.work());
        }
        running.push_back(pid);
    }
    const pid_t first = running.front();
    int exit_code = 0;
    while (true) {
        int status = 0;
        const pid_t ended = ::wait(&status);
        if (ended < 0) return 1;
        std::erase(running, ended);
        exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (ended == first || exit_code != 0) break;
    }
    for (const pid_t pid : running) ::kill(pid, SIGKILL);
    while (::wait(nullptr) > 0) {
    }
    return exit_code;
}

int become(const std::vector<std::string>& words) {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    return fail(system_error(errno, words.front()));
}

} // namespace kumi::bench
