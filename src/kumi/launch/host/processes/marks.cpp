#include "kumi/launch/host/processes/marks.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace kumi::launch::host {

std::vector<int> numbers_in(const char* folder) {
    std::vector<int> numbers;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
        if (const int number = std::atoi(entry.path().filename().c_str()); number > 0) numbers.push_back(number);
    return numbers;
}

bool is_marked(pid_t pid, std::string_view mark) {
    std::ostringstream text;
    text << '\0' << std::ifstream("/proc/" + std::to_string(pid) + "/environ", std::ios::binary).rdbuf();
    return std::move(text).str().find('\0' + std::string(mark) + '\0') != std::string::npos;
}

} // namespace kumi::launch::host
