// What both switches have in common: what arrives, and where a fresh context begins.
#pragma once

namespace weft {

struct context;

// What an agent receives when it is switched to: the word, the context that sent it, and its own.
struct arrival {
    void* word;
    context* from;
    context* self;
};

// Where a fresh context begins, goes on and ends; all three run on its stack, whose outermost frame
// is weft's for every unwinder and debugger.
//
//     enter(from, self, word) ------- returns -----------------------------> left(self)
//                                 \-- throws --> escaped(self), in a handler --/  never returns
struct entry_point {
    void (*enter)(context* from, context* self, void* word);
    void (*escaped)(context* self) noexcept;  // std::current_exception() is what left `enter`
    void (*left)(context* self) noexcept;
};

}  // namespace weft
