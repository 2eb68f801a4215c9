#include "muster/core/listeners/watch/page/page_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <optional>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "muster/core/base/error.h"
#include "muster/core/base/host_name.h"
#include "muster/core/base/log.h"
#include "muster/core/base/start_thread.h"
#include "muster/core/listeners/watch/page/detail/page_connection.h"

namespace muster {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using detail::PageConnection;

}  // namespace

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
    error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    require(error != asio::error::address_in_use,
            "page: port {} of this machine is in use; give another one, or 0 for any that is free", port);
    require(!error, "page: port {} of this machine cannot be served: {}", port, error.message());
  }

  void accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
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
    error_code ignored;
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
    timer_.async_wait([this](error_code error) {
      if (!error) tick();
    });
  }

  /// Stops once all clients have received the last news or the time limit has passed.
  void end() {
    for (const auto& connection : connections_) connection->tick();
    const bool waits = std::ranges::any_of(connections_, [](const auto& one) { return one->writing(); });
    if (!waits || std::chrono::steady_clock::now() >= *endsBy_) return context_.stop();
    timer_.expires_after(std::chrono::milliseconds(5));
    timer_.async_wait([this](error_code error) {
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
  const auto host = hostName();
  return {fmt::format("page: {}", address()),
          fmt::format("      from another machine: ssh -L {0}:127.0.0.1:{0} {1}, then the same address there",
                      access().port, host.empty() ? "HOST" : host)};
}

}  // namespace muster
