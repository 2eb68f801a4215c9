#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "muster/core/listeners/watch/page/page_access.h"
#include "muster/core/listeners/watch/page/page_server.h"
#include "muster/core/listeners/watch/page/page_source.h"

namespace muster::detail {

/// A connection: one request, then one answer or a stream of events. Server's thread only.
class PageConnection : public std::enable_shared_from_this<PageConnection> {
 public:
  /// @param access, limits, source  must outlive it.
  PageConnection(boost::asio::ip::tcp::socket socket, const PageAccess& access, const PageLimits& limits,
                 PageSource& source);

  void start();
  /// Sends news that the client lacks, unless the previous write is unfinished.
  void tick();
  void close();
  bool closed() const { return closed_; }
  /// Whether it waits for a request, or for the client to close: it can give way to a new connection.
  bool idle() const { return !events_ && !writing_; }
  /// Whether a write is unfinished.
  bool writing() const { return writing_ && !closed_; }

 private:
  void read(boost::system::error_code error);
  void answer(PageVerdict verdict, std::string_view target);
  void drain();
  void beginEvents();
  void waitForEnd();
  void send(std::string text);

  boost::beast::tcp_stream stream_;
  const PageAccess& access_;
  const PageLimits& limits_;
  PageSource& source_;
  std::unique_ptr<PageReader> reader_;
  boost::beast::flat_buffer buffer_{16384};
  std::array<char, 4096> forgotten_{};
  boost::beast::http::request_parser<boost::beast::http::string_body> parser_;
  boost::beast::http::response<boost::beast::http::string_body> answer_;
  bool events_ = false, writing_ = false, closed_ = false;
  std::string sending_;
  std::chrono::steady_clock::time_point lastSent_;
};

}  // namespace muster::detail
