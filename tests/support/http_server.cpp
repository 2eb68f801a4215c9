#include "tests/support/http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace muster::test {
namespace {

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

/// A socket bound to a free port of 127.0.0.1, and the port.
std::pair<int, int> boundSocket() {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto address = loopback(0);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (descriptor < 0 || ::bind(descriptor, generic, size) != 0 ||
      ::getsockname(descriptor, generic, &size) != 0)
    throw std::runtime_error("test server: no port to listen on");
  return {descriptor, ntohs(address.sin_port)};
}

/// The head of a request; empty if the client closed the connection.
std::string receiveHead(int connection) {
  std::string head;
  std::array<char, 4096> part;
  while (head.find("\r\n\r\n") == std::string::npos) {
    const auto size = ::recv(connection, part.data(), part.size(), 0);
    if (size <= 0) return "";
    head.append(part.data(), static_cast<std::size_t>(size));
  }
  return head;
}

void sendAll(int connection, std::string_view text) {
  while (!text.empty()) {
    const auto sent = ::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // the client closed the connection, perhaps on purpose
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string formatUrl(int port) {
  return fmt::format("http://127.0.0.1:{}/", port);
}

}  // namespace

HttpServer::HttpServer(std::function<HttpReply(const std::string&, int)> answer)
    : answer_(std::move(answer)) {
  std::tie(listener_, port_) = boundSocket();
  if (::listen(listener_, 16) != 0) throw std::runtime_error("test server: cannot listen");
  thread_ = std::jthread([this] { serve(); });
}

HttpServer::~HttpServer() {
  ::shutdown(listener_, SHUT_RDWR);  // wakes the thread that waits in accept
  thread_.join();
  ::close(listener_);
}

std::string HttpServer::address() const {
  return formatUrl(port_);
}

void HttpServer::waitUntilIdle() const {
  // The server handles connections in order, so this one ends after all earlier ones.
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = loopback(port_);
  const bool connected = descriptor >= 0 && ::connect(descriptor, reinterpret_cast<const sockaddr*>(&address),
                                                      sizeof address) == 0;
  if (connected) {
    ::shutdown(descriptor, SHUT_WR);
    receiveHead(descriptor);  // until the server closes
  }
  if (descriptor >= 0) ::close(descriptor);
  if (!connected) throw std::runtime_error("test server: cannot be reached");
}

void HttpServer::serve() {
  for (;;) {
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) return;
    handle(connection);
    ::close(connection);
  }
}

void HttpServer::handle(int connection) {
  const auto request = receiveHead(connection);
  const auto begin = request.find(' ');
  if (begin == std::string::npos) return;
  const auto path = request.substr(begin + 1, request.find(' ', begin + 1) - begin - 1);
  const auto reply = answer_(path, requests_++);
  auto head = fmt::format("HTTP/1.1 {} Answer\r\nConnection: close\r\n{}", reply.status, reply.head);
  if (reply.promised) head += fmt::format("Content-Length: {}\r\n", *reply.promised);
  sendAll(connection, head + "\r\n");
  sendAll(connection, reply.body);
  if (reply.stall) receiveHead(connection);
}

std::string deadAddress() {
  const auto [descriptor, port] = boundSocket();
  ::close(descriptor);
  return formatUrl(port);
}

}  // namespace muster::test
