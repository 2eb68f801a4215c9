#pragma once

#include <string>

namespace example {

/// Makes standard input, output and error safe for a program that writes files and trains for hours. Call it
/// first, once, before other threads start.
///
/// - A descriptor 0 to 2 that is closed is opened on /dev/null. Otherwise the next file would get its number,
///   and messages would be written into that file.
/// - A write to standard output or error that fails (a full disk, a closed pipe) throws nothing and ends
///   nothing: the rest of what is printed there is dropped, and the training goes on.
void guardStandardStreams();

/// Writes out what standard output still holds. @return why something printed there was lost; "" if nothing
/// was.
std::string lostOutput();

}  // namespace example
