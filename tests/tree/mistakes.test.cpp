// The usual mistakes of a program are found by the compiler, in one line that says what to write.

#include "tree/build.hpp"

#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace kumi::tree {
namespace {

/// What the compiler says of a program with these lines in its main function.
std::string compile(const std::string& header, const std::string& lines, const std::string& before = "") {
    const std::string file = fmt::format("{}/kumi-mistake-{}.cpp", fs::temp_directory_path().string(), getpid());
    std::ofstream(file) << fmt::format("#include <kumi/{}>\n#include <string>\n{}\nint main() {{\n    kumi::Handlers "
                                       "handlers;\n{}\n}}\n",
                                       header, before, lines);
    FILE* const output = popen(fmt::format("'{}' -std=c++20 -fsyntax-only -Wno-unused -I '{}/src' '{}' 2>&1",
                                           compiler(), KUMI_SOURCE_DIR, file)
                                   .c_str(),
                               "r");
    std::string said;
    for (int next = 0; output && (next = std::fgetc(output)) != EOF;) said += static_cast<char>(next);
    pclose(output);
    fs::remove(file);
    return said;
}

/// The errors among the lines, without their places.
std::vector<std::string> errors_in(const std::string& said) {
    std::vector<std::string> errors;
    const std::string mark = "error: ";
    for (std::size_t at = said.find(mark); at != std::string::npos; at = said.find(mark, at + 1))
        errors.push_back(said.substr(at + mark.size(), said.find('\n', at) - at - mark.size()));
    return errors;
}

/// A line of a program, and the text of the one error that it has. The text is what to write.
struct Mistake {
    std::string line, text;
};

void expect_mistakes(const std::string& header, const std::vector<Mistake>& mistakes, const std::string& before = "") {
    std::string lines;
    for (const Mistake& mistake : mistakes) lines += mistake.line + "\n";
    const std::string said = compile(header, lines, before);
    const std::vector<std::string> errors = errors_in(said);
    ASSERT_EQ(errors.size(), mistakes.size()) << said;
    for (std::size_t i = 0; i < errors.size(); ++i)
        EXPECT_NE(errors[i].find(mistakes[i].text), std::string::npos) << mistakes[i].line << "\n" << said;
}

TEST(Mistakes, right_programs_compile) {
    const std::string lines = R"(
        const auto add = handlers.add("add", [](kumi::Call&, double, kumi::Bytes) {});
        const auto count = handlers.add("count", [](const kumi::Call&) {});
        const auto ask = handlers.function("ask", [](const Record& record, std::vector<Pair>) { return record; });
        kumi::Job* job = nullptr;
        (void)job->send(1, add, 5.0, kumi::Bytes());
        (void)job->send(1, count);
        (void)job->invoke(1, ask, Record(), std::vector<Pair>());)";
    const std::string classes = R"(
        struct Record {
            std::string name;
            template <class Archive>
            void serialize(Archive& archive) { archive(name); }
        };
        struct Pair { double a, b; };)";
    const std::string said = compile("kumi.hpp", lines, "#include <kumi/functions.hpp>\n" + classes);
    EXPECT_TRUE(errors_in(said).empty()) << said;
}

TEST(Mistakes, of_a_handler) {
    const std::string types = "write the types of a handler's parameters: [](kumi::Call& call, double x), not auto";
    const std::string call = "the first parameter of a handler is kumi::Call&: [](kumi::Call& call";
    const std::string plain = "the parameters of a handler are numbers, plain structs, and a kumi::Bytes at the end";
    expect_mistakes("engine/handlers.hpp",
                    {{R"(const auto a = handlers.add("a", [](kumi::Call&, auto) {});)", types},
                     {R"(const auto b = handlers.add("b", [](double) {});)", call},
                     {R"(const auto c = handlers.add("c", [] {});)", call},
                     {R"(const auto d = handlers.add("d", [](kumi::Call) {});)", call},
                     {R"(const auto e = handlers.add("e", [](kumi::Call&, std::string) {});)", plain},
                     {R"(const auto f = handlers.add("f", [](kumi::Call&, std::string_view) {});)", plain},
                     {R"(const auto g = handlers.add("g", [](kumi::Call&, const char*) {});)", plain},
                     {R"(const auto h = handlers.add("h", [](kumi::Call&, std::span<const double>) {});)", plain},
                     {R"(const auto i = handlers.add("i", [](kumi::Call&, kumi::Bytes, int) {});)",
                      "kumi::Bytes is the last parameter of a handler"}});
}

TEST(Mistakes, of_a_function) {
    const std::string known = "a function takes and answers numbers, strings, containers, plain structs and classes";
    expect_mistakes(
        "functions.hpp",
        {{R"(const auto a = handlers.function("a", [](Record) {});)", known},
         {R"(const auto b = handlers.function("b", [](std::vector<Record>) {});)", known},
         {R"(const auto c = handlers.function("c", [](std::map<int, Record>) {});)", known},
         {R"(const auto d = handlers.function("d", [] { return Record(); });)", known},
         {R"(const auto e = handlers.function("e", [](std::string_view) {});)", known},
         {R"(const auto f = handlers.function("f", [](double*) {});)", known},
         {R"(const auto g = handlers.function("g", [](auto) {});)", "write the types of a function's parameters"},
         {R"(const auto h = handlers.function("h", [](Unmade) {});)",
          "the classes that a function takes have a default constructor"}},
        "struct Record { std::string name; };\n"
        "struct Unmade { explicit Unmade(int x) : x(x) {} int x; };");
}

TEST(Mistakes, functions_without_their_header) {
    const std::string said =
        compile("engine/handlers.hpp", R"(const auto ask = handlers.function("ask", [](int) {});)");
    ASSERT_FALSE(errors_in(said).empty());
    EXPECT_NE(errors_in(said)[0].find("needs #include <kumi/functions.hpp>"), std::string::npos) << said;
}

} // namespace
} // namespace kumi::tree
