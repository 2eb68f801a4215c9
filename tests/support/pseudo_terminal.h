#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "tests/support/standard.h"

namespace muster::test {

/// Leads standard error to another file during its lifetime.
class StandardError {
 public:
  explicit StandardError(int descriptor) : before_(::dup(STDERR_FILENO)) {
    ::dup2(descriptor, STDERR_FILENO);
  }
  ~StandardError() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
  }
  StandardError(const StandardError&) = delete;
  StandardError& operator=(const StandardError&) = delete;

 private:
  int before_;
};

/// A terminal whose output the test reads.
class PseudoTerminal {
 public:
  PseudoTerminal(int columns, int rows) : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    std::array<char, 128> name{};
    if (master_ < 0 || ::grantpt(master_) != 0 || ::unlockpt(master_) != 0 ||
        ::ptsname_r(master_, name.data(), name.size()) != 0)
      throw std::runtime_error("this system has no pseudo-terminals");
    name_ = name.data();
    slave_ = ::open(name_.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave_ < 0) throw std::runtime_error("cannot open " + name_);
    resize(columns, rows);
    reader_ = std::jthread([this](const std::stop_token& stop) { read(stop); });
  }
  ~PseudoTerminal() {
    reader_ = {};
    ::close(slave_);
    ::close(master_);
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  const std::string& name() const { return name_; }
  int descriptor() const { return slave_; }

  void resize(int columns, int rows) const {
    winsize size{};
    size.ws_col = static_cast<unsigned short>(columns);
    size.ws_row = static_cast<unsigned short>(rows);
    if (::ioctl(slave_, TIOCSWINSZ, &size) != 0) throw std::runtime_error("cannot resize " + name_);
  }

  /// Waits until `text` was written. Removes and returns the output up to its end; "" after two minutes.
  std::string takeUpTo(const std::string& text) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (std::chrono::steady_clock::now() < end) {
      {
        const std::scoped_lock lock(mutex_);
        if (const auto at = text_.find(text); at != std::string::npos) {
          auto taken = text_.substr(0, at + text.size());
          text_.erase(0, taken.size());
          return taken;
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return "";
  }

  /// Removes and returns the output so far. Writes a mark and waits for it, because the system delays output.
  std::string take() {
    const std::string mark = "\x05";
    if (::write(slave_, mark.data(), 1) != 1) throw std::runtime_error("cannot write to " + name_);
    auto taken = takeUpTo(mark);
    taken.pop_back();
    return taken;
  }

 private:
  void read(const std::stop_token& stop) {
    std::array<char, 4096> buffer{};
    while (!stop.stop_requested()) {
      pollfd ready{.fd = master_, .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, /*timeout, ms=*/10) <= 0) continue;
      const ssize_t got = ::read(master_, buffer.data(), buffer.size());
      if (got <= 0) continue;
      const std::scoped_lock lock(mutex_);
      text_.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }

  int master_, slave_ = -1;
  std::string name_;
  std::mutex mutex_;
  std::string text_;  // guarded by mutex_
  std::jthread reader_;
};

}  // namespace muster::test
