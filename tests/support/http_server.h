#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <thread>

namespace muster::test {

/// What the server does with one request.
struct HttpReply {
  int status = 200;
  std::string body{};
  /// The length that the head promises; nothing: none is promised, and the end of the connection ends the
  /// body.
  std::optional<std::size_t> promised{};
  /// After the body the connection is held open in silence until the client gives up.
  bool stall = false;
  /// More lines of the head, each with its line end.
  std::string head{};

  static HttpReply whole(std::string body) {
    const auto size = body.size();
    return {.body = std::move(body), .promised = size};
  }
};

/// A server on 127.0.0.1 that answers one request after the other as a function says, each on a connection of
/// its own.
class HttpServer {
 public:
  /// @param answer  gets the path that was asked for and how many requests came before it; is called by the
  /// server's thread.
  explicit HttpServer(std::function<HttpReply(const std::string& path, int number)> answer);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// "http://127.0.0.1:port/".
  std::string address() const;
  int requests() const { return requests_; }

 private:
  void serve();
  void handle(int connection);

  std::function<HttpReply(const std::string&, int)> answer_;
  std::atomic<int> requests_{0};
  int port_ = 0;
  int listener_;
  std::jthread thread_;
};

/// The address of a port on which nobody listens.
std::string deadAddress();

}  // namespace muster::test
