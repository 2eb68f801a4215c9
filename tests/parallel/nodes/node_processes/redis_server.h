#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <random>

#include "tests/parallel/nodes/node_processes/process.h"
#include "tests/support/temporary_directory.h"

namespace muster::test {

inline sockaddr_in loopback(int port) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  place.sin_port = htons(static_cast<std::uint16_t>(port));
  return place;
}

/// A socket bound to a free port of 127.0.0.1, outside the range of ephemeral ports.
class FreePort {
 public:
  FreePort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    std::random_device device;
    for (int i = 0; i < 1000; ++i) {
      number_ = std::uniform_int_distribution(10000, 32767)(device);
      const auto place = loopback(number_);
      if (::bind(socket_, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0) return;
    }
    ::close(socket_);
    throw Error("there is no free port");
  }
  ~FreePort() { ::close(socket_); }
  FreePort(const FreePort&) = delete;
  FreePort& operator=(const FreePort&) = delete;
  int socket() const { return socket_; }
  int number() const { return number_; }

 private:
  int socket_, number_ = 0;
};

/// A Redis server on this machine without files on disk.
class RedisServer {
 public:
  /// @param executable  path of redis-server, under any name. @param more  further options.
  explicit RedisServer(const std::string& executable, std::vector<std::string> more = {})
      : program_(folder_ / "redis-server"), more_(std::move(more)), port_(FreePort().number()) {
    std::filesystem::create_symlink(executable, program_);  // the name makes it run as a server
    start();
  }
  std::string address() const { return "redis://127.0.0.1:" + std::to_string(port_) + "/test"; }
  void send(int signal) const { process_->send(signal); }
  void kill() { process_.reset(); }
  /// Waits until it answers.
  void start() {
    std::vector<std::string> words{program_.string(), "--bind", "127.0.0.1", "--save", ""};
    const std::string folder = folder_.path().string(), log = folder + "/log", port = std::to_string(port_);
    words.insert(words.end(), {"--port", port, "--dir", folder, "--logfile", log});
    words.insert(words.end(), more_.begin(), more_.end());
    process_.emplace(words);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!answers()) {
      if (std::chrono::steady_clock::now() > end) throw Error("redis-server does not start");
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

 private:
  bool answers() const {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto place = loopback(port_);
    const timeval limit{.tv_sec = 1, .tv_usec = 0};
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    std::string got(16, '\0');
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0 &&
        ::send(socket, "PING\r\n", 6, MSG_NOSIGNAL) == 6)
      ::recv(socket, got.data(), got.size(), 0);
    ::close(socket);
    return got.starts_with("+PONG") || got.starts_with("-NOAUTH");
  }

  TemporaryDirectory folder_;
  std::filesystem::path program_;
  std::vector<std::string> more_;
  int port_;
  std::optional<Process> process_;
};

}  // namespace muster::test
