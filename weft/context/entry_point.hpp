// entry_point, arrival: how a fresh context starts, and what a switch hands to its target.
#pragma once

namespace weft {

struct context;

// What an agent receives when it is switched to: the word, the sender's context, and its own.
struct arrival {
    void* word;
    context* from;
    context* self;
};

// The functions with which a fresh context starts and ends. All three run on its stack, whose
// outermost frame is weft's for every unwinder and debugger.
//
//     enter(from, self, word) ------- returns -----------------------------> left(self)
//                                 \-- throws --> escaped(self), in a handler --/  never returns
struct entry_point {
    void (*enter)(context* from, context* self, void* word);
    void (*escaped)(context* self) noexcept;  // std::current_exception() has left `enter`
    void (*left)(context* self) noexcept;
};

}  // namespace weft
