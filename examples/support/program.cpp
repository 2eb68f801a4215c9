#include "examples/support/program.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "muster/core/base/error.h"

namespace example {

int runProgram(std::string_view name, const std::function<int()>& body) {
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // in step with the progress on standard error
  // A write beyond a limit of the file's size then fails as one on a full disk does, with a message.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return body();
  } catch (const muster::InvalidArgument& error) {
    fmt::print(stderr, "{}: {}\n", name, error.what());
    return 2;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "{}: out of memory\n", name);
  } catch (...) {
    fmt::print(stderr, "{}: {}\n", name, muster::describe(std::current_exception()));
  }
  return 1;
}

}  // namespace example
