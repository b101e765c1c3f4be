// Prints its arguments, each in angle brackets. Not a Kumi program.
#include <cstdio>

int main(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) std::printf("<%s>", argv[i]);
    std::printf("\n");
}
