#pragma once

#include "tests/support/standard.h"

namespace muster::test {

/// The server's answer to one request.
struct HttpReply {
  int status = 200;
  std::string body{};
  /// The length in the header; empty: none, so that the end of the connection ends the body.
  std::optional<std::size_t> promised{};
  /// After the body the connection stays open and silent until the client closes it.
  bool stall = false;
  /// More header lines, each with its line end.
  std::string head{};

  static HttpReply whole(std::string body) {
    const auto size = body.size();
    return {.body = std::move(body), .promised = size};
  }
};

/// A server on 127.0.0.1 that answers requests one at a time, each on its own connection.
class HttpServer {
 public:
  /// @param answer  gets the requested path and the number of earlier requests; called by the server's
  ///         thread.
  explicit HttpServer(std::function<HttpReply(const std::string& path, int number)> answer);
  /// Gives each request the same answer.
  explicit HttpServer(const HttpReply& always)
      : HttpServer([always](const std::string&, int) { return always; }) {}
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// "http://127.0.0.1:port/".
  std::string address() const;
  int requests() const { return requests_; }
  /// Waits until the server has closed all connections made so far.
  /// @throws std::runtime_error if the server cannot be reached.
  void waitUntilIdle() const;

 private:
  void serve();
  void handle(int connection);

  std::function<HttpReply(const std::string&, int)> answer_;
  std::atomic<int> requests_{0};
  int port_ = 0;
  int listener_;
  std::jthread thread_;
};

/// The address of a port without a server.
std::string deadAddress();

}  // namespace muster::test
