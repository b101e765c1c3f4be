// What every file of a kind has in common.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace kumi::tree {
namespace {

namespace fs = std::filesystem;

const fs::path root = KUMI_SOURCE_DIR;

std::string read(const fs::path& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
}

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
        EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 40) << example;
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

} // namespace
} // namespace kumi::tree
