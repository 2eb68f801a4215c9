#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace program {

/// Makes standard input, output and error safe for a program that writes files and trains for hours. Call it
/// first, once, before other threads start.
///
/// - Opens closed descriptors 0 to 2 on /dev/null. Otherwise the next file would get such a number, and
///   messages would be written into that file.
/// - If a write to standard output or error fails (a full disk, a closed pipe), the rest of the output is
///   dropped, and the training continues without an exception.
void guardStandardStreams();

/// From now on only `printResult` and `writeResult` write to standard output; all that is printed to `stdout`
/// goes to standard error. For a command that prints lines for people, too.
void keepStandardOutputForResult();

/// Prints the result of a command.
/// @throws muster::Error if standard output was closed when the program began.
void printResult(std::string_view text);

/// Whether a path names standard output: "-" or /dev/stdout.
bool isStandardOutput(const std::filesystem::path& path);

/// Writes the text that is a command's whole result, into a file or to standard output.
/// @return whether it is a file. @throws muster::FileError, or as printResult.
bool writeResult(const std::filesystem::path& path, std::string_view text);

/// Flushes standard output. @return why output was lost; "" if none was.
std::string lostOutput();

}  // namespace program
