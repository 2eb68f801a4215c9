#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>

#include "muster/datasets/download.h"
#include "tests/support/environment.h"
#include "tests/support/http_server.h"
#include "tests/support/test.h"

namespace muster {
namespace {

void must(bool done) {
  if (!done) throw std::runtime_error("test server: it cannot be started");
}

constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\ncontent";

/// A TLS server on 127.0.0.1 with a self-signed certificate, which gives each request the same answer.
class TlsServer {
 public:
  /// @param host  that the certificate names, as in "IP:127.0.0.1" or "DNS:example.org".
  explicit TlsServer(const std::string& host, std::string answer = std::string(kAnswer))
      : context_(::SSL_CTX_new(::TLS_server_method()), &::SSL_CTX_free), answer_(std::move(answer)) {
    must(context_ != nullptr);
    useOwnCertificate(host);
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
  /// Writes the certificate, which is its own authority, as PEM.
  void writeCertificate(const std::filesystem::path& path) const {
    const std::unique_ptr<FILE, decltype(&std::fclose)> file(std::fopen(path.c_str(), "w"), &std::fclose);
    must(file && ::PEM_write_X509(file.get(), ::SSL_CTX_get0_certificate(context_.get())) == 1);
  }

 private:
  void useOwnCertificate(const std::string& host) {
    const std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)> key(EVP_EC_gen("P-256"), &::EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&::X509_free)> own(::X509_new(), &::X509_free);
    must(key && own);
    constexpr long kHour = 3600;
    ::X509_gmtime_adj(X509_getm_notBefore(own.get()), -kHour);
    ::X509_gmtime_adj(X509_getm_notAfter(own.get()), kHour);
    auto* const name = ::X509_get_subject_name(own.get());
    const std::unique_ptr<X509_EXTENSION, decltype(&::X509_EXTENSION_free)> hosts(
        ::X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, host.c_str()), &::X509_EXTENSION_free);
    must(hosts && ::X509_set_version(own.get(), X509_VERSION_3) == 1 &&
         ::X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                      reinterpret_cast<const unsigned char*>("test server"), -1, -1,
                                      0) == 1 &&
         ::X509_set_issuer_name(own.get(), name) == 1 && ::X509_add_ext(own.get(), hosts.get(), -1) == 1);
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
      char request[4096];
      if (::SSL_accept(tls.get()) == 1 && ::SSL_read(tls.get(), request, sizeof request) > 0)
        ::SSL_write(tls.get(), answer_.data(), static_cast<int>(answer_.size()));
      ::close(connection);
    }
  }

  std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context_;
  const std::string answer_;
  std::string address_;
  std::atomic<int> connections_{0};
  int listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::jthread thread_;
};

/// What `download` says of a server whose certificate is trusted as an authority if `trusted`.
struct Client {
  std::string failureWith(const TlsServer& server, bool trusted) const {
    const auto authorities = directory / "authorities.pem";
    server.writeCertificate(authorities);
    const auto check = [](std::span<const std::uint8_t>) { return std::string(); };
    return test::thrown<DownloadError>([&] {
      download(server.address() + "file.gz", directory / "into/file.gz", check,
               {.attempts = 1, .authorities = trusted ? authorities : ""});
    });
  }
  /// Of the downloaded file; "none" if nothing but a lock is left.
  std::string content() const {
    const auto file = directory / "into/file.gz";
    if (std::filesystem::exists(file)) return test::readFile(file);
    std::string names = "none";
    for (const auto& entry : std::filesystem::directory_iterator(directory / "into"))
      if (entry.path().filename() != ".lock") names += " but " + entry.path().filename().string();
    return names;
  }

  /// Checks that the certificate is refused at the first connection, and that nothing is left.
  void refuses(const TlsServer& server, bool trusted) const {
    const auto failure = failureWith(server, trusted);
    CHECK_CONTAINS(failure, "certificate");
    CHECK(content() == "none");
    CHECK(server.connections() == 1);
  }

  Client() { std::signal(SIGPIPE, SIG_IGN); }  // it closes the connection while the server writes
  const test::Environment direct{"no_proxy", "127.0.0.1"};
  const test::TemporaryDirectory directory;
};

TEST_CASE("a server is trusted if a known authority has signed its certificate, which names the server") {
  const TlsServer server("IP:127.0.0.1"), another("DNS:example.org");
  const Client client;
  client.refuses(server, /*trusted=*/false);
  client.refuses(another, /*trusted=*/true);
  CHECK(client.failureWith(server, /*trusted=*/true) == "");
  CHECK(client.content() == "content");
  CHECK(server.connections() == 2);
}

TEST_CASE("an encrypted download is not redirected to plain HTTP") {
  const test::HttpServer plain(test::HttpReply::whole("content"));
  const TlsServer server(
      "IP:127.0.0.1", "HTTP/1.1 302 Found\r\nLocation: " + plain.address() + "\r\nContent-Length: 0\r\n\r\n");
  const Client client;
  CHECK_FALSE(client.failureWith(server, /*trusted=*/true).empty());
  CHECK(client.content() == "none");
  CHECK(server.connections() == 1);
  CHECK(plain.requests() == 0);
}

}  // namespace
}  // namespace muster
