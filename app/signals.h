#pragma once
namespace sheaf {

/// Once, in main: SIGINT, SIGTERM and SIGHUP end the program with exit code 130; a limit on file sizes is an
/// error of the write, not the program's death.
void set_up_signals();

/// Refuses a limit on the stack that is too small to work with.
void check_stack();

/// The command looks at `interrupted` (core/base/interrupted.h) from now on: the first of those signals only
/// sets it, the second ends the program at once.
void stop_in_order();

/// The command's result is a folder: a reader of its output that goes away does not end it.
void outlive_readers();

}  // namespace sheaf
