// soak SEED NODES EPOCHS STEPS TROUBLE: one node of one round of the soak. TROUBLE is none, stops or losses.
//
// A node that finds something wrong says so in a line with "WRONG" and ends with code 3. A node that did everything
// says "soak: node N is done". Where nodes die or stop by plan, each node is a child of a watcher, which is what
// `kumi run` sees. The watcher continues a node that has stopped. If the node was killed, the watcher says so and
// stays, because `kumi run` would end the job.

#include "soak/calls.hpp"
#include "soak/collectives.hpp"
#include "soak/exchanges.hpp"
#include "soak/memory.hpp"
#include "soak/messages.hpp"
#include "soak/multicasts.hpp"
#include "soak/world.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kumi::soak {
namespace {

void say(const std::string& line) {
    [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, line.data(), line.size());
}

/// Answers in the child, or never.
void become_watched(const Plan& plan) {
    const pid_t watcher = ::getpid(), child = ::fork();
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != watcher) ::_exit(4);
        return;
    }
    for (int status = 0;;) {
        if (::waitpid(child, &status, WUNTRACED) != child) ::_exit(4);
        if (WIFEXITED(status)) ::_exit(WEXITSTATUS(status));
        if (WIFSTOPPED(status)) {
            std::this_thread::sleep_for(plan.stop_ms * 1ms);
            ::kill(child, SIGCONT);
        } else if (WIFSIGNALED(status)) {
            if (WTERMSIG(status) != SIGKILL) ::_exit(128 + WTERMSIG(status));
            say("soak: a node was killed\n");
            for (;;) ::pause();
        }
    }
}

/// What may not grow.
struct Usage {
    long resident_kib = 0;
    long descriptors = 0;

    static Usage now() {
        Usage usage;
        long pages = 0;
        std::ifstream("/proc/self/statm") >> pages >> pages;
        usage.resident_kib = pages * (::sysconf(_SC_PAGESIZE) / 1024);
        for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
            ++usage.descriptors;
        return usage;
    }
};

class SoakNode {
public:
    explicit SoakNode(const Plan& plan)
        : world_(plan), messages_(handlers_, world_), calls_(handlers_, world_), memory_(handlers_, world_),
          multicasts_(handlers_, world_), collectives_(world_), exchanges_(world_) {
        for (unsigned thread = 1; thread < plan.threads; ++thread) others_.push_back(actor(thread));
        main_.emplace(actor(0));
    }

    /// True: as planned, this node has left early.
    bool run() {
        Job job = must(Job::join(std::move(handlers_)));
        world_.set_job(job);
        if (job.nodes() != world_.plan.nodes) world_.wrong("NODES is not the number of nodes");
        main_->random = Random(mixed(world_.plan.seed, job.node(), 0, 2));
        for (Actor& other : others_) other.random = Random(mixed(world_.plan.seed, job.node(), other.thread, 2));
        messages_.start();
        memory_.start();
        exchanges_.start();
        Usage early;
        for (unsigned epoch = 0; epoch < world_.plan.epochs; ++epoch) {
            world_.set_epoch(epoch);
            if (!run_epoch()) return true;
            end_epoch();
            if (epoch == world_.plan.epochs / 10) early = Usage::now();
        }
        compare(early, Usage::now());
        return false;
    }
    Node node() const noexcept { return world_.self(); }

private:
    Actor actor(unsigned thread) const { return Actor{Random(thread), thread}; }
    const Fate* fate() const {
        const Fate& mine = world_.plan.fates[world_.self()];
        return mine.kind != Fate::stays && mine.epoch == world_.epoch() ? &mine : nullptr;
    }

    void act(Actor& actor) {
        switch (actor.random.below(4)) {
        case 0: return messages_.act(actor);
        case 1: return calls_.act(actor);
        case 2: return memory_.act(actor);
        default: return multicasts_.act(actor);
        }
    }

    /// False: this node leaves.
    bool run_epoch() {
        const Fate* const mine = fate();
        if (mine != nullptr && mine->kind != Fate::leaves)
            std::thread([after = mine->after_ms, number = mine->kind == Fate::dies ? SIGKILL : SIGSTOP] {
                std::this_thread::sleep_for(after * 1ms);
                ::kill(::getpid(), number);
            }).detach();
        std::vector<std::thread> threads;
        for (Actor& other : others_)
            threads.emplace_back([&] {
                for (unsigned i = 0; i < world_.plan.steps; ++i) act(other);
                world_.sync();
            });
        bool stays = true;
        for (unsigned step = 0; step < world_.plan.steps && stays; ++step) {
            if (mine != nullptr && mine->kind == Fate::leaves && mine->after_ms == step) stays = false;
            for (std::uint64_t i = main_->random.below(3); i > 0; --i) act(*main_);
            if (!stays) break;
            collectives_.step(step);
            exchanges_.step(step);
        }
        for (std::thread& thread : threads) thread.join();
        if (mine != nullptr && mine->kind == Fate::dies)
            for (;;) ::pause(); // the end comes
        return stays && (mine == nullptr || mine->kind != Fate::leaves);
    }

    void end_epoch() {
        world_.sync();
        messages_.wait_for_tokens();
        meet(false);
        messages_.check();
        memory_.check();
        multicasts_.check();
        meet(true);
    }

    /// A barrier of the survivors.
    void meet(bool is_last_of_epoch) {
        std::vector<Node> members;
        bool is_risky = false; // a node that goes on from here may die before all that it sent has left it
        for (const Node node : world_.survivors()) {
            members.push_back(node);
            const Fate& fate = world_.plan.fates[node];
            is_risky = is_risky ||
                       (is_last_of_epoch && fate.kind == Fate::dies && fate.epoch == world_.epoch() + 1);
        }
        const auto token = must(world_.job().arrive(members));
        (void)world_.is_good(world_.job().wait(token, world_.deadline(false)), is_risky, "barrier of the survivors");
    }

    void compare(const Usage& early, const Usage& late) const {
        constexpr long slack_kib = 40000;
        if (late.resident_kib > early.resident_kib + early.resident_kib / 2 + slack_kib)
            world_.wrong(fmt::format("memory has grown from {} to {} KiB", early.resident_kib, late.resident_kib));
        if (late.descriptors > early.descriptors + 8)
            world_.wrong(fmt::format("there were {} descriptors, now {}", early.descriptors, late.descriptors));
    }

    Handlers handlers_;
    World world_;
    Messages messages_;
    Calls calls_;
    MemoryModel memory_;
    Multicasts multicasts_;
    Collectives collectives_;
    Exchanges exchanges_;
    std::optional<Actor> main_;
    std::vector<Actor> others_;
};

int run(int argc, char** argv) {
    if (argc != 6) {
        std::fprintf(stderr, "soak: write SEED NODES EPOCHS STEPS TROUBLE, which is none, stops or losses\n");
        return 2;
    }
    const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
    const Trouble trouble = std::strcmp(argv[5], "losses") == 0  ? Trouble::losses
                            : std::strcmp(argv[5], "stops") == 0 ? Trouble::stops
                                                                 : Trouble::none;
    const Plan plan(number(1), static_cast<Node>(number(2)), static_cast<unsigned>(number(3)),
                    static_cast<unsigned>(number(4)), trouble);
    if (plan.has_watchers()) become_watched(plan);
    SoakNode node(plan);
    const bool has_left = node.run();
    say(fmt::format("soak: node {} {}\n", node.node(), has_left ? "left" : "is done"));
    return 0;
}

} // namespace
} // namespace kumi::soak

int main(int argc, char** argv) { return kumi::soak::run(argc, argv); }
