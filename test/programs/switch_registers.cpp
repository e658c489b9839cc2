// Compiled, not run: as many values as a class has registers, alive across a switch. What
// switch_registers_test.py finds read between `# landed` and `# used`, and not written before, the
// compiler takes to be kept by the switch.
//
//   KEEPS_ALL      the control: nothing is declared clobbered, so that every register is found
//   BY_ATTRIBUTE   the functions, and not the file, are compiled for AVX-512
#include "weft/context/context.hpp"

#ifdef __ARM_FEATURE_SVE
#include <arm_sve.h>
#endif

#ifdef BY_ATTRIBUTE
#define FOR_AVX512 __attribute__((target("avx512bw")))
#else
#define FOR_AVX512
#endif

namespace {

using float4 [[gnu::vector_size(16)]] = float;
using float8 [[gnu::vector_size(32)]] = float;
using float16 [[gnu::vector_size(64)]] = float;
using integer1 [[gnu::vector_size(8)]] = long long;

FOR_AVX512 WEFT_ALWAYS_INLINE void pass(weft::context& from, weft::context& to) {
#ifdef KEEPS_ALL
    static_cast<void>(from);
    static_cast<void>(to);
#else
    weft::switch_to(from, to, nullptr);
#endif
    asm volatile("# landed");
}

}  // namespace

#define EACH_OF_8(_) _(v0) _(v1) _(v2) _(v3) _(v4) _(v5) _(v6) _(v7)
#define EACH_OF_15(_) EACH_OF_8(_) _(v8) _(v9) _(v10) _(v11) _(v12) _(v13) _(v14)
#define EACH_OF_16(_) EACH_OF_15(_) _(v15)
#define EACH_OF_31(_) \
    EACH_OF_16(_)     \
    _(v16)            \
    _(v17)            \
    _(v18) _(v19) _(v20) _(v21) _(v22) _(v23) _(v24) _(v25) _(v26) _(v27) _(v28) _(v29) _(v30)
#define EACH_OF_32(_) EACH_OF_31(_) _(v31)

#define ACROSS_A_SWITCH(name, type, in, count)                                \
    extern "C" FOR_AVX512 void name(weft::context& from, weft::context& to) { \
        using value = type;                                                   \
        EACH_OF_##count(DEFINE_IN_##in);                                      \
        pass(from, to);                                                       \
        EACH_OF_##count(USE_IN_##in);                                         \
        asm volatile("# used " #name);                                        \
    }

#define DEFINE(v, constraint) \
    value v;                  \
    asm volatile("# define %0" : "=" constraint(v));
#define USE(v, constraint) asm volatile("# read %0" : : constraint(v));
#define DEFINE_IN_general(v) DEFINE(v, "r")
#define USE_IN_general(v) USE(v, "r")
#define DEFINE_IN_sse(v) DEFINE(v, "x")
#define USE_IN_sse(v) USE(v, "x")
#define DEFINE_IN_avx512(v) DEFINE(v, "v")
#define USE_IN_avx512(v) USE(v, "v")
#define DEFINE_IN_masks(v) DEFINE(v, "k")
#define USE_IN_masks(v) USE(v, "k")
#define DEFINE_IN_mmx(v) DEFINE(v, "y")
#define USE_IN_mmx(v) USE(v, "y")
#define DEFINE_IN_x87(v) DEFINE(v, "t")
#define USE_IN_x87(v) USE(v, "t")
#define DEFINE_IN_vector(v) DEFINE(v, "w")
#define USE_IN_vector(v) USE(v, "w")
#define DEFINE_IN_predicates(v) DEFINE(v, "Upa")
#define USE_IN_predicates(v) USE(v, "Upa")
#define DEFINE_IN_apx(v) DEFINE(v, "jR")
#define USE_IN_apx(v) USE(v, "jR")

#if WEFT_X86_64
ACROSS_A_SWITCH(general, unsigned long, general, 15)
ACROSS_A_SWITCH(scalar, double, sse, 16)
ACROSS_A_SWITCH(vector_128, float4, sse, 16)
ACROSS_A_SWITCH(multimedia, integer1, mmx, 8)
ACROSS_A_SWITCH(stacked, long double, x87, 8)
#ifdef __AVX__
ACROSS_A_SWITCH(vector_256, float8, sse, 16)
#endif
#if defined(__AVX512BW__) || defined(BY_ATTRIBUTE)
ACROSS_A_SWITCH(vector_512, float16, avx512, 32)
ACROSS_A_SWITCH(mask, unsigned long long, masks, 8)
#endif
#ifdef __APX_F__
ACROSS_A_SWITCH(extended_general, unsigned long, apx, 31)
#endif
#elif WEFT_AARCH64
ACROSS_A_SWITCH(general, unsigned long, general, 31)
ACROSS_A_SWITCH(scalar, double, vector, 32)
ACROSS_A_SWITCH(vector_128, float4, vector, 32)
#ifdef __ARM_FEATURE_SVE
ACROSS_A_SWITCH(vector_scalable, svfloat64_t, vector, 32)
ACROSS_A_SWITCH(predicate, svbool_t, predicates, 16)
#endif
#endif
