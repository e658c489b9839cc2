// terminal: what a terminal has besides its bytes, which are read and written as those of a pipe
// (standard_streams.hpp): its modes, for a scope, and its size; and a serial line.
//
// Its one idea: the modes belong to the terminal and not to the program, so a program that changes
// them puts them back: the scope does, however it is left: also by a fiber that is stopped or
// killed, and by exit() while it stands.
//
//   auto keys = weft::terminal_scope::begin(0, weft::terminal_mode::keys);
//   if (!keys) return keys.error();      // inappropriate_io_control_operation: it is no terminal
//   auto in = weft::standard_input().value();
//   auto resized = weft::signal_set::open({SIGWINCH}).value();
//   auto size = weft::size_of_terminal(1).value();
//   while (resized.wait())               // or co_await resized.async_wait()
//       show(size = weft::size_of_terminal(1).value());
//
//   auto line = weft::serial_line::open("/dev/ttyUSB0", {.baud = 9600}).value();
//   auto w = line.writer.write_all(weft::bytes_of("AT\r"));
//   auto n = line.reader.read(buffer);   // or co_await line.reader.async_read(buffer)
//
// No call here waits: what is on its way out when the modes change is sent under the new ones.
//
// Job control. A terminal is another program's while this one is in its background: begin() says
// device_or_resource_busy, and the end of a scope leaves the modes as they are. A shell sets them
// itself when it stops a program, so one that has gone on (SIGCONT) asks for its own again().
//
// Limits: a program that is ended by a signal puts nothing back: SIGINT, SIGTERM and SIGHUP are
// best waited for (signal_set.hpp). Scopes of one terminal end in the reverse of their order. A
// child of fork() puts back nothing of its parent's. The end of a serial line that the other side
// has stopped (flow control) waits in close() for what was written, 30 s at most unless
// setserial(8) says else, and the driver's thread with it.
//
// Model: none, one lock guards all that is shared.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "weft/base/result.hpp"
#include "weft/io/pipe.hpp"

namespace weft {

enum class terminal_mode {
    raw,     // bytes, as they are typed and written: no lines, no echo, no signals
    keys,    // each key at once and not shown; ^C, ^Z and what is written are as before
    hidden,  // lines as before, and not shown: a password
};

namespace detail {
struct kept_modes;
}

// The modes of the terminal that a number is open on, until the end of the scope. The number may be
// closed before.
class terminal_scope {
public:
    static result<terminal_scope> begin(int number, terminal_mode = terminal_mode::raw) noexcept;

    terminal_scope(terminal_scope&&) noexcept;
    terminal_scope& operator=(terminal_scope&&) noexcept;
    ~terminal_scope();

    // Its mode once more, when something else has changed it.
    result<void> again() noexcept;

    // Puts back what was there before. Once; later calls do nothing.
    result<void> end() noexcept;

private:
    explicit terminal_scope(std::unique_ptr<detail::kept_modes>) noexcept;

    std::unique_ptr<detail::kept_modes> kept_;
};

struct terminal_size {
    unsigned columns = 0;  // zero: nobody has said
    unsigned rows = 0;

    bool operator==(const terminal_size&) const = default;
};

// inappropriate_io_control_operation: it is no terminal. Any thread.
result<terminal_size> size_of_terminal(int number) noexcept;
// Those whose terminal it is are told by SIGWINCH, if it is another size than before.
result<void> resize_terminal(int number, terminal_size) noexcept;

enum class serial_parity { none, even, odd };
enum class serial_flow { none, hardware, software };  // hardware: RTS and CTS

struct serial_options {
    unsigned baud = 115200;
    unsigned data_bits = 8;  // 5 to 8
    unsigned stop_bits = 1;  // 1 or 2
    serial_parity parity = serial_parity::none;
    serial_flow flow = serial_flow::none;
};

// A line with something other than a person at its end; raw, and without regard to a carrier. What
// is gone, as an adapter that was pulled out, reads as the end or as an error, and is an error to
// write. The line is closed when both ends are, and keeps its modes.
struct serial_line {
    pipe_reader reader;
    pipe_writer writer;

    // Does not wait for the line. invalid_argument: a speed or a count that no line has.
    // not_supported: this one cannot do what is asked. inappropriate_io_control_operation: it is no
    // line. It does not become this program's terminal.
    static result<serial_line> open(const std::string& path, const serial_options& = {}) noexcept;
};

}  // namespace weft
