#include "muster/core/listeners/watch/page/page_server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <list>
#include <optional>
#include <sstream>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/base/start_thread.h"
#include "muster/core/listeners/watch/page/page_assets.h"

namespace muster {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

/// Adds security headers: the page loads files from this server only, and other sites cannot embed it.
void addSecurity(http::response<http::string_body>& answer) {
  answer.set(
      "Content-Security-Policy",
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  answer.set("Referrer-Policy", "no-referrer");
  answer.set("X-Content-Type-Options", "nosniff");
  answer.set("Cross-Origin-Resource-Policy", "same-origin");
  answer.set("Cache-Control", "no-store");
}

http::response<http::string_body> plain(http::status status, std::string text) {
  http::response<http::string_body> answer{status, 11, std::move(text)};
  answer.set(http::field::content_type, "text/plain; charset=utf-8");
  return answer;
}

std::string hostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "HOST";
}

/// The answer to any request except "/events".
http::response<http::string_body> answerTo(PageVerdict verdict, std::string_view path,
                                           const PageAccess& access) {
  switch (verdict) {
    case PageVerdict::Misdirected:
      return plain(http::status::misdirected_request,
                   fmt::format("open this page as 127.0.0.1:{0} or localhost:{0}; a tunnel must have the "
                               "same port at both ends\n",
                               access.port));
    case PageVerdict::BadRequest:
      return plain(http::status::bad_request, "this is no request for a page\n");
    case PageVerdict::Forbidden:
      return plain(http::status::forbidden,
                   "open the address that the program has printed, with its token\n");
    case PageVerdict::NotAllowed: {
      auto answer = plain(http::status::method_not_allowed, "only GET\n");
      answer.set(http::field::allow, "GET");
      return answer;
    }
    case PageVerdict::SetCookie: {
      auto answer = plain(http::status::see_other, "");
      answer.set(http::field::location, "/");
      answer.set(http::field::set_cookie,
                 fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/", cookieName(access), access.token));
      return answer;
    }
    case PageVerdict::Serve:
      break;
  }
  for (const auto& asset : pageAssets())
    if (asset.path == path) {
      http::response<http::string_body> answer{http::status::ok, 11, std::string(asset.text)};
      answer.set(http::field::content_type, std::string(asset.type));
      return answer;
    }
  return plain(http::status::not_found, "there is no such page\n");
}

std::string_view view(beast::string_view text) {
  return {text.data(), text.size()};
}

std::vector<std::string_view> valuesOf(const http::fields& fields, http::field name) {
  std::vector<std::string_view> values;
  const auto [begin, end] = fields.equal_range(name);
  for (auto field = begin; field != end; ++field) values.push_back(view(field->value()));
  return values;
}

}  // namespace

/// A connection: one request, then one answer or a stream of events. Server's thread only.
class PageConnection : public std::enable_shared_from_this<PageConnection> {
 public:
  PageConnection(tcp::socket socket, const PageAccess& access, const PageLimits& limits, PageSource& source)
      : stream_(std::move(socket)), access_(access), limits_(limits), source_(source) {
    parser_.header_limit(8192);
  }

  void start() {
    stream_.expires_after(limits_.reading);
    http::async_read_header(
        stream_, buffer_, parser_,
        [self = shared_from_this()](beast::error_code error, std::size_t) { self->read(error); });
  }
  /// Sends news that the client lacks, unless the previous write is unfinished.
  void tick() {
    if (!events_ || writing_) return;
    const auto now = std::chrono::steady_clock::now();
    if (const auto news = reader_->news(); !news.empty())
      send("data: " + news + "\n\n");
    else if (now - lastSent_ > limits_.silence)
      send(":\n\n");
  }
  void close() {
    closed_ = true;
    beast::error_code ignored;
    stream_.socket().close(ignored);
  }
  bool closed() const { return closed_; }
  /// Whether it waits for a request, or for the client to close: it can give way to a new connection.
  bool idle() const { return !events_ && !writing_; }
  /// Whether a write is unfinished.
  bool writing() const { return writing_ && !closed_; }

 private:
  void read(beast::error_code error) {
    const bool malformed = error.category() == http::make_error_code(http::error::bad_method).category();
    if (error && (!malformed || error == http::error::end_of_stream || error == http::error::partial_message))
      return close();  // the client is too slow or has disconnected
    const auto& request = parser_.get();
    auto verdict = PageVerdict::BadRequest;
    if (!error)
      verdict = decide({.method = view(request.method_string()),
                        .target = view(request.target()),
                        .hosts = valuesOf(request, http::field::host),
                        .cookies = valuesOf(request, http::field::cookie)},
                       access_);
    if (verdict == PageVerdict::Serve && request.target() == "/events") return beginEvents();
    answer_ = answerTo(verdict, error ? std::string_view() : view(request.target()), access_);
    addSecurity(answer_);
    answer_.keep_alive(false);
    answer_.prepare_payload();
    writing_ = true;
    stream_.expires_after(limits_.writing);
    http::async_write(stream_, answer_, [self = shared_from_this()](beast::error_code, std::size_t) {
      self->writing_ = false;
      beast::error_code ignored;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
      self->stream_.expires_after(std::chrono::seconds(1));
      self->drain();
    });
  }

  /// Reads and drops the client's remaining bytes for up to a second: closing a socket with unread bytes
  /// would discard the answer.
  void drain() {
    stream_.async_read_some(asio::buffer(forgotten_),
                            [self = shared_from_this()](beast::error_code error, std::size_t) {
                              error ? self->close() : self->drain();
                            });
  }

  void beginEvents() {
    http::response<http::string_body> head{http::status::ok, 11};
    head.set(http::field::content_type, "text/event-stream");
    addSecurity(head);
    head.keep_alive(false);
    std::ostringstream text;
    text << head.base();
    events_ = true;
    reader_ = source_.reader();
    send(text.str());
    waitForEnd();
  }

  /// A client of events sends nothing more: any input closes the connection.
  void waitForEnd() {
    stream_.socket().async_wait(tcp::socket::wait_read,
                                [self = shared_from_this()](beast::error_code) { self->close(); });
  }

  void send(std::string text) {
    sending_ = std::move(text);
    writing_ = true;
    lastSent_ = std::chrono::steady_clock::now();
    stream_.expires_after(limits_.writing);
    asio::async_write(stream_, asio::buffer(sending_),
                      [self = shared_from_this()](beast::error_code error, std::size_t) {
                        self->writing_ = false;
                        self->stream_.expires_never();
                        if (error) self->close();  // the client is too slow or has disconnected
                      });
  }

  beast::tcp_stream stream_;
  const PageAccess& access_;
  const PageLimits& limits_;
  PageSource& source_;
  std::unique_ptr<PageReader> reader_;
  beast::flat_buffer buffer_{16384};
  std::array<char, 4096> forgotten_{};
  http::request_parser<http::string_body> parser_;
  http::response<http::string_body> answer_;
  bool events_ = false, writing_ = false, closed_ = false;
  std::string sending_;
  std::chrono::steady_clock::time_point lastSent_;
};

class PageServer::Impl {
 public:
  Impl(int port, std::shared_ptr<PageSource> source, const PageLimits& limits)
      : source_(std::move(source)), limits_(limits), acceptor_(context_), timer_(context_) {
    open(port);
    access_ = {.port = acceptor_.local_endpoint().port(), .token = newToken()};
    accept();
    tick();
    thread_ = startThread("the page's server", [this] { run(); });
  }
  ~Impl() {
    try {
      asio::post(context_, [this] {
        endsBy_ = std::chrono::steady_clock::now() + limits_.ending;
        tick();
      });
    } catch (...) {
      context_.stop();  // out of memory for the post: clients miss the last news
    }
    thread_.join();
    for (const auto& connection : connections_) connection->close();
  }
  const PageAccess& access() const { return access_; }

 private:
  void open(int port) {
    require(port >= 0 && port <= 65535, "page: the port must be between 0 and 65535, got {}", port);
    const tcp::endpoint endpoint(asio::ip::address_v4::loopback(), static_cast<unsigned short>(port));
    beast::error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    require(error != asio::error::address_in_use,
            "page: port {} of this machine is in use; give another one, or 0 for any that is free", port);
    require(!error, "page: port {} of this machine cannot be served: {}", port, error.message());
  }

  void accept() {
    acceptor_.async_accept([this](beast::error_code error, tcp::socket socket) {
      if (!error) welcome(std::move(socket));
      // For example, no file descriptor is free. The next tick tries again.
      if (error)
        acceptLater_ = true;
      else
        accept();
    });
  }

  void welcome(tcp::socket socket) {
    std::erase_if(connections_, [](const auto& connection) { return connection->closed(); });
    if (!makeRoom()) return;  // closes the socket
    beast::error_code ignored;
    if (limits_.sendBuffer > 0)
      socket.set_option(asio::socket_base::send_buffer_size(limits_.sendBuffer), ignored);
    connections_.push_back(std::make_shared<PageConnection>(std::move(socket), access_, limits_, *source_));
    connections_.back()->start();
  }

  /// Closes the oldest idle connection if there are too many. A client that sends its request at once is
  /// served, however many send none. All clients have the address 127.0.0.1, so none is counted by its own.
  /// @return whether there is room for a new connection.
  bool makeRoom() {
    if (static_cast<int>(connections_.size()) < limits_.connections) return true;
    const auto oldest = std::ranges::find_if(connections_, [](const auto& one) { return one->idle(); });
    if (oldest == connections_.end()) return false;
    (*oldest)->close();
    connections_.erase(oldest);
    return true;
  }

  void tick() {
    source_->update();
    std::erase_if(connections_, [](const auto& connection) { return connection->closed(); });
    for (const auto& connection : connections_) connection->tick();
    if (endsBy_) return end();
    if (std::exchange(acceptLater_, false)) accept();
    timer_.expires_after(limits_.tick);
    timer_.async_wait([this](beast::error_code error) {
      if (!error) tick();
    });
  }

  /// Stops once all clients have received the last news or the time limit has passed.
  void end() {
    for (const auto& connection : connections_) connection->tick();
    const bool waits = std::ranges::any_of(connections_, [](const auto& one) { return one->writing(); });
    if (!waits || std::chrono::steady_clock::now() >= *endsBy_) return context_.stop();
    timer_.expires_after(std::chrono::milliseconds(5));
    timer_.async_wait([this](beast::error_code error) {
      if (!error) end();
    });
  }

  /// A failure here ends the page, never the training.
  void run() {
    try {
      context_.run();
    } catch (...) {
      logWarning("page: {}; the training continues without it", describe(std::current_exception()));
    }
  }

  std::shared_ptr<PageSource> source_;
  const PageLimits limits_;
  PageAccess access_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer timer_;
  bool acceptLater_ = false;
  std::optional<std::chrono::steady_clock::time_point> endsBy_;  // set when the server is ending
  std::list<std::shared_ptr<PageConnection>> connections_;
  std::jthread thread_;
};

PageServer::PageServer(int port, std::shared_ptr<PageSource> source, const PageLimits& limits)
    : impl_(std::make_unique<Impl>(port, std::move(source), limits)) {}

PageServer::~PageServer() = default;

const PageAccess& PageServer::access() const {
  return impl_->access();
}

std::string PageServer::address() const {
  return fmt::format("http://127.0.0.1:{}/?token={}", access().port, access().token);
}

std::vector<std::string> PageServer::lines() const {
  return {fmt::format("page: {}", address()),
          fmt::format("      from another machine: ssh -L {0}:127.0.0.1:{0} {1}, then the same address there",
                      access().port, hostName())};
}

}  // namespace muster
