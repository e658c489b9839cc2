// co_closure.h: functions that capture variables of their scope, for C++ that had no lambdas.
//
//   co_ref(all, total, results);              // `all`, which refers to both
//   co_func(job, all, i) {                    // a class: copies of its variables, and a function
//       all.results.push_back(all.total + i);
//   }
//   co_func_end;
//   stCoClosure_t* c = new job(all, i);
//   c->exec();
//
// Eight variables at most. In new code: a lambda.
#ifndef WEFT_POSIX_LIBCO_CO_CLOSURE_H
#define WEFT_POSIX_LIBCO_CO_CLOSURE_H

#include <type_traits>

struct stCoClosure_t {
    virtual void exec() = 0;
    virtual ~stCoClosure_t() {}
};

// A list is a name, which is not counted, and up to eight variables: so it is never empty.
#define WEFT_CO_TENTH_(_0, _1, _2, _3, _4, _5, _6, _7, _8, _9, ...) _9
#define WEFT_CO_COUNT_(...) WEFT_CO_TENTH_(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0, )
#define WEFT_CO_NAME_(...) WEFT_CO_FIRST_(__VA_ARGS__, )
#define WEFT_CO_FIRST_(name, ...) name
#define WEFT_CO_JOIN_(a, b) WEFT_CO_JOIN_NOW_(a, b)
#define WEFT_CO_JOIN_NOW_(a, b) a##b

// f(x) of each variable of a list, one after the other.
#define WEFT_CO_EACH_(f, ...) WEFT_CO_JOIN_(WEFT_CO_EACH_, WEFT_CO_COUNT_(__VA_ARGS__))(f, __VA_ARGS__)
#define WEFT_CO_EACH_0(f, name)
#define WEFT_CO_EACH_1(f, name, x) f(x)
#define WEFT_CO_EACH_2(f, name, x, ...) f(x) WEFT_CO_EACH_1(f, name, __VA_ARGS__)
#define WEFT_CO_EACH_3(f, name, x, ...) f(x) WEFT_CO_EACH_2(f, name, __VA_ARGS__)
#define WEFT_CO_EACH_4(f, name, x, ...) f(x) WEFT_CO_EACH_3(f, name, __VA_ARGS__)
#define WEFT_CO_EACH_5(f, name, x, ...) f(x) WEFT_CO_EACH_4(f, name, __VA_ARGS__)
#define WEFT_CO_EACH_6(f, name, x, ...) f(x) WEFT_CO_EACH_5(f, name, __VA_ARGS__)
#define WEFT_CO_EACH_7(f, name, x, ...) f(x) WEFT_CO_EACH_6(f, name, __VA_ARGS__)
#define WEFT_CO_EACH_8(f, name, x, ...) f(x) WEFT_CO_EACH_7(f, name, __VA_ARGS__)

// The type of a variable has a name outside of the class, in which the variable's is a member's.
#define WEFT_CO_TYPE_(x) typedef std::remove_reference<decltype(x)>::type weft_type_of_##x;
#define WEFT_CO_REFERENCE_(x) weft_type_of_##x &x;
#define WEFT_CO_COPY_(x) weft_type_of_##x x;
#define WEFT_CO_PARAMETER_(x) const weft_type_of_##x &weft_given_##x,
#define WEFT_CO_MEMBER_(x) x(weft_given_##x),
#define WEFT_CO_ITEM_(x) x,

// co_ref(name, variables...)
#define co_ref(...)                                                \
    WEFT_CO_EACH_(WEFT_CO_TYPE_, __VA_ARGS__)                      \
    struct WEFT_CO_JOIN_(type_, WEFT_CO_NAME_(__VA_ARGS__)) {      \
        WEFT_CO_EACH_(WEFT_CO_REFERENCE_, __VA_ARGS__)             \
    } WEFT_CO_NAME_(__VA_ARGS__) = {WEFT_CO_EACH_(WEFT_CO_ITEM_, __VA_ARGS__)}

// Each list of a class ends in one more, of nothing, for the comma before it.
struct weft_co_nothing_ {};

// co_func(name, variables...)
#define co_func(...)                                               \
    WEFT_CO_EACH_(WEFT_CO_TYPE_, __VA_ARGS__)                      \
    struct WEFT_CO_NAME_(__VA_ARGS__) : stCoClosure_t {            \
        WEFT_CO_EACH_(WEFT_CO_COPY_, __VA_ARGS__)                  \
        weft_co_nothing_ weft_nothing_;                            \
        explicit WEFT_CO_NAME_(__VA_ARGS__)(WEFT_CO_EACH_(         \
            WEFT_CO_PARAMETER_, __VA_ARGS__) weft_co_nothing_ =    \
                                    weft_co_nothing_())            \
            : WEFT_CO_EACH_(WEFT_CO_MEMBER_, __VA_ARGS__)          \
                  weft_nothing_() {}                               \
        void exec()

#define co_func_end }

#endif
