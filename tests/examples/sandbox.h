#pragma once

#include "tests/examples/program.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/texts.h"

namespace muster::test {

/// The number after the last `label` in a text.
inline double numberAfter(const std::string& text, const std::string& label) {
  const auto at = text.rfind(label);
  INFO("\"", label, "\" in ", text);
  REQUIRE(at != text.npos);
  return std::stod(text.substr(at + label.size()));
}

/// An example program in an empty directory of its own, without data sets: its cache is empty, and no server
/// listens at the addresses of its downloads.
class Sandbox {
 public:
  explicit Sandbox(std::string executable = MUSTER_PROGRAM) : executable_(std::move(executable)) {}

  /// How to start a line such as `train run.json --set 'data={"type": "mnist"}'`, whose words and quotes are
  /// a shell's.
  Launch launchOf(const std::string& line) const { return launch(wordsOf(line)); }
  /// Starts a line beside the test.
  Program start(const std::string& line) const { return {executable_, launchOf(line)}; }
  Outcome operator()(const std::string& line) const { return start(line).wait(); }
  /// Runs a line of a shell that finds the program by its name, as in `muster train run.json >&-`.
  Outcome shell(const std::string& line) const {
    auto inShell = launch({"-c", line});
    const auto programs = std::filesystem::path(executable_).parent_path().string();
    inShell.environment["PATH"] = programs + ":/usr/local/bin:/usr/bin:/bin";
    return Program("/bin/sh", inShell).wait();
  }
  /// The outcome of a line that must succeed; otherwise its errors are shown and the case ends.
  Outcome succeeds(const std::string& line,
                   std::source_location where = std::source_location::current()) const {
    return succeeded((*this)(line), where);
  }
  /// Checks that a line ends with this status and one sentence of the program's own, which contains `text`. A
  /// mistake in the options is found before anything is printed.
  void refuses(const std::string& line, const std::string& text, int exit = 2,
               std::source_location where = std::source_location::current()) const {
    CAPTURE(line);
    const auto run = (*this)(line);
    const auto error = errorOf(run, exit, where);
    CHECK_CONTAINS(error, text);
    if (exit == 2) CHECK(run.out == "");
    CHECK(std::ranges::count(error, '\n') == 1);
  }

  void write(const std::string& name, const std::string& text) const { writeFile(directory / name, text); }
  std::string read(const std::string& name) const { return readFile(directory / name); }
  bool has(const std::string& name) const { return std::filesystem::exists(directory / name); }
  /// The tensors of a model file as bytes, without what its header says, such as the run.
  std::string tensorsIn(const std::string& name) const {
    const auto file = read(name);
    std::uint64_t header = 0;
    std::memcpy(&header, file.data(), std::min(file.size(), sizeof header));
    return file.substr(std::min<std::uint64_t>(file.size(), 8 + header));
  }

  TemporaryDirectory directory;
  TemporaryDirectory cache;
  std::map<std::string, std::string> environment{
      {"MUSTER_DATA_DIR", ""},           {"MUSTER_CACHE_DIR", cache.path().string()},
      {"MUSTER_MNIST_URL", kNoServer},   {"MUSTER_FASHION_MNIST_URL", kNoServer},
      {"MUSTER_CIFAR10_URL", kNoServer}, {"no_proxy", "127.0.0.1"}};
  std::optional<std::size_t> fileSizeLimit;  ///< bytes that a file may have

 private:
  Launch launch(std::vector<std::string> arguments) const {
    return {.directory = directory.path(),
            .arguments = std::move(arguments),
            .environment = environment,
            .fileSizeLimit = fileSizeLimit};
  }

  static constexpr const char* kNoServer = "http://127.0.0.1:1/";
  std::string executable_;
};

}  // namespace muster::test
