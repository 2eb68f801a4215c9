#include "tests/examples/program.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "tests/support/temporary_directory.h"

namespace muster::test {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> environmentWith(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!changes.contains(text.substr(0, text.find('=')))) all.push_back(text);
  }
  for (const auto& [name, value] : changes) all.push_back(fmt::format("{}={}", name, value));
  return all;
}

std::vector<char*> pointersTo(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (auto& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// In the child, between fork and exec: system calls only.
[[noreturn]] void become(const char* executable, char* const* arguments, char* const* environment,
                         const char* directory, const char* out, const char* err, const rlimit* fileSize) {
  constexpr int kFlags = O_CREAT | O_TRUNC | O_WRONLY | O_NOCTTY;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A test in the background of a shell ignores SIGINT, and what it starts would, too.
  for (const int number : {SIGINT, SIGHUP, SIGXCPU}) ::signal(number, SIG_DFL);
  const bool ready = ::dup2(::open(out, kFlags, 0600), STDOUT_FILENO) >= 0 &&
                     ::dup2(::open(err, kFlags, 0600), STDERR_FILENO) >= 0 && ::chdir(directory) == 0 &&
                     (fileSize == nullptr || ::setrlimit(RLIMIT_FSIZE, fileSize) == 0);
  if (ready) ::execve(executable, arguments, environment);
  ::_exit(127);
}

}  // namespace

Outcome succeeded(Outcome outcome, std::source_location where) {
  INFO("in line ", where.line(), ": ", outcome.err);
  REQUIRE(outcome.exit == 0);
  return outcome;
}

std::string errorOf(const Outcome& outcome, int exit, std::source_location where) {
  INFO("in line ", where.line(), ": ", outcome.err);
  CHECK(outcome.exit == exit);
  return outcome.err;
}

std::vector<std::string> wordsOf(const std::string& line) {
  std::vector<std::string> words;
  char quote = '\0';
  bool within = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i], next = i + 1 < line.size() ? line[i + 1] : '\0';
    const bool space = quote == '\0' && (c == ' ' || c == '\n');
    if (!space && !within) words.emplace_back();
    within = !space;
    if (space) continue;
    if (c == quote)
      quote = '\0';
    else if (quote == '\0' && (c == '\'' || c == '"'))
      quote = c;
    else if (c == '\\' && (quote == '\0' || (quote == '"' && (next == '"' || next == '\\'))))
      words.back() += line.at(++i);
    else
      words.back() += c;
  }
  if (quote != '\0') throw std::runtime_error("a quote is not closed: " + line);
  return words;
}

Program::Program(const std::filesystem::path& executable, const Launch& launch)
    : out_(launch.directory.string() + ".out"), err_(launch.directory.string() + ".err") {
  std::vector<std::string> arguments{executable.string()};
  arguments.insert(arguments.end(), launch.arguments.begin(), launch.arguments.end());
  auto environment = environmentWith(launch.environment);
  const auto argumentPointers = pointersTo(arguments), environmentPointers = pointersTo(environment);
  const rlim_t most = launch.fileSizeLimit.value_or(0);
  const rlimit fileSize{most, most};
  const auto& err = launch.terminal.empty() ? err_ : launch.terminal;
  int execed[2];  // closed by a successful exec
  if (::pipe2(execed, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  process_ = ::fork();
  if (process_ == 0)
    become(executable.c_str(), argumentPointers.data(), environmentPointers.data(), launch.directory.c_str(),
           out_.c_str(), err.c_str(), launch.fileSizeLimit ? &fileSize : nullptr);
  ::close(execed[1]);
  char none = 0;
  while (::read(execed[0], &none, 1) < 0 && errno == EINTR) continue;
  ::close(execed[0]);
  if (process_ < 0) throw std::runtime_error("cannot fork");
}

Program::~Program() {
  if (!ended()) {
    signal(SIGKILL);
    wait();
  }
  std::error_code ignored;
  std::filesystem::remove(out_, ignored);
  std::filesystem::remove(err_, ignored);
}

bool Program::ended() {
  int status = 0;
  if (!status_ && ::waitpid(process_, &status, WNOHANG) == process_) status_ = status;
  return status_.has_value();
}

bool Program::await(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + 2min;
  while (!holds()) {
    if (ended()) return holds();
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

bool Program::awaitText(const std::string& text) {
  return await([&] {
    return readFile(out_).find(text) != std::string::npos || readFile(err_).find(text) != std::string::npos;
  });
}

bool Program::awaitHandler(int number) {
  const std::uint64_t handled = std::uint64_t{1} << (number - 1);
  return await([&] {
    std::ifstream status(fmt::format("/proc/{}/status", process_));
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("SigCgt:")) return (std::stoull(line.substr(7), nullptr, 16) & handled) != 0;
    return false;
  });
}

bool Program::endsWithin(std::chrono::duration<double> time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (!ended() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
  return ended();
}

void Program::signal(int number) const {
  if (!status_) ::kill(process_, number);
}

bool Program::stop() {
  if (ended()) return false;
  signal(SIGSTOP);
  int status = 0;
  ::waitpid(process_, &status, WUNTRACED);
  if (WIFSTOPPED(status)) return true;
  status_ = status;
  return false;
}

void Program::signalTogether(std::initializer_list<int> numbers) {
  if (!stop()) return;
  for (const int number : numbers) ::syscall(SYS_tgkill, process_, process_, number);
  signal(SIGCONT);
}

Outcome Program::wait() {
  int status = 0;
  if (!status_ && ::waitpid(process_, &status, 0) == process_) status_ = status;
  const int result = status_.value_or(0);
  return {.exit = WIFEXITED(result) ? WEXITSTATUS(result) : -WTERMSIG(result),
          .out = readFile(out_),
          .err = readFile(err_)};
}

bool isHere(const std::filesystem::path& executable) {
  return std::filesystem::exists(executable);
}

}  // namespace muster::test
