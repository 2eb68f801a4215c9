#pragma once

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/support/standard.h"

namespace muster::test {

/// A connection to a port of 127.0.0.1 that sends given bytes.
class RawClient {
 public:
  /// @param receiveBuffer  bytes; 0: the system's.
  explicit RawClient(int port, int receiveBuffer = 0) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    REQUIRE(socket_ >= 0);
    const timeval patience{20, 0};  // a test that would hang fails
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (receiveBuffer > 0) ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, sizeof receiveBuffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  ~RawClient() { ::close(socket_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void send(std::string_view bytes) const {
    REQUIRE(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
  }
  /// Receives until the server closes.
  std::string receiveAll() const {
    std::string all;
    while (receiveSome(all)) {
    }
    return all;
  }
  /// Receives until the text contains `end` or the server closes.
  std::string receiveUntil(std::string_view end) const {
    std::string all;
    for (std::size_t from = 0; all.find(end, from) == std::string::npos;) {
      from = all.size() < end.size() ? 0 : all.size() - end.size();
      if (!receiveSome(all)) break;
    }
    return all;
  }

 private:
  bool receiveSome(std::string& all) const {
    char bytes[65536];
    const auto size = ::recv(socket_, bytes, sizeof bytes, 0);
    if (size > 0) all.append(bytes, static_cast<std::size_t>(size));
    return size > 0;
  }

  int socket_;
};

}  // namespace muster::test
