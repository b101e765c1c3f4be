#include "kumi/base/data/checksum.hpp"

#include "kumi/base/assert.hpp"

#include <array>

#if defined(__aarch64__)
#include <sys/auxv.h>
#define KUMI_CRC_TARGET // the assembler is told, see below: compilers differ in how they want to be
#elif defined(__x86_64__)
#include <nmmintrin.h>
#define KUMI_CRC_TARGET __attribute__((target("sse4.2")))
#endif

namespace kumi::base {
namespace {

using Lanes = std::array<std::uint32_t, 4>;
constexpr Lanes lanes_start{0x9E3779B9u, 0x7F4A7C15u, 0xF39CC060u, 0x5CEDC834u}; // different, so that zeros count

std::uint64_t word_at(const std::byte* at) noexcept {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    return word;
}

/// One sum of four. Each lane alone decides: no change of a single one is lost. Sums are multiplied rather than carried
/// on as CRCs are: shifted CRCs of neighbours cancel out, and two flipped bits some words apart would go unseen.
std::uint32_t fold(const Lanes& lanes) noexcept {
    constexpr Lanes factors{0x9E3779B1u, 0x85EBCA77u, 0xC2B2AE3Du, 0x27D4EB2Fu}; // odd
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < lanes.size(); ++i) {
        const std::uint32_t mixed = (lanes[i] ^ (lanes[i] >> 16)) * factors[i];
        sum += mixed ^ (mixed >> 15);
    }
    return sum;
}

// ---- by table

constexpr std::array<std::uint32_t, 256> make_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78u : 0u);
        table[i] = value;
    }
    return table;
}
constexpr std::array<std::uint32_t, 256> table = make_table();

std::uint32_t step_by_table(std::uint32_t sum, std::uint64_t word) noexcept {
    for (int i = 0; i < 8; ++i, word >>= 8) sum = (sum >> 8) ^ table[(sum ^ static_cast<std::uint32_t>(word)) & 0xFF];
    return sum;
}

// ---- by instruction

#if defined(KUMI_CRC_TARGET)
/// The sum has 64 bits, of which half are zero: the instruction wants it so, and a shorter one is extended each time.
KUMI_CRC_TARGET inline std::uint64_t step_by_instruction(std::uint64_t sum, std::uint64_t word) noexcept {
#if defined(__aarch64__)
    asm(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(sum) : "r"(word));
    return sum;
#else
    return _mm_crc32_u64(sum, word);
#endif
}

bool has_instruction() noexcept {
#if defined(__aarch64__)
    constexpr unsigned long crc32_bit = 1ul << 7; // HWCAP_CRC32
    return (::getauxval(AT_HWCAP) & crc32_bit) != 0;
#else
    return __builtin_cpu_supports("sse4.2");
#endif
}

/// All in one function: most heads have 64 bytes, for which calls would cost more than the sum.
KUMI_CRC_TARGET std::uint32_t checksum_by_instruction(Bytes head, Bytes body) noexcept {
    std::uint64_t a = lanes_start[0], b = lanes_start[1], c = lanes_start[2], d = lanes_start[3];
    const std::byte* at = head.data();
    const std::byte* end = at + head.size();
    while (true) {
        for (; end - at >= 32; at += 32) { // four at once: the instruction takes longer than it occupies the core
            a = step_by_instruction(a, word_at(at));
            b = step_by_instruction(b, word_at(at + 8));
            c = step_by_instruction(c, word_at(at + 16));
            d = step_by_instruction(d, word_at(at + 24));
        }
        if (at != end) { // the last words
            a = step_by_instruction(a, word_at(at));
            if (end - at >= 16) b = step_by_instruction(b, word_at(at + 8));
            if (end - at >= 24) c = step_by_instruction(c, word_at(at + 16));
        }
        if (body.empty()) break;
        at = body.data();
        end = at + body.size();
        body = {};
    }
    return fold({static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(c),
                 static_cast<std::uint32_t>(d)});
}
#endif

void add_by_table(Lanes& lanes, Bytes bytes) noexcept {
    for (std::size_t i = 0; i * 8 < bytes.size(); ++i)
        lanes[i % 4] = step_by_table(lanes[i % 4], word_at(bytes.data() + i * 8));
}

} // namespace

std::uint32_t checksum_by_table(Bytes head, Bytes body) noexcept {
    Lanes lanes = lanes_start;
    add_by_table(lanes, head);
    add_by_table(lanes, body);
    return fold(lanes);
}

std::uint32_t checksum(Bytes head, Bytes body) noexcept {
    KUMI_ASSERT(head.size() % (body.empty() ? 8 : 32) == 0 && body.size() % 8 == 0);
#if defined(KUMI_CRC_TARGET)
    static const bool by_instruction = has_instruction();
    if (by_instruction) return checksum_by_instruction(head, body);
#endif
    return checksum_by_table(head, body);
}

} // namespace kumi::base
