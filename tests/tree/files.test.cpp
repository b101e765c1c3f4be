// What every file of a kind has in common.

#include "tree/read.hpp"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
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

} // namespace
} // namespace kumi::tree
