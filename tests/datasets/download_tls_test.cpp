#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <stdexcept>
#include <thread>

#include "muster/core/base/error.h"
#include "muster/datasets/download.h"
#include "tests/datasets/idx_bytes.h"
#include "tests/support/environment.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

namespace muster {
namespace {

void must(bool done) {
  if (!done) throw std::runtime_error("test server: it cannot be started");
}

/// A TLS server on 127.0.0.1 with a self-signed certificate, which answers each request with "content".
class TlsServer {
 public:
  TlsServer() : context_(::SSL_CTX_new(::TLS_server_method()), &::SSL_CTX_free) {
    must(context_ != nullptr);
    useOwnCertificate();
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    must(listener_ >= 0 && ::bind(listener_, generic, size) == 0 &&
         ::getsockname(listener_, generic, &size) == 0 && ::listen(listener_, 4) == 0);
    address_ = fmt::format("https://127.0.0.1:{}/", ntohs(address.sin_port));
    thread_ = std::jthread([this] { serve(); });
  }
  ~TlsServer() {
    ::shutdown(listener_, SHUT_RDWR);  // wakes the thread that waits in accept
    thread_.join();
    ::close(listener_);
  }
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  const std::string& address() const { return address_; }
  int connections() const { return connections_; }

 private:
  void useOwnCertificate() {
    const std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)> key(EVP_EC_gen("P-256"), &::EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&::X509_free)> own(::X509_new(), &::X509_free);
    must(key && own);
    constexpr long kHour = 3600;
    ::X509_gmtime_adj(X509_getm_notBefore(own.get()), -kHour);
    ::X509_gmtime_adj(X509_getm_notAfter(own.get()), kHour);
    must(::X509_set_pubkey(own.get(), key.get()) == 1 &&
         ::X509_sign(own.get(), key.get(), ::EVP_sha256()) > 0 &&
         ::SSL_CTX_use_certificate(context_.get(), own.get()) == 1 &&
         ::SSL_CTX_use_PrivateKey(context_.get(), key.get()) == 1);
  }

  void serve() {
    for (;;) {
      const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) return;
      ++connections_;
      const std::unique_ptr<SSL, decltype(&::SSL_free)> tls(::SSL_new(context_.get()), &::SSL_free);
      ::SSL_set_fd(tls.get(), connection);
      constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\ncontent";
      char request[4096];
      if (::SSL_accept(tls.get()) == 1 && ::SSL_read(tls.get(), request, sizeof request) > 0)
        ::SSL_write(tls.get(), kAnswer.data(), static_cast<int>(kAnswer.size()));
      ::close(connection);
    }
  }

  std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context_;
  std::string address_;
  std::atomic<int> connections_{0};
  int listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::jthread thread_;
};

TEST_CASE("a server whose certificate no authority has signed is refused") {
  std::signal(SIGPIPE, SIG_IGN);  // the client closes the connection while the server writes
  const test::Environment direct{"no_proxy", "127.0.0.1"};
  const test::TemporaryDirectory directory;
  TlsServer server;
  const auto failure = test::thrown<DownloadError>([&] {
    const auto check = [](std::span<const std::uint8_t>) { return std::string(); };
    download(server.address() + "file.gz", directory / "file.gz", check, {.attempts = 1});
  });
  CHECK_MESSAGE(test::contains(failure, "certificate"), failure);
  CHECK(server.connections() == 1);
  CHECK(directory.names() == std::set<std::string>{".lock"});
}

}  // namespace
}  // namespace muster
