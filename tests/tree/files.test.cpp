// What every file of a kind has in common.

#include "tree/read.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace kumi::tree {
namespace {

const fs::path root = KUMI_SOURCE_DIR;

/// All files below `folder` of the project whose names end so.
std::vector<fs::path> files(const char* folder, const std::string& ending) {
    std::vector<fs::path> found;
    if (!fs::exists(root / folder)) return found;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder))
        if (entry.is_regular_file() && entry.path().string().ends_with(ending)) found.push_back(entry.path());
    return found;
}

/// The inputs of a fuzzer: bytes, not lines, and as many files as there are inputs.
bool is_in_fuzz_corpus(const fs::path& file) {
    return file.parent_path().filename().string().ends_with("corpus") &&
           file.parent_path().parent_path() == root / "tests/fuzz";
}

bool says_pragma_once(const std::string& text) { return ("\n" + text).find("\n#pragma once\n") != std::string::npos; }

/// Where the links of a Markdown text lead, within the project.
std::vector<std::string> links(const std::string& text) {
    std::vector<std::string> targets;
    for (std::size_t at = 0; (at = text.find("](", at)) != std::string::npos;) {
        at += 2;
        const std::string target = text.substr(at, text.find_first_of("#) \n", at) - at);
        if (!target.empty() && target.find(':') == std::string::npos) targets.push_back(target);
    }
    return targets;
}

TEST(Files, every_header_says_pragma_once) {
    EXPECT_FALSE(says_pragma_once("// #pragma once\n"));
    for (const char* folder : {"src", "tools", "tests", "bench"})
        for (const fs::path& header : files(folder, ".hpp")) EXPECT_TRUE(says_pragma_once(read(header))) << header;
}

TEST(Files, an_example_fits_on_a_page) {
    const auto examples = files("examples", ".cpp");
    EXPECT_FALSE(examples.empty());
    for (const fs::path& example : examples) {
        if (example.parent_path().filename() == "trials") continue; // these are not for reading in order
        const std::string text = read(example);
        // the one that shows how the others go together
        const bool is_application = example.filename() == "06_jacobi.cpp";
        EXPECT_LT(std::count(text.begin(), text.end(), '\n'), is_application ? 100 : 40) << example;
    }
}

TEST(Files, every_skip_has_a_reason_of_the_list) {
    const std::string bare_skip = std::string("GTEST") + "_SKIP";
    EXPECT_NE(read(root / "tests/skips.hpp").find(bare_skip), std::string::npos);
    for (const char* folder : {"src", "tools", "tests", "bench"})
        for (const char* ending : {".cpp", ".hpp"})
            for (const fs::path& file : files(folder, ending)) {
                if (file == root / "tests/skips.hpp") continue; // which defines KUMI_SKIP
                EXPECT_EQ(read(file).find(bare_skip), std::string::npos)
                    << file << ": use KUMI_SKIP and a reason of tests/skips.hpp";
            }
}

TEST(Files, a_newcomer_finds_where_to_start) {
    for (const char* name : {"README.md", "LICENSE", "CONTRIBUTING.md"}) EXPECT_TRUE(fs::exists(root / name)) << name;
}

TEST(Files, links_between_documents_lead_somewhere) {
    EXPECT_EQ(links("[a](docs/a.md#top) [b](https://b.org) [c](#here)"), std::vector<std::string>{"docs/a.md"});
    auto documents = files("docs", ".md");
    for (const auto& entry : fs::directory_iterator(root))
        if (entry.path().extension() == ".md") documents.push_back(entry.path());
    for (const fs::path& document : documents)
        for (const std::string& target : links(read(document)))
            EXPECT_TRUE(fs::exists(document.parent_path() / target)) << document << " leads to " << target;
}

/// What stands between ```cpp and ``` in a Markdown text.
std::vector<std::string> code_blocks(const std::string& text) {
    const std::string opening = "```cpp\n";
    std::vector<std::string> blocks;
    for (std::size_t at = 0; (at = text.find(opening, at)) != std::string::npos;) {
        at += opening.size();
        blocks.push_back(text.substr(at, text.find("```", at) - at));
    }
    return blocks;
}

TEST(Files, code_in_documents_is_that_of_the_examples_and_so_it_compiles) {
    EXPECT_EQ(code_blocks("a\n```cpp\nint b;\n```\nc\n"), std::vector<std::string>{"int b;\n"});
    std::string all;
    for (const fs::path& example : files("examples", ".cpp")) all += read(example);
    for (const fs::path& document : files("docs", ".md"))
        for (const std::string& block : code_blocks(read(document)))
            EXPECT_NE(all.find(block), std::string::npos) << document << " has code that no example has:\n" << block;
}

constexpr std::size_t columns_max = 120;

/// Characters of a line of UTF-8: its bytes, without those that continue a character.
std::size_t columns_of(std::string_view line) {
    return static_cast<std::size_t>(std::count_if(
        line.begin(), line.end(), [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }));
}

/// The numbers of the lines that are too long. A row of a Markdown table may be: it cannot be broken.
std::vector<int> long_lines(const fs::path& file, const std::string& text) {
    const bool is_markdown = file.extension() == ".md";
    std::vector<int> numbers;
    std::istringstream lines(text);
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number)
        if (columns_of(line) > columns_max && !(is_markdown && line.starts_with("|"))) numbers.push_back(number);
    return numbers;
}

/// Sources, scripts, build files, settings and documents. Left out: fuzz corpora; tests/mutants, whose lines are source
/// lines with a word before them.
std::vector<fs::path> text_files() {
    constexpr std::array endings{".cpp", ".hpp", ".cmake", ".in", ".json", ".md", ".sh", ".toml", ".txt", "Makefile"};
    std::vector<fs::path> found;
    const auto add = [&](const fs::path& file) {
        const std::string name = file.string();
        const bool is_text = std::any_of(endings.begin(), endings.end(), [&](auto end) { return name.ends_with(end); });
        const bool is_left_out = is_in_fuzz_corpus(file) || file.parent_path() == root / "tests/mutants";
        if (is_text && !is_left_out) found.push_back(file);
    };
    for (const char* folder : {"bench", "cmake", "docs", "examples", "lab", "scripts", "src", "tests", "tools"})
        for (const fs::path& file : files(folder, "")) add(file);
    for (const auto& entry : fs::directory_iterator(root))
        if (entry.is_regular_file()) add(entry.path());
    return found;
}

TEST(Files, no_line_is_longer_than_120_columns) {
    const std::string fits(columns_max, 'x'), umlauts = fits.substr(1) + "\u00fc", too_long = fits + "x";
    EXPECT_EQ(long_lines("a.cpp", fits + "\n" + too_long + "\n" + umlauts + "\n| " + fits), (std::vector{2, 4}));
    EXPECT_EQ(long_lines("a.md", "| " + fits + "\n" + too_long + "\n"), std::vector{2});

    const auto all = text_files();
    for (const char* name : {"Makefile", "CMakePresets.json", "src/kumi/kumi.hpp", "scripts/check.sh"})
        EXPECT_NE(std::find(all.begin(), all.end(), root / name), all.end()) << name;
    for (const fs::path& file : all)
        for (const int line : long_lines(file, read(file)))
            ADD_FAILURE() << file.string() << ":" << line << " has more than " << columns_max << " columns";
}

constexpr std::size_t files_per_folder_max = 25;

/// Names the folders of `counts` that have too many files.
std::vector<std::string> crowded(const std::map<std::string, std::size_t>& counts) {
    std::vector<std::string> folders;
    for (const auto& [folder, count] : counts)
        if (count > files_per_folder_max) folders.push_back(folder);
    return folders;
}

TEST(Files, no_folder_has_more_than_25_files) {
    EXPECT_EQ(crowded({{"a", 25}, {"b", 26}}), std::vector<std::string>{"b"});

    std::map<std::string, std::size_t> counts;
    for (const char* folder : {"src", "bench", "tools", "tests", "examples"})
        for (const fs::path& file : files(folder, ""))
            if (!is_in_fuzz_corpus(file)) ++counts[file.parent_path().lexically_relative(root).generic_string()];
    EXPECT_GE(counts.size(), 30u);
    for (const std::string& folder : crowded(counts))
        ADD_FAILURE() << folder << " has " << counts[folder] << " files: divide it by theme";
}

} // namespace
} // namespace kumi::tree
