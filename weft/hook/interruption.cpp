#include "weft/hook/detail/interruption.hpp"

#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <new>

#include "weft/base/detail/spin_lock.hpp"
#include "weft/base/detail/tls.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/sched/detail/detached_thread.hpp"
#include "weft/wait/waiter.hpp"

namespace weft::detail {
struct own_handler_count {
    unsigned count = 0;
    unsigned running = 0;  // handlers of the program
};
}  // namespace weft::detail
WEFT_DECLARE_THREAD_LOCAL(weft::detail::own_handler_count, weft_tls_own_handlers,
                          own_handlers_here);
WEFT_DEFINE_THREAD_LOCAL(weft::detail::own_handler_count, weft_tls_own_handlers);

namespace weft::hook {
namespace {

// A handler that has run. `state` goes from `free` to `taken` by the handler that claims the note,
// to `published` when all is written, and back to `free` by the thread that reads the note.
struct handler_note {
    enum : int { free, taken, published };
    atomic<int> state{free};
    pid_t thread = 0;
    int signal = 0;
    bool restarts = false;
    const flow* only = nullptr;  // compared, never dereferenced
    std::uint64_t up_to = 0;
};

constinit handler_note notes[64];
constinit atomic<int> published_count{0};  // a futex: tell_all() sleeps while it has seen all notes
constinit atomic<bool> handlers_are_expected{false};  // Orders: relaxed, it stands for itself.
// Orders: relaxed, it is written under the lock of the waits, and a handler reads what its own
// thread has written.
constinit atomic<std::uint64_t> last_wait{0};
// The process in which the thread of tell_all() runs. Orders: relaxed where it is read or reset,
// the exchange decides.
constinit atomic<pid_t> teller_of{0};
using syscall_type = long (*)(long, ...);
// A handler that finds it null wakes no thread: the thread of tell_all() is still to begin, and
// then sees the handler's note. So its store and the count's next load are in one order with the
// count's addition and the load of this.
constinit atomic<syscall_type> behind_hooks{nullptr};

struct all_waits {
    detail::spin_lock lock;
    detail::list<interruptible::node> nodes;
};
all_waits& waits() noexcept {
    alignas(all_waits) static std::byte storage[sizeof(all_waits)];
    static all_waits& the_one = *::new (storage) all_waits;
    return the_one;
}

// How often this process has come out of a fork. Orders: relaxed, it changes in the single thread
// of a child.
constinit atomic<unsigned> forks_of_waits{0};

// The waits are the parent's, and another thread of the parent may have been changing the list or a
// note.
__attribute__((constructor(101))) void clear_waits_in_children() {
    ::pthread_atfork(nullptr, nullptr, [] {
        forks_of_waits.fetch_add(1, std::memory_order_relaxed);
        std::construct_at(&waits());
        // Relaxed: a child of fork() has one thread.
        for (handler_note& n : notes) n.state.store(handler_note::free, std::memory_order_relaxed);
    });
}

// A message to the thread of the fiber's loop: ends the wait that it names, if the fiber is still
// in it.
struct interrupting : weft::detail::frame {
    runnable message;
    flow* of = nullptr;
    std::uint64_t number = 0;

    interrupting() noexcept : frame{arrive, drop} { message.handle = handle(); }
    ~interrupting() {
        if (of != nullptr) of->kind->release(*of);
    }
    void name(flow& f, std::uint64_t n) noexcept {
        of = &f;
        number = n;
        f.kind->retain(f);
    }

    static void arrive(frame* p) noexcept {
        auto* const self = static_cast<interrupting*>(p);
        if (!self->of->is_at(current_executor())) {  // the fiber has migrated meanwhile
            self->follow();
            return;
        }
        if (self->mark()) {
            waiter* const w = self->of->own_wait();
            if (w != nullptr && w->may_be_stopped()) w->stop(stop_reason::none);
        }
        delete self;
    }
    static void drop(frame* p) noexcept { delete static_cast<interrupting*>(p); }

    // The message may have run, and the flow may have ended, before the post returns.
    void follow() noexcept {
        flow* const f = of;
        f->kind->retain(*f);
        if (!f->post_home(message)) delete this;
        f->kind->release(*f);
    }

    // False: the call has ended.
    bool mark() const noexcept {
        all_waits& all = waits();
        const std::lock_guard held(all.lock);
        for (interruptible::node& n : all.nodes)
            if (n.number == number && n.of == of) return n.is_over = true;
        return false;
    }
};

// The handler is the eldest fiber's. If the call of that fiber restarts, no other fiber is chosen.
void tell(const handler_note& note) noexcept {
    auto* const telling = new (std::nothrow) interrupting;
    if (telling == nullptr) return;
    {
        all_waits& all = waits();
        const std::lock_guard held(all.lock);
        const interruptible::node* eldest = nullptr;
        for (const interruptible::node& n : all.nodes) {
            const bool is_blocked =
                n.blocked != nullptr && ::sigismember(n.blocked, note.signal) == 1;
            const bool is_anothers = note.only != nullptr && note.only != n.of;
            if (n.thread != note.thread || n.number > note.up_to || is_blocked || is_anothers)
                continue;
            if (eldest == nullptr || n.fiber < eldest->fiber) eldest = &n;
        }
        if (eldest != nullptr && !(note.restarts && eldest->by == ended_by::plain_handler))
            telling->name(*eldest->of, eldest->number);
    }
    if (telling->of == nullptr)
        delete telling;
    else
        telling->follow();
}

void futex(int operation, int value) noexcept {
    if (const syscall_type call = behind_hooks.load(std::memory_order_seq_cst))  // see there
        call(SYS_futex, &published_count, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr,
             0);
}

void tell_all(void*) noexcept {
    for (;;) {
        // Pairs with note_handler(); seq_cst for behind_hooks.
        const int seen = published_count.load(std::memory_order_seq_cst);
        for (handler_note& n : notes) {
            // Acquire: pairs with note_handler(), which fills the note.
            if (n.state.load(std::memory_order_acquire) != handler_note::published) continue;
            tell(n);
            // Release: pairs with the next claim of the note.
            n.state.store(handler_note::free, std::memory_order_release);
        }
        futex(FUTEX_WAIT, seen);
    }
}

// Starts the thread of tell_all(), once in each process. Called in a fiber.
void look_for_teller() noexcept {
    const pid_t here = ::getpid();
    pid_t before = teller_of.load(std::memory_order_relaxed);
    if (before == here || !teller_of.compare_exchange_strong(before, here)) return;
    behind_hooks.store(reinterpret_cast<syscall_type>(::dlsym(RTLD_NEXT, "syscall")),
                       std::memory_order_seq_cst);  // see there
    if (!weft::detail::begin_detached_thread(tell_all, nullptr))
        teller_of.store(0, std::memory_order_relaxed);  // the next wait tries again
}

// A signal that was sent to this thread while a fiber runs belongs to that fiber, which has mostly
// sent the signal itself.
const flow* only_for(const siginfo_t* why) noexcept {
    if (why == nullptr) return nullptr;
    const bool is_of_own_write = why->si_signo == SIGPIPE && why->si_pid == ::getpid();
    return why->si_code == SI_TKILL || is_of_own_write ? fiber_here() : nullptr;
}

}  // namespace

interruptible::interruptible(ended_by by, const sigset_t* blocked) noexcept {
    node_.by = by;
    // Relaxed: a handler that was set by another thread meanwhile finds the next wait.
    if (!handlers_are_expected.load(std::memory_order_relaxed)) return;
    fiber_core* const here = fiber_here();
    // A child that shares its parent's memory waits with its thread.
    if (here == nullptr || here->shares_stack() || !is_own_process()) return;
    look_for_teller();
    node_.of = here;
    node_.fiber = here->id();
    node_.thread = ::gettid();
    node_.blocked = blocked;
    node_.fork = forks_of_waits.load(std::memory_order_relaxed);
    all_waits& all = waits();
    const std::lock_guard held(all.lock);
    node_.number = last_wait.load(std::memory_order_relaxed) + 1;
    last_wait.store(node_.number, std::memory_order_relaxed);  // read by handlers of this thread
    all.nodes.push_back(node_);
}

interruptible::~interruptible() {
    if (node_.of == nullptr) return;
    if (node_.fork != forks_of_waits.load(std::memory_order_relaxed)) {  // a handler has forked
        std::construct_at(&node_);                                       // the node is in no list
        return;
    }
    all_waits& all = waits();
    const std::lock_guard held(all.lock);
    all.nodes.remove(node_);
}

void interruptible::become(ended_by by) noexcept {
    if (node_.by == by) return;
    if (node_.of == nullptr || node_.fork != forks_of_waits.load(std::memory_order_relaxed)) {
        node_.by = by;  // the node is in no list
        return;
    }
    all_waits& all = waits();
    const std::lock_guard held(all.lock);
    node_.by = by;
}

void expect_handlers() noexcept { handlers_are_expected.store(true, std::memory_order_relaxed); }

void note_handler(int signal, bool restarts, const siginfo_t* why) noexcept {
    if (last_wait.load(std::memory_order_relaxed) == 0) return;
    if (!process_state::has(process_state::alive)) return;
    if (weft::detail::own_handlers_here().count != 0) return;
    const int before = errno;
    for (handler_note& n : notes) {
        int state = handler_note::free;
        // Acquire: pairs with the store of the thread that has read the note.
        if (!n.state.compare_exchange_strong(state, handler_note::taken, std::memory_order_acquire))
            continue;
        n.thread = ::gettid();
        n.signal = signal;
        n.restarts = restarts;
        n.only = only_for(why);
        n.up_to = last_wait.load(std::memory_order_relaxed);
        n.state.store(handler_note::published, std::memory_order_release);  // pairs with tell_all
        published_count.fetch_add(1, std::memory_order_seq_cst);  // pairs with tell_all() too
        futex(FUTEX_WAKE, 1);
        break;
    }
    errno = before;
}

own_handlers::own_handlers() noexcept { ++weft::detail::own_handlers_here().count; }
own_handlers::~own_handlers() { --weft::detail::own_handlers_here().count; }

running_handler::running_handler() noexcept { ++weft::detail::own_handlers_here().running; }
running_handler::~running_handler() { --weft::detail::own_handlers_here().running; }

bool is_in_handler() noexcept { return weft::detail::own_handlers_here().running != 0; }

}  // namespace weft::hook
