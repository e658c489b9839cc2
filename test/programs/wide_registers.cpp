// Compiled for AVX-512, run where the processor has it: masks and vectors that are alive across a
// yield are what they were, though the resumer meanwhile writes to every register that holds such.
// Status 77: the processor has no such registers.
#include <immintrin.h>

#include <cstdio>
#include <cstdlib>

#include "weft/coroutine/coroutine.hpp"

namespace {

constexpr int skipped = 77;

alignas(64) __m512i zeros[2];

[[gnu::noinline]] unsigned long long mask_across_a_yield() {
    const __mmask64 before = _mm512_cmpeq_epi8_mask(zeros[0], _mm512_setzero_si512());
    weft::this_coroutine::yield();
    return _kand_mask64(before, _mm512_cmpeq_epi8_mask(zeros[1], _mm512_setzero_si512()));
}

[[gnu::noinline]] long long vector_across_a_yield() {
    const __m512i before = _mm512_add_epi64(zeros[0], _mm512_set1_epi64(1));
    weft::this_coroutine::yield();
    return _mm512_reduce_add_epi64(_mm512_add_epi64(before, zeros[1]));
}

[[gnu::noinline]] void scribble() {
    asm volatile(
        "kmovq %0, %%k0\n\tkmovq %0, %%k1\n\tkmovq %0, %%k2\n\tkmovq %0, %%k3\n\t"
        "kmovq %0, %%k4\n\tkmovq %0, %%k5\n\tkmovq %0, %%k6\n\tkmovq %0, %%k7\n\t"
        "vpbroadcastq %0, %%zmm0\n\tvpbroadcastq %0, %%zmm1\n\tvpbroadcastq %0, %%zmm16\n\t"
        "vpbroadcastq %0, %%zmm31"
        :
        : "r"(0x1234ull)
        : "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "xmm0", "xmm1", "xmm16", "xmm31");
}

}  // namespace

int main() {
    if (!__builtin_cpu_supports("avx512bw")) {
        std::puts("skipped: the processor has no AVX-512");
        return skipped;
    }
    unsigned long long mask = 0;
    long long sum = 0;
    weft::coroutine<> c([&] {
        mask = mask_across_a_yield();
        sum = vector_across_a_yield();
    });
    while (!c.done()) {
        c.resume();
        scribble();
    }
    std::printf("mask %llx, sum of ones %lld\n", mask, sum);
    return mask == ~0ull && sum == 8 ? EXIT_SUCCESS : EXIT_FAILURE;
}
