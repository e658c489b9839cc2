// prepare_overflow_report: connects the stack layer's overflow report with the coroutine that runs
// on the faulting thread.
#pragma once

namespace weft::detail {

// Called at a thread's first resume: installs an alternate signal stack for the thread, and once
// for the process the handler.
void prepare_overflow_report() noexcept;

}  // namespace weft::detail
