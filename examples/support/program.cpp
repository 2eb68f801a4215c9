#include "examples/support/program.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <system_error>

#include "examples/support/standard_streams.h"
#include "muster/core/base/error.h"
#include "muster/core/base/printable_text.h"

namespace example {
namespace {

int runBody(std::string_view name, const std::function<int()>& body) {
  try {
    return body();
  } catch (const muster::InvalidArgument& error) {
    fmt::print(stderr, "{}: {}\n", name, muster::printableText(error.what()));
    return 2;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "{}: out of memory\n", name);
  } catch (const std::system_error& error) {
    const bool thread = error.code() == std::errc::resource_unavailable_try_again;
    fmt::print(stderr, "{}: {}{}\n", name, thread ? "a thread could not be started: " : "",
               muster::printableText(error.what()));
  } catch (...) {
    fmt::print(stderr, "{}: {}\n", name, muster::printableText(muster::describe(std::current_exception())));
  }
  return 1;
}

}  // namespace

int runProgram(std::string_view name, const std::function<int()>& body) {
  guardStandardStreams();
  // Ignoring SIGXFSZ makes a write beyond the file size limit fail like one on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  const int status = runBody(name, body);
  const std::string lost = lostOutput();
  if (lost.empty()) return status;
  fmt::print(stderr, "{}: standard output could not be written: {}\n", name, lost);
  return status == 0 ? 1 : status;
}

}  // namespace example
