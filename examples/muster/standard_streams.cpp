#include "examples/muster/standard_streams.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <new>
#include <system_error>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/io/atomic_file.h"

namespace program {
namespace {

/// The descriptor of a C stream, and the first error of a write to it.
struct Output {
  int descriptor;
  std::atomic<int> error{0};
  bool closed = false;  // when the program began
};

// Globals, because the C library closes the streams after `main`.
Output standardOutput{STDOUT_FILENO};
Output standardError{STDERR_FILENO};
std::FILE* resultStream = nullptr;  // null: stdout

/// Always reports success, because `fmt::print` throws on an error.
ssize_t write(void* cookie, const char* data, std::size_t size) {
  auto& output = *static_cast<Output*>(cookie);
  for (std::size_t done = 0; done < size && output.error == 0;) {
    const ssize_t written = ::write(output.descriptor, data + done, size - done);
    if (written >= 0)
      done += static_cast<std::size_t>(written);
    else if (errno != EINTR)
      output.error = errno;
  }
  return static_cast<ssize_t>(size);
}

std::FILE* streamTo(Output& output, int buffering) {
  std::FILE* const stream =
      ::fopencookie(&output, "w", {.read = nullptr, .write = write, .seek = nullptr, .close = nullptr});
  if (stream == nullptr) throw std::bad_alloc();
  std::setvbuf(stream, nullptr, buffering, BUFSIZ);
  return stream;
}

}  // namespace

void guardStandardStreams() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor)
    if (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF) {
      static_cast<void>(::open("/dev/null", O_RDWR));  // gets the lowest free number: `descriptor`
      if (descriptor == STDOUT_FILENO) standardOutput.closed = true;
    }
  std::signal(SIGPIPE, SIG_IGN);              // a write to a closed pipe becomes an error
  stdout = streamTo(standardOutput, _IOLBF);  // line-buffered: in order with the progress on stderr
  stderr = streamTo(standardError, _IONBF);
}

void keepStandardOutputForResult() {
  std::fflush(stdout);
  resultStream = std::exchange(stdout, streamTo(standardError, _IOLBF));
}

void printResult(std::string_view text) {
  if (standardOutput.closed) throw muster::Error("standard output could not be written: it is closed");
  fmt::print(resultStream != nullptr ? resultStream : stdout, "{}", text);
}

bool isStandardOutput(const std::filesystem::path& path) {
  return path == "-" || path == "/dev/stdout" || path == "/dev/fd/1" || path == "/proc/self/fd/1";
}

bool writeResult(const std::filesystem::path& path, std::string_view text) {
  if (isStandardOutput(path)) {
    printResult(text);
    return false;
  }
  muster::writeFileAtomically(path, text);
  return true;
}

std::string lostOutput() {
  std::fflush(stdout);
  if (resultStream != nullptr) std::fflush(resultStream);
  const int error = standardOutput.error;
  return error == 0 ? "" : std::generic_category().message(error);
}

}  // namespace program
