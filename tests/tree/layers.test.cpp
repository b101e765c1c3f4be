// The architecture is the tree: layers.toml says which folder of src/kumi may include which, and every include is held
// against it here. The checker takes a file's name and text, so that made-up offenders show that it can complain.

#include "tree/read.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <toml++/toml.h>
#include <vector>

namespace kumi::tree {
namespace {

using Names = std::set<std::string>;
using Complaints = std::vector<std::string>;

/// layers.toml as it was read. Every folder sees itself.
struct Rule {
    std::map<std::string, Names> sees;
    Names planned;
    Names tests_see;
    Names test_helpers;
};

Rule parse_rule(std::string_view text) {
    const toml::table table = toml::parse(text);
    Rule rule;
    const toml::table& layers = *table["layers"].as_table();
    const auto names_in = [&](const toml::array& list) {
        Names names;
        for (const auto& element : list) {
            const std::string name = element.value_or("");
            if (name != "device/*") names.insert(name);
            for (const auto& [folder, entry] : layers)
                if (name == "device/*" && folder.str().starts_with("device/")) names.emplace(folder.str());
        }
        return names;
    };
    for (const auto& [folder, entry] : layers) {
        rule.sees.emplace(folder.str(), names_in(*entry.as_table()->get_as<toml::array>("sees")));
        if ((*entry.as_table())["planned"].value_or(false)) rule.planned.emplace(folder.str());
    }
    rule.tests_see = names_in(*table["tests"]["sees"].as_array());
    rule.test_helpers = names_in(*table["tests"]["helpers"].as_array());
    return rule;
}

/// The layer that `file`, named from src/kumi on, belongs to: the innermost folder around it that layers.toml names.
/// "pm/channel.hpp", "pm/internal/x.hpp" and a file of a folder by theme inside pm all belong to "pm".
std::string layer_of(const Rule& rule, const fs::path& file) {
    if (file.parent_path().empty()) return ".";
    fs::path folder = file.parent_path();
    while (!folder.empty() && !rule.sees.contains(folder.generic_string())) folder = folder.parent_path();
    return folder.empty() ? file.parent_path().generic_string() : folder.generic_string(); // without: no entry
}

/// What a line includes, with its opening quote or bracket: `"kumi/pm/node.hpp`; empty when it includes nothing.
std::string included_by(const std::string& line) {
    std::size_t at = 0;
    for (const std::string_view word : {"#", "include"}) {
        at = line.find_first_not_of(" \t", at);
        if (at == std::string::npos || line.compare(at, word.size(), word) != 0) return "";
        at += word.size();
    }
    const std::size_t open = line.find_first_of("<\"", at);
    return open == std::string::npos ? "" : line.substr(open, line.find_first_of(">\"", open + 1) - open);
}

/// What is wrong with the includes of `file`, named from src/kumi on.
Complaints check_file(const Rule& rule, const fs::path& file, std::string_view text) {
    const std::string folder = layer_of(rule, file);
    const auto entry = rule.sees.find(folder);
    if (entry == rule.sees.end())
        return {fmt::format("src/kumi/{}: layers.toml has no entry for its folder", file.string())};
    const bool is_test = file.filename().string().ends_with(".test.cpp");
    Names allowed = entry->second;
    allowed.insert(folder);
    if (is_test) allowed.insert(rule.tests_see.begin(), rule.tests_see.end());

    Complaints complaints;
    std::istringstream lines{std::string(text)};
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
        const std::string include = included_by(line);
        if (include.empty()) continue;
        const bool quoted = include.front() == '"';
        const std::string name = include.substr(1);
        const auto complain = [&](const std::string& why) {
            complaints.push_back(fmt::format("src/kumi/{}:{}: includes {}: {}", file.string(), number, name, why));
        };
        if (!name.starts_with("kumi/")) {
            if (quoted && !(is_test && rule.test_helpers.contains(name.substr(0, name.find('/')))))
                complain("write headers of this tree from the root: \"kumi/folder/header.hpp\"");
            continue;
        }
        const fs::path target = name.substr(5);
        const std::string target_folder = layer_of(rule, target);
        if (!allowed.contains(target_folder)) complain(fmt::format("{} may see {}", folder, fmt::join(allowed, ", ")));
        else if (target.parent_path().filename() == "internal" && target_folder != folder)
            complain(fmt::format("internal/ is for {} alone", target_folder));
    }
    return complaints;
}

/// Entries that name no entry, and circles.
Complaints check_rule(const Rule& rule) {
    Complaints complaints;
    Names done;
    std::vector<std::string> path;
    const auto visit = [&](const auto& self, const std::string& folder) -> void {
        if (const auto before = std::find(path.begin(), path.end(), folder); before != path.end()) {
            complaints.push_back(fmt::format("circle: {} > {}", fmt::join(before, path.end(), " > "), folder));
            return;
        }
        if (!done.insert(folder).second) return;
        path.push_back(folder);
        for (const std::string& lower : rule.sees.at(folder)) {
            if (rule.sees.contains(lower)) self(self, lower);
            else complaints.push_back(fmt::format("{} sees {}, which has no entry", folder, lower));
        }
        path.pop_back();
    };
    for (const auto& [folder, lower] : rule.sees) visit(visit, folder);
    return complaints;
}

/// Entries whose folder is missing though not planned, or there though planned. `folders` hold source files.
Complaints check_folders(const Rule& rule, const Names& folders) {
    Complaints complaints;
    for (const auto& [folder, lower] : rule.sees) {
        const bool planned = rule.planned.contains(folder);
        if (!planned && !folders.contains(folder))
            complaints.push_back(fmt::format("{} has an entry and no source; planned = true if it is to come", folder));
        if (planned && folders.contains(folder))
            complaints.push_back(fmt::format("{} is there: it is no longer planned", folder));
    }
    return complaints;
}

const fs::path source_root = fs::path(KUMI_SOURCE_DIR) / "src" / "kumi";

/// All sources and headers, named from src/kumi on.
std::vector<fs::path> all_files() {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(source_root))
        if (entry.path().extension() == ".hpp" || entry.path().extension() == ".cpp")
            files.push_back(entry.path().lexically_relative(source_root));
    return files;
}

Rule our_rule() { return parse_rule(read(fs::path(KUMI_SOURCE_DIR) / "layers.toml")); }

TEST(Layers, every_include_points_where_layers_toml_allows) {
    const Rule rule = our_rule();
    for (const fs::path& file : all_files())
        for (const std::string& complaint : check_file(rule, file, read(source_root / file)))
            ADD_FAILURE() << complaint;
}

TEST(Layers, entries_and_folders_match) {
    Names folders;
    for (const fs::path& file : all_files()) folders.insert(layer_of(our_rule(), file));
    ASSERT_GE(folders.size(), 5u);
    for (const std::string& complaint : check_folders(our_rule(), folders)) ADD_FAILURE() << complaint;
}

TEST(Layers, the_rule_has_no_circle) {
    for (const std::string& complaint : check_rule(our_rule())) ADD_FAILURE() << complaint;
}

// From here on: the checker can complain.

const Rule small_rule = parse_rule(R"(
    [layers]
    base = { sees = [] }
    pm = { sees = ["base"] }
    "device/one" = { sees = ["base", "pm"] }
    "device/two" = { sees = ["base", "pm"], planned = true }
    job = { sees = ["base", "pm", "device/*"] }
    [tests]
    sees = ["device/*"]
    helpers = ["model"]
)");

TEST(LayerChecker, names_file_line_include_and_what_is_allowed) {
    EXPECT_EQ(check_file(small_rule, "pm/channel.hpp", "#pragma once\n\n#include \"kumi/job/job.hpp\"\n"),
              Complaints{"src/kumi/pm/channel.hpp:3: includes kumi/job/job.hpp: pm may see base, pm"});
    EXPECT_EQ(check_file(small_rule, "base/bytes.cpp", "  #  include <kumi/pm/node.hpp> // why").size(), 1u);
    EXPECT_EQ(check_file(small_rule, "device/one/one.cpp", "#include \"kumi/device/two/two.hpp\"").size(), 1u);
    EXPECT_EQ(check_file(small_rule, "pm/a.cpp", "#include \"kumi/nowhere/a.hpp\"").size(), 1u);
}

TEST(LayerChecker, lets_good_includes_pass) {
    const char* text = "// #include <kumi/job/job.hpp>\n#include <vector>\n#include \"kumi/base/bytes.hpp\"\n"
                       "#include \"kumi/device/one/internal/x.hpp\"\n#include <kumi/pm/node.hpp>\n";
    EXPECT_EQ(check_file(small_rule, "device/one/one.cpp", text), Complaints{});
    EXPECT_EQ(check_file(small_rule, "job/job.cpp", "#include \"kumi/device/two/two.hpp\""), Complaints{});
}

TEST(LayerChecker, takes_a_folder_inside_a_layer_for_a_part_of_that_layer) {
    EXPECT_EQ(check_file(small_rule, "pm/sleep/wait.cpp", "#include \"kumi/pm/node.hpp\""), Complaints{});
    EXPECT_EQ(check_file(small_rule, "pm/sleep/wait.cpp", "#include \"kumi/job/job.hpp\"").size(), 1u);
    EXPECT_EQ(check_file(small_rule, "base/bytes.cpp", "#include \"kumi/pm/sleep/wait.hpp\"").size(), 1u);
}

TEST(LayerChecker, only_tests_see_devices_and_test_helpers) {
    const char* text = "#include \"kumi/device/one/one.hpp\"\n#include \"model/explorer.hpp\"\n";
    EXPECT_EQ(check_file(small_rule, "pm/wait.test.cpp", text), Complaints{});
    EXPECT_EQ(check_file(small_rule, "pm/wait.cpp", text).size(), 2u);
}

TEST(LayerChecker, wants_headers_named_from_the_root_and_internal_ones_left_alone) {
    EXPECT_EQ(check_file(small_rule, "pm/wait.cpp", "#include \"wait.hpp\"").size(), 1u);
    EXPECT_EQ(check_file(small_rule, "pm/wait.cpp", "#include \"kumi/base/internal/x.hpp\"").size(), 1u);
}

TEST(LayerChecker, misses_entries_and_folders) {
    EXPECT_EQ(check_file(small_rule, "news/news.cpp", ""),
              Complaints{"src/kumi/news/news.cpp: layers.toml has no entry for its folder"});
    EXPECT_EQ(check_folders(small_rule, {"base", "pm", "job", "device/one"}), Complaints{});
    EXPECT_EQ(check_folders(small_rule, {"base", "pm", "job"}).size(), 1u);
    EXPECT_EQ(check_folders(small_rule, {"base", "pm", "job", "device/one", "device/two"}).size(), 1u);
}

TEST(LayerChecker, sees_circles_and_unknown_names_in_the_rule) {
    EXPECT_EQ(check_rule(small_rule), Complaints{});
    Rule circle = small_rule;
    circle.sees["base"].insert("job");
    EXPECT_NE(check_rule(circle), Complaints{});
    Rule unknown = small_rule;
    unknown.sees["pm"].insert("nowhere");
    EXPECT_EQ(check_rule(unknown), Complaints{"pm sees nowhere, which has no entry"});
}

} // namespace
} // namespace kumi::tree
