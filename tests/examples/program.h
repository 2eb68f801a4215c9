#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

namespace muster::test {

/// How a program ended and what it wrote.
struct Outcome {
  int exit = -1;    ///< its exit status, or minus the number of the signal that killed it
  std::string out;  ///< standard output
  std::string err;  ///< standard error
};

/// The outcome of a program that must have succeeded; otherwise its errors are shown and the case ends.
Outcome succeeded(Outcome outcome, std::source_location where = std::source_location::current());
/// The errors of a program that must have ended with this status, by default that of a mistake in its
/// options.
std::string errorOf(const Outcome& outcome, int exit = 2,
                    std::source_location where = std::source_location::current());

/// The words of a line, with a shell's quotes: in '...' all is meant as it is, elsewhere what follows a \\.
std::vector<std::string> wordsOf(const std::string& line);

/// How to start a program: in its own directory, with this process's environment and these settings.
struct Launch {
  std::filesystem::path directory;
  std::vector<std::string> arguments = {};
  std::map<std::string, std::string> environment = {};
  std::optional<std::size_t> fileSizeLimit = {};  ///< RLIMIT_FSIZE, bytes
  std::filesystem::path terminal = {};            ///< standard error goes there; empty: to a file
};

/// A program that runs concurrently with the test; it is killed with the object, or with the test.
class Program {
 public:
  /// Starts the program, and returns once it is no longer a copy of the test with the test's signal handlers.
  Program(const std::filesystem::path& executable, const Launch& launch);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Waits until standard output or error contain `text`. @return false if the program ends before that, or
  /// after two minutes.
  bool awaitText(const std::string& text);
  /// Waits until the program handles a signal. @return false if it ends before that, or after two minutes.
  bool awaitHandler(int number);
  void signal(int number) const;
  /// Stops all its threads, until it gets SIGCONT. @return false if it has ended.
  bool stop();
  /// Waits up to `time` for its end. @return whether it has ended.
  bool endsWithin(std::chrono::duration<double> time);
  /// Sends different signals to its main thread, which handles all of them before it continues.
  void signalTogether(std::initializer_list<int> numbers);
  /// Waits for its end.
  Outcome wait();

 private:
  bool ended();
  /// Waits for a condition. @return false if the program ends before that, or after two minutes.
  bool await(const std::function<bool()>& holds);

  std::filesystem::path out_, err_;
  pid_t process_ = -1;
  std::optional<int> status_;  // once it has ended
};

/// Whether a program of this build exists: a packed build contains only tests.
bool isHere(const std::filesystem::path& executable);

/// Whether the programs were built with the page, which --page, --curves and --report need.
#ifdef MUSTER_WITH_PAGE
inline constexpr bool kWithPage = true;
#else
inline constexpr bool kWithPage = false;
#endif
inline constexpr const char* kNoPage = "the programs were built without the page (libjs-dygraphs)";

/// The option of a report in that directory, as the end of a line; none without the page.
inline std::string reportIn(const std::string& directory) {
  return kWithPage ? " --report " + directory : "";
}

}  // namespace muster::test
