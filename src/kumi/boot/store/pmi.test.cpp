#include "kumi/boot/store/pmi.hpp"

#include "kumi/base/clock.hpp"
#include "kumi/boot/store/pmi_line.hpp"
#include "kumi/boot/wire.hpp"

#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace kumi::boot {
namespace {

using namespace std::chrono_literals;

/// A server in a thread: for each request what to send back, raw; nothing ends the connection.
class Server {
public:
    using Answers = std::function<std::optional<std::string>(const PmiLine&)>;

    explicit Server(Answers answers) : answers_(std::move(answers)) {
        int pair[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        ours_.reset(pair[0]);
        theirs_ = pair[1];
        thread_ = std::thread([this] { serve(ours_.get()); });
    }
    ~Server() {
        ::shutdown(ours_.get(), SHUT_RDWR);
        thread_.join();
    }

    Result<std::unique_ptr<KeyValues>> open(std::chrono::milliseconds answer_max = 10s) {
        const std::string number = std::to_string(theirs_);
        const std::map<std::string, std::string> variables{{"PMI_FD", number}, {"PMI_RANK", "1"}, {"PMI_SIZE", "3"}};
        const auto lookup = [&](const char* name) -> const char* {
            const auto entry = variables.find(name);
            return entry == variables.end() ? nullptr : entry->second.c_str();
        };
        return open_pmi(lookup, answer_max);
    }

private:
    void serve(int socket) {
        PmiLineReader reader;
        std::array<std::byte, 4096> buffer;
        while (true) {
            const ssize_t got = ::read(socket, buffer.data(), buffer.size());
            if (got <= 0) return;
            reader.take(Bytes(buffer).first(static_cast<std::size_t>(got)));
            for (auto line = reader.next(); line && *line; line = reader.next()) {
                const auto answer = answers_(**line);
                if (!answer) return (void)::shutdown(socket, SHUT_RDWR);
                if (::send(socket, answer->data(), answer->size(), MSG_NOSIGNAL) < 0) return;
            }
        }
    }

    Answers answers_;
    base::Descriptor ours_;
    int theirs_ = -1; // the client closes it
    std::thread thread_;
};

/// A server as it should be, with a store.
struct Store {
    std::map<std::string, std::string> values;
    long vallen_max = 1024;

    std::optional<std::string> operator()(const PmiLine& line) {
        const std::string& command = line.command();
        const std::string key(line.field("key").value_or(""));
        if (command == "init") return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
        if (command == "get_maxes")
            return fmt::format("cmd=maxes kvsname_max=256 keylen_max=64 vallen_max={}\n", vallen_max);
        if (command == "get_my_kvsname") return "cmd=my_kvsname kvsname=kvs_1\n";
        if (command == "barrier_in") return "cmd=barrier_out\n";
        if (command == "finalize") return "cmd=finalize_ack\n";
        if (command == "put") {
            EXPECT_LT(static_cast<long>(line.field("value")->size()), vallen_max);
            values[key] = *line.field("value");
            return "cmd=put_result rc=0 msg=success\n";
        }
        if (command == "get" && values.contains(key))
            return "cmd=get_result rc=0 msg=success value=" + values[key] + "\n";
        return "cmd=get_result rc=-1 msg=key_" + key + "_not_found\n";
    }
};

std::string reason_of(Server& server, std::chrono::milliseconds answer_max = 10s) {
    const auto opened = server.open(answer_max);
    return opened ? "none" : opened.error().text();
}

TEST(Pmi, values_of_any_length_go_in_and_come_out) {
    for (const long vallen_max : {64L, 1024L, 100'000L}) {
        Store store{.values = {}, .vallen_max = vallen_max};
        Server server(std::ref(store));
        const auto opened = server.open();
        ASSERT_TRUE(opened) << opened.error().text();
        KeyValues& values = **opened;
        EXPECT_EQ(values.node(), 1u);
        EXPECT_EQ(values.nodes(), 3u);
        for (const std::size_t bytes : {0u, 1u, 29u, 30u, 31u, 32u, 255u, 256u, 257u, 5000u}) {
            std::vector<std::byte> value(bytes);
            for (std::size_t i = 0; i < bytes; ++i) value[i] = static_cast<std::byte>(i * 7);
            const std::string key = fmt::format("round{}", bytes);
            ASSERT_TRUE(values.put(key, value));
            ASSERT_TRUE(values.fence());
            const auto back = values.get(1, key);
            ASSERT_TRUE(back) << back.error().text();
            EXPECT_EQ(*back, value);
        }
        values.leave();
    }
}

TEST(Pmi, a_key_that_nobody_put_is_an_error_with_what_the_server_said) {
    Server server{Store{}};
    const auto opened = server.open();
    ASSERT_TRUE(opened);
    EXPECT_NE((*opened)->get(2, "round0").error().text().find("refused cmd=get: rc=-1 key_kumi-2-round0-0_not_found"),
              std::string::npos);
}

TEST(Pmi, values_that_are_garbled_are_errors) {
    for (const char* value : {"", "x", "2", "2.zz", "2.0", "ffffffffffff.00", ".00", "2.0011"}) {
        Store store;
        store.values["kumi-0-a-0"] = value;
        Server server(std::ref(store));
        const auto opened = server.open();
        ASSERT_TRUE(opened);
        EXPECT_FALSE((*opened)->get(0, "a")) << value;
        store.values.clear();
    }
}

TEST(Pmi, a_server_that_never_answers_is_named_after_the_deadline) {
    Server server([](const PmiLine&) { return ""; });
    const auto start = now();
    const std::string reason = reason_of(server, 50ms);
    EXPECT_LT(now() - start, 5s);
    EXPECT_NE(reason.find("did not answer cmd=init within 0.05 s"), std::string::npos) << reason;
}

TEST(Pmi, a_barrier_that_never_ends_says_what_may_be_wrong) {
    Store store;
    Server server([&](const PmiLine& line) { return line.command() == "barrier_in" ? "" : store(line); });
    const auto opened = server.open(50ms);
    ASSERT_TRUE(opened);
    EXPECT_NE(
        (*opened)->fence().error().text().find("not all 3 processes of this job have joined within 0.05 s"),
        std::string::npos);
}

TEST(Pmi, a_server_that_goes_away_is_noticed_at_once) {
    Server server([](const PmiLine&) { return std::nullopt; });
    const std::string reason = reason_of(server, 60s);
    EXPECT_NE(reason.find("closed the connection at cmd=init"), std::string::npos) << reason;
}

TEST(Pmi, garbage_is_shown_and_not_believed) {
    for (const char* garbage :
         {"HTTP/1.1 400 Bad Request\n", "cmd=maxes\n", "\n", "cmd=response_to_init rc=-1 pmi_version=2\n",
          "cmd=response_to_init rc=0 pmi_version=two\n"}) {
        Server server([&](const PmiLine&) { return garbage; });
        EXPECT_NE(reason_of(server), "none") << garbage;
    }
    Server endless([](const PmiLine&) { return std::string(pmi_line_bytes_max + 5000, 'x'); });
    EXPECT_NE(reason_of(endless).find("no line of PMI-1"), std::string::npos);
}

TEST(Pmi, a_number_that_is_no_socket_is_refused) {
    for (const char* number : {"", "-1", "9999", "seven", "7x"}) {
        const auto lookup = [&](const char* name) -> const char* {
            return std::string_view(name) == "PMI_FD" ? number : nullptr;
        };
        const auto opened = open_pmi(lookup, 1s);
        ASSERT_FALSE(opened) << number;
        EXPECT_EQ(opened.error().text().find(fmt::format("PMI_FD={} names no open socket: ", number)), 0u)
            << opened.error().text();
    }
}

TEST(Pmi, an_address_that_is_none_or_silent_is_refused) {
    const base::Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), bytes), 0);
    ASSERT_EQ(::listen(listener.get(), 1), 0);
    ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &bytes), 0);
    const std::string silent = fmt::format("127.0.0.1:{}", ntohs(address.sin_port));
    for (const std::string& text : {std::string("nothing"), std::string(":1"), std::string("127.0.0.1:1"), silent}) {
        const auto lookup = [&](const char* name) -> const char* {
            return std::string_view(name) == "PMI_PORT" ? text.c_str() : nullptr;
        };
        const auto opened = open_pmi(lookup, 50ms);
        ASSERT_FALSE(opened) << text;
        EXPECT_NE(opened.error().text().find("PMI_PORT=" + text), std::string::npos) << opened.error().text();
    }
}

TEST(Pmi, a_value_of_the_greatest_length_is_asked_for_and_one_digit_more_is_garbled) {
    Store store;
    store.values["kumi-0-most-0"] = fmt::format("{:x}.00", 2 * std::size_t{body_bytes_max});
    store.values["kumi-0-more-0"] = fmt::format("{:x}.00", 2 * std::size_t{body_bytes_max} + 1);
    Server server(std::ref(store));
    const auto opened = server.open();
    ASSERT_TRUE(opened);
    const auto most = (*opened)->get(0, "most"), more = (*opened)->get(0, "more");
    ASSERT_FALSE(most || more);
    EXPECT_NE(most.error().text().find("key_kumi-0-most-1_not_found"), std::string::npos)
        << "the second piece was not asked for: " << most.error().text();
    EXPECT_NE(more.error().text().find("which no Kumi program put there"), std::string::npos) << more.error().text();
}

TEST(Pmi, a_piece_without_digits_ends_the_asking) {
    Store store;
    store.values["kumi-0-a-0"] = "4.00";
    store.values["kumi-0-a-1"] = "";
    Server server(std::ref(store));
    const auto opened = server.open();
    ASSERT_TRUE(opened);
    const auto value = (*opened)->get(0, "a");
    ASSERT_FALSE(value);
    EXPECT_NE(value.error().text().find("under kumi-0-a-1, which no Kumi program put there"), std::string::npos)
        << value.error().text();
}

TEST(Pmi, keys_and_values_of_32_letters_are_enough_and_31_are_not) {
    const auto opens = [](int value_letters, int key_letters) {
        Server server([&](const PmiLine& line) -> std::optional<std::string> {
            if (line.command() == "get_maxes")
                return fmt::format("cmd=maxes kvsname_max=256 keylen_max={} vallen_max={}\n", key_letters,
                                   value_letters);
            return Store{}(line);
        });
        return server.open().has_value();
    };
    EXPECT_TRUE(opens(33, 32)) << "a value's limit counts the zero behind it";
    EXPECT_FALSE(opens(32, 32));
    EXPECT_FALSE(opens(33, 31));
}

using PmiVariables = std::map<std::string, std::string>;

Result<std::unique_ptr<KeyValues>> open_with(const PmiVariables& variables) {
    const auto lookup = [&](const char* name) -> const char* {
        const auto entry = variables.find(name);
        return entry == variables.end() ? nullptr : entry->second.c_str();
    };
    return open_pmi(lookup, 10s);
}

TEST(Pmi, a_process_has_a_number_below_their_count) {
    const auto opens = [](const char* rank, const char* size) {
        int pair[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        const base::Descriptor ours(pair[0]);
        std::string answers;
        for (const char* line : {"cmd=response_to_init pmi_version=1 rc=0\n",
                                 "cmd=maxes keylen_max=64 vallen_max=1024\n", "cmd=my_kvsname kvsname=k\n"})
            answers += line;
        EXPECT_EQ(::write(ours.get(), answers.data(), answers.size()), static_cast<ssize_t>(answers.size()));
        return open_with({{"PMI_FD", std::to_string(pair[1])}, {"PMI_RANK", rank}, {"PMI_SIZE", size}}).has_value();
    };
    EXPECT_TRUE(opens("2", "3"));
    EXPECT_FALSE(opens("3", "3"));
    EXPECT_FALSE(opens("0", "0"));
    EXPECT_FALSE(opens("-1", "3"));
    EXPECT_FALSE(opens("", "3"));
    EXPECT_FALSE(opens("0", ""));
}

/// A server at an address, for one client: `hello` is its answer to the first line, then it is as a Store.
class AddressServer {
public:
    explicit AddressServer(std::string hello) : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t bytes = sizeof address;
        EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), bytes), 0);
        EXPECT_EQ(::listen(listener_.get(), 1), 0);
        EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &bytes), 0);
        port_ = ntohs(address.sin_port);
        thread_ = std::thread([this, hello = std::move(hello)] {
            const base::Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
            PmiLineReader reader;
            std::array<std::byte, 4096> buffer;
            Store store;
            for (ssize_t got = 0; (got = ::read(socket.get(), buffer.data(), buffer.size())) > 0;) {
                reader.take(Bytes(buffer).first(static_cast<std::size_t>(got)));
                for (auto line = reader.next(); line && *line; line = reader.next()) {
                    if ((*line)->command() == "initack") asked_ = (*line)->field("pmiid").value_or("none");
                    const auto answer = (*line)->command() == "initack" ? hello : store(**line);
                    if (!answer || ::send(socket.get(), answer->data(), answer->size(), MSG_NOSIGNAL) < 0) return;
                }
            }
        });
    }
    ~AddressServer() { thread_.join(); }

    /// Ends with the client, which is destroyed here.
    Result<std::pair<std::uint32_t, std::uint32_t>> open(PmiVariables variables) {
        variables.emplace("PMI_PORT", fmt::format("127.0.0.1:{}", port_));
        auto opened = open_with(variables);
        if (!opened) return opened.error();
        return std::pair{(*opened)->node(), (*opened)->nodes()};
    }
    std::string asked() {
        thread_.join();
        thread_ = std::thread([] {});
        return asked_;
    }

private:
    base::Descriptor listener_;
    std::uint16_t port_ = 0;
    std::string asked_;
    std::thread thread_;
};

TEST(Pmi, a_server_at_an_address_tells_which_process_this_is) {
    AddressServer server("cmd=initack rc=0\ncmd=set size=5\ncmd=set rank=4\ncmd=set debug=0\n");
    const auto place = server.open({{"PMI_ID", "17"}});
    ASSERT_TRUE(place) << place.error().text();
    EXPECT_EQ(place->first, 4u);
    EXPECT_EQ(place->second, 5u);
    EXPECT_EQ(server.asked(), "17");
}

TEST(Pmi, a_server_at_an_address_that_goes_on_and_on_is_not_listened_to_for_ever) {
    std::string hello;
    for (int i = 0; i < 16; ++i) hello += "cmd=set nothing=0\n";
    AddressServer server(hello);
    const auto place = server.open({});
    ASSERT_FALSE(place);
    EXPECT_NE(place.error().text().find("does not say which process this is, and of how many"), std::string::npos)
        << place.error().text();
    EXPECT_EQ(server.asked(), "0");
}

} // namespace
} // namespace kumi::boot
