#pragma once

#include <boost/program_options/parsers.hpp>

#include "tests/examples/program.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/texts.h"

namespace muster::test {

/// An example program in an empty directory of its own, without data sets: its cache is empty, and no server
/// listens at the addresses of its downloads.
class Sandbox {
 public:
  explicit Sandbox(std::string executable = MUSTER_PROGRAM) : executable_(std::move(executable)) {}

  Launch launch(std::vector<std::string> arguments) const {
    const std::string noServer = "http://127.0.0.1:1/";
    return {.directory = directory.path(),
            .arguments = std::move(arguments),
            .environment = {{"MUSTER_DATA_DIR", ""},
                            {"MUSTER_CACHE_DIR", cache.path().string()},
                            {"MUSTER_MNIST_URL", noServer},
                            {"MUSTER_FASHION_MNIST_URL", noServer},
                            {"MUSTER_CIFAR10_URL", noServer},
                            {"no_proxy", "127.0.0.1"}}};
  }
  Outcome run(std::vector<std::string> arguments) const {
    return runProgram(executable_, launch(std::move(arguments)));
  }

  /// Runs a line such as `train run.json --set 'data={"type": "mnist"}'`, whose words and quotes are a shell's.
  Outcome operator()(const std::string& line) const {
    return run(boost::program_options::split_unix(line));
  }
  /// The outcome of a line that must succeed; otherwise its errors are shown and the case ends.
  Outcome succeeds(const std::string& line,
                   std::source_location where = std::source_location::current()) const {
    return succeeded((*this)(line), where);
  }
  /// Checks that a line ends with this status and one sentence of the program's own, which contains `text`.
  void refuses(const std::string& line, const std::string& text, int exit = 2,
               std::source_location where = std::source_location::current()) const {
    CAPTURE(line);
    const auto error = errorOf((*this)(line), exit, where);
    CHECK_CONTAINS(error, text);
    CHECK(std::ranges::count(error, '\n') == 1);
  }

  void write(const std::string& name, const std::string& text) const {
    writeFile(directory / name, text);
  }
  std::string read(const std::string& name) const { return readFile(directory / name); }

  TemporaryDirectory directory;
  TemporaryDirectory cache;

 private:
  std::string executable_;
};

}  // namespace muster::test
