#include "kumi/cluster/ranges.hpp"

#include "kumi/base/text/number_text.hpp"

#include <cstdint>

namespace kumi::cluster {
namespace {

/// Appends the numbers of one item in brackets, "3" or "08-10", as they are to be written.
Result<void> append_numbers(std::string_view part, std::string_view pattern, std::vector<std::string>& numbers) {
    const std::size_t dash = part.find('-');
    const std::string_view first_text = part.substr(0, dash);
    const std::string_view last_text = dash == std::string_view::npos ? first_text : part.substr(dash + 1);
    const auto first = base::number_in<std::uint64_t>(first_text);
    const auto last = base::number_in<std::uint64_t>(last_text);
    if (!first || !last)
        return error("\"{}\": \"{}\" is no range of numbers; write it like a[0-7] or a[0-3,6]", pattern, part);
    if (*last < *first) return error("\"{}\": the range \"{}\" runs backwards", pattern, part);
    if (*last - *first >= range_names_max - numbers.size())
        return error("\"{}\" stands for more than {} names", pattern, range_names_max);
    const std::size_t width = first_text.size() > 1 && first_text.front() == '0' ? first_text.size() : 0;
    for (std::uint64_t number = *first;; ++number) {
        numbers.push_back(fmt::format("{:0{}}", number, width));
        if (number == *last) return {};
    }
}

} // namespace

Result<std::vector<std::string>> expand(std::string_view pattern) {
    const std::size_t open = pattern.find('[');
    const std::size_t close = pattern.find(']');
    if (open == std::string_view::npos && close == std::string_view::npos)
        return std::vector<std::string>{std::string(pattern)};
    if (open == std::string_view::npos || close == std::string_view::npos || close < open)
        return error("\"{}\": a bracket is missing; write a range like a[0-7]", pattern);
    std::vector<std::string> numbers;
    for (const std::string_view part : split_list(pattern.substr(open + 1, close - open - 1)))
        if (auto read = append_numbers(part, pattern, numbers); !read) return read.error();
    auto rest = expand(pattern.substr(close + 1));
    if (!rest) return rest.error();
    if (numbers.size() * rest->size() > range_names_max)
        return error("\"{}\" stands for more than {} names", pattern, range_names_max);
    std::vector<std::string> names;
    for (const std::string& number : numbers)
        for (const std::string& end : *rest)
            names.push_back(fmt::format("{}{}{}", pattern.substr(0, open), number, end));
    return names;
}

std::vector<std::string_view> split_list(std::string_view list) {
    std::vector<std::string_view> parts;
    std::size_t start = 0;
    int depth = 0;
    for (std::size_t i = 0; i <= list.size(); ++i) {
        if (i < list.size() && list[i] == '[') ++depth;
        if (i < list.size() && list[i] == ']') --depth;
        if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
        parts.push_back(list.substr(start, i - start));
        start = i + 1;
    }
    return parts;
}

} // namespace kumi::cluster
