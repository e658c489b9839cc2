// What the explorer does at each operation: lets others go first, chooses what is seen, notes it.
#include <string>
#include <utility>

#include "model/explorer.hpp"

namespace model::detail {

std::size_t explorer::index(cell& c, source_location caller) {
    if (c.over) fail("an atomic is used after its end", caller);
    if (c.execution != execution_) {
        c.execution = execution_;
        c.index = static_cast<unsigned>(memory_.count());
        if (!memory_.add(c.value)) fail("too many atomics", {});
    }
    return c.index;
}

void explorer::set(cell& c, word w) {
    if (c.value != w) changed_at_ = steps_;
    c.value = w;
}

void explorer::must_be_pure(source_location caller) {
    if (peeking_) fail("the predicate of wait_until does more than load", caller);
}

word explorer::load(cell& c, memory_order o, source_location caller) {
    if (peeking_) return c.value;
    point(caller);
    const std::size_t x = index(c, caller);
    const std::size_t readable = atomic_ ? 1 : memory_.readable(running_, x, o);
    const std::size_t back = deviate(readable, caller);
    const word w = memory_.read(running_, x, back, o);
    note("load", caller, name_of(o), x, w, w, back == 0 ? "" : "old");
    return w;
}

void explorer::store(cell& c, word w, memory_order o, source_location caller) {
    must_be_pure(caller);
    point(caller);
    const std::size_t x = index(c, caller);
    memory_.write(running_, x, w, o);
    set(c, w);
    note("store", caller, name_of(o), x, w, w);
}

word explorer::read_modify_write(cell& c, change f, word operand, memory_order o,
                                 source_location caller) {
    must_be_pure(caller);
    point(caller);
    const std::size_t x = index(c, caller);
    const word before = read_newest(x, o);
    set(c, f(before, operand));
    memory_.overwrite(running_, x, c.value, o);
    note("change", caller, name_of(o), x, before, c.value);
    return before;
}

bool explorer::compare_exchange(cell& c, word& expected, word desired, bool weak, memory_order yes,
                                memory_order no, source_location caller) {
    must_be_pure(caller);
    point(caller);
    const std::size_t x = index(c, caller);
    const bool equal = c.value == expected;
    // Once in an execution: a loop that tries again would never be walked to its end.
    const bool fails = equal && weak && !weakness_shown_ && deviate(2, caller) == 1;
    if (!equal || fails) {
        weakness_shown_ |= fails;
        expected = read_newest(x, no);
        note("compare", caller, name_of(no), x, expected, expected, equal ? "fails" : "differs");
        return false;
    }
    static_cast<void>(read_newest(x, yes));
    memory_.overwrite(running_, x, desired, yes);
    set(c, desired);
    note("compare", caller, name_of(yes), x, expected, desired);
    return true;
}

void explorer::fence(memory_order o, source_location caller) {
    must_be_pure(caller);
    point(caller);
    memory_.fence(running_, o);
    note("fence", caller, name_of(o));
}

void explorer::fence_all(source_location caller) {
    must_be_pure(caller);
    point(caller);
    memory_.fence_all(running_);
    note("fence", caller, "of all");
}

void explorer::touch(cell& c, bool writes, source_location caller) {
    if (peeking_) return;
    if (c.execution != execution_) {
        c.execution = execution_;
        c.index = static_cast<unsigned>(memory_.add_plain());
    }
    const memory::access* other = memory_.touch(running_, c.index, writes, caller);
    note(writes ? "write" : "read", caller, "plain");
    if (other == nullptr) return;
    fail("a data race: nothing orders this " + std::string(writes ? "write" : "read") +
             " after the " + (other->writes ? "write" : "read") + " by " +
             threads_[other->who]->name + " at " + spelt(other->place),
         caller);
}

// ---------------------------------------------------------------------------------------------
// Outside of an execution an atomic is a plain variable.

word load(cell& c, memory_order o, source_location caller) {
    return explorer::active != nullptr ? explorer::active->load(c, o, caller) : c.value;
}
void store(cell& c, word w, memory_order o, source_location caller) {
    if (explorer::active != nullptr)
        explorer::active->store(c, w, o, caller);
    else
        c.value = w;
}
word read_modify_write(cell& c, change f, word operand, memory_order o, source_location caller) {
    if (explorer::active != nullptr)
        return explorer::active->read_modify_write(c, f, operand, o, caller);
    return std::exchange(c.value, f(c.value, operand));
}
bool compare_exchange(cell& c, word& expected, word desired, bool weak, memory_order yes,
                      memory_order no, source_location caller) {
    if (explorer::active != nullptr)
        return explorer::active->compare_exchange(c, expected, desired, weak, yes, no, caller);
    if (c.value == expected) {
        c.value = desired;
        return true;
    }
    expected = c.value;
    return false;
}
void fence(memory_order o, source_location caller) {
    if (explorer::active != nullptr) explorer::active->fence(o, caller);
}
void fence_all(source_location caller) {
    if (explorer::active != nullptr) explorer::active->fence_all(caller);
}
place_of_thread running_thread() noexcept {
    return explorer::active != nullptr ? explorer::active->place() : place_of_thread{0, 0};
}
bool is_known(const cell& c) {
    return explorer::active != nullptr && c.execution == explorer::active->place().execution;
}
void end(cell& c) { c.over = explorer::active != nullptr; }
void touch(cell& c, bool writes, source_location caller) {
    if (explorer::active != nullptr) explorer::active->touch(c, writes, caller);
}

}  // namespace model::detail
