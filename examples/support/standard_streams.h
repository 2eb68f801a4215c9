#pragma once

#include <string>

namespace example {

/// Makes standard input, output and error safe for a program that writes files and trains for hours. Call it
/// first, once, before other threads start.
///
/// - Opens closed descriptors 0 to 2 on /dev/null. Otherwise the next file would get such a number, and
///   messages would be written into that file.
/// - If a write to standard output or error fails (a full disk, a closed pipe), the rest of the output is
///   dropped, and the training continues without an exception.
void guardStandardStreams();

/// Flushes standard output. @return why output was lost; "" if none was.
std::string lostOutput();

}  // namespace example
