// terminal: what a terminal has besides its bytes, which are read and written as those of a pipe
// (standard_streams.hpp): its modes, for a scope, and its size; and a serial line.
//
// Design: the modes belong to the terminal and not to the program, so a program that changes them
// restores them. A scope does that however it is left, also by a fiber that is stopped or killed,
// and by exit() while the scope is active.
//
// A read of either side of a terminal finds the end once the other side is closed. Behind it the
// master side (openpty(3)) has more to read if the other side is opened again.
//
// No call here waits: bytes that are being sent when the modes change are sent under the new ones.
//
// Job control. While this program is in the background of its terminal, another program has the
// terminal: start() returns device_or_resource_busy, and the end of a scope leaves the modes as
// they are. A shell sets the modes itself when it stops a program; after SIGCONT a program sets its
// own with again().
//
// Limits: a program that is ended by a signal restores nothing: SIGINT, SIGTERM and SIGHUP should
// be waited for (signal_set.hpp). Scopes of one terminal end in the reverse of their order. A child
// of fork() restores nothing for its parent. If the other side has stopped a serial line (flow
// control), close() waits for what was written, 30 s at most unless setserial(8) says otherwise,
// and the driver's thread waits with it.
//
//   auto keys = weft::terminal_scope::start(0, weft::terminal_mode::keys);
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
    keys,    // each key at once, without echo; ^C, ^Z and output are as before
    hidden,  // lines as before, without echo: for a password
};

namespace detail {
struct kept_modes;
}

// Sets the modes of the terminal that an fd is open on, until the end of the scope. The fd may be
// closed before that.
class terminal_scope {
public:
    static result<terminal_scope> start(int number, terminal_mode = terminal_mode::raw) noexcept;

    terminal_scope(terminal_scope&&) noexcept;
    terminal_scope& operator=(terminal_scope&&) noexcept;
    // As end(): restores the modes.
    ~terminal_scope();

    // Sets the scope's modes once more, after something else has changed them. errc::closed: after
    // end().
    result<void> again() noexcept;

    // Restores the former modes. Once; later calls do nothing.
    result<void> end() noexcept;

private:
    explicit terminal_scope(std::unique_ptr<detail::kept_modes>) noexcept;

    std::unique_ptr<detail::kept_modes> kept_;
};

// The size of a terminal, in characters.
struct terminal_size {
    unsigned columns = 0;  // zero: not known
    unsigned rows = 0;

    bool operator==(const terminal_size&) const = default;
};

// inappropriate_io_control_operation: it is not a terminal. Any thread.
result<terminal_size> size_of_terminal(int number) noexcept;
// The processes of the terminal get SIGWINCH, if the size differs from before.
result<void> resize_terminal(int number, terminal_size) noexcept;

// How a serial line guards its bytes and its flow, and its options.
enum class serial_parity { none, even, odd };
enum class serial_flow { none, hardware, software };  // hardware: RTS and CTS

// The options of a serial line: by default 115 200 bits a second, 8N1.
struct serial_options {
    unsigned baud = 115200;
    unsigned data_bits = 8;  // 5 to 8
    unsigned stop_bits = 1;  // 1 or 2
    serial_parity parity = serial_parity::none;
    serial_flow flow = serial_flow::none;
};

// A line to a device and not to a person; raw, and without regard to a carrier. A line that is
// gone, such as an adapter that was pulled out, reads as the end, and a write to it is an error
// (io_error). The line is closed when both ends are, and keeps its modes.
struct serial_line {
    pipe_reader reader;
    pipe_writer writer;

    // Does not wait for the line. invalid_argument: a speed or a count that no line has.
    // not_supported: this line cannot do what is asked. inappropriate_io_control_operation: it is
    // not a line. It does not become this program's terminal.
    static result<serial_line> open(const std::string& path, const serial_options& = {}) noexcept;
};

}  // namespace weft
