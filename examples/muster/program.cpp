#include "examples/muster/program.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "examples/muster/standard_streams.h"
#include "muster/core/base/error.h"
#include "muster/core/base/interrupt.h"
#include "muster/core/base/printable_text.h"
#include "muster/core/base/process_name.h"
#include "muster/core/base/terminal_size.h"
#include "muster/core/listeners/progress_listener.h"

namespace program {
namespace {

std::string programName;  // main thread only

void printError(std::string_view program, std::string_view text) {
  fmt::print(stderr, "{}",
             muster::linesForTerminal(muster::lineStart(program) + muster::printableText(text)));
}

int runBody(std::string_view name, const std::function<int()>& body) {
  try {
    return body();
  } catch (const muster::InvalidArgument& error) {
    printError(name, error.what());
    return 2;
  } catch (const std::bad_alloc&) {
    printError(name, "out of memory");
  } catch (...) {
    printError(name, muster::describe(std::current_exception()));
  }
  return 1;
}

}  // namespace

int runProgram(std::string_view name, const std::function<int()>& body) {
  guardStandardStreams();
  // Ignoring SIGXFSZ makes a write beyond the file size limit fail like one on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  programName = name;
  muster::showProgress(false);  // these programs have options for it
  endOnInterrupt("Interrupted.");
  const int status = runBody(name, body);
  const std::string lost = lostOutput();
  if (lost.empty()) return status;
  printError(name, "standard output could not be written: " + lost);
  return status == 0 ? 1 : status;
}

void endOnInterrupt(std::string_view sentence) {
  muster::exitOnInterrupt(fmt::format("{}{}\n", muster::lineStart(programName), sentence));
}

TrainingInterrupt::TrainingInterrupt() {
  // First, because this sentence is also the one after a failed training.
  endOnInterrupt("Interrupted.");
  interrupt_.emplace();
  token_ = interrupt_->token();
}

void TrainingInterrupt::endWith(std::string_view sentence) {
  endOnInterrupt(sentence);  // first: it takes a signal that comes once there is no Interrupt
  interrupt_.reset();
}

}  // namespace program
