// Runs every file of a folder, or the files named, through the fuzz target: what was found once is never lost again.

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

void run(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
    std::printf("%s\n", file.c_str()); // before it runs: the last line names the culprit
    std::fflush(stdout);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

} // namespace

int main(int count, char** arguments) {
    std::size_t files = 0;
    for (int i = 1; i < count; ++i) {
        if (!fs::is_directory(arguments[i])) run(arguments[i]), ++files;
        else for (const auto& entry : fs::directory_iterator(arguments[i])) run(entry.path()), ++files;
    }
    std::printf("%zu inputs passed\n", files);
    return files == 0 ? 1 : 0;
}
