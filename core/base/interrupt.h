#pragma once

#include <array>
#include <stop_token>
#include <string_view>
#include <thread>

namespace muster {
/// The exit status of an interrupted program.
inline constexpr int kInterruptedExit = 130;  // 128 + SIGINT, as shells count

/// From now on Ctrl-C (SIGINT), SIGTERM, SIGHUP, SIGUSR1 (which mpirun passes on) and SIGXCPU (the soft limit
/// of processor time) end the program at once with 130, as long as no Interrupt lives. SIGINT, SIGHUP and
/// SIGXCPU stay ignored if the parent process has set so, as a shell does for programs in the background.
/// @param line  with its newline. A signal that ends the program writes it to standard error, once, unless
///         standard error blocks for 2 s (a full pipe). "": nothing. A later call replaces the line. Each
///         line is copied, and the copy is never freed, because a handler may be reading it.
/// Thread-safe.
///
/// A signal handler of your own needs SA_ONSTACK: oneDNN's matrix products use the stack pointer for data, so
/// a handler on a thread's own stack overwrites memory (oneDNN's issue 4845). Threads that use a Context, and
/// the one that calls this, have another stack for it.
void exitOnInterrupt(std::string_view line = "");

/// While it lives, the first of these signals requests a stop and logs a notice; the second ends the program
/// at once with 130 and a line that says so. SIGXCPU, which the kernel repeats every second, is no second
/// one, nor is one within half a second: `timeout` sends its signal twice. One at a time.
class Interrupt {
 public:
  explicit Interrupt(std::string_view notice =
                         "Interrupted: the current step is finished, then the trained model is saved. "
                         "Interrupt again to quit at once.");
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// For `fit`, which ends after the step in progress.
  std::stop_token token() const { return stop_.get_token(); }
  bool requested() const { return stop_.stop_requested(); }

 private:
  std::stop_source stop_;
  std::array<int, 2> pipe_{};  // the signal handler writes, the thread reads
  std::jthread thread_;
};

}  // namespace muster
