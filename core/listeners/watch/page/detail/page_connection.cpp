#include "muster/core/listeners/watch/page/detail/page_connection.h"

#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/write.hpp>

#include "muster/core/listeners/watch/page/page_answer.h"

namespace muster::detail {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

std::string_view view(beast::string_view text) {
  return {text.data(), text.size()};
}

std::vector<std::string_view> valuesOf(const http::fields& fields, http::field name) {
  std::vector<std::string_view> values;
  const auto [begin, end] = fields.equal_range(name);
  for (auto field = begin; field != end; ++field) values.push_back(view(field->value()));
  return values;
}

http::response<http::string_body> responseOf(PageAnswer answer) {
  http::response<http::string_body> response{http::int_to_status(static_cast<unsigned>(answer.status)), 11,
                                             std::move(answer.text)};
  for (const auto& [name, value] : answer.fields) response.set(name, value);
  response.keep_alive(false);
  return response;
}

}  // namespace

PageConnection::PageConnection(asio::ip::tcp::socket socket, const PageAccess& access,
                               const PageLimits& limits, PageSource& source)
    : stream_(std::move(socket)), access_(access), limits_(limits), source_(source) {
  parser_.header_limit(8192);
}

void PageConnection::start() {
  stream_.expires_after(limits_.reading);
  http::async_read_header(
      stream_, buffer_, parser_,
      [self = shared_from_this()](beast::error_code error, std::size_t) { self->read(error); });
}

void PageConnection::tick() {
  if (!events_ || writing_) return;
  const auto now = std::chrono::steady_clock::now();
  if (const auto news = reader_->news(); !news.empty())
    send("data: " + news + "\n\n");
  else if (now - lastSent_ > limits_.silence)
    send(":\n\n");
}

void PageConnection::close() {
  closed_ = true;
  beast::error_code ignored;
  stream_.socket().close(ignored);
}

void PageConnection::read(beast::error_code error) {
  const bool malformed = error.category() == http::make_error_code(http::error::bad_method).category();
  if (error && (!malformed || error == http::error::end_of_stream || error == http::error::partial_message))
    return close();  // the client is too slow or has disconnected
  if (error) return answer(PageVerdict::BadRequest, {});
  const auto& request = parser_.get();
  const auto verdict = decide({.method = view(request.method_string()),
                               .target = view(request.target()),
                               .hosts = valuesOf(request, http::field::host),
                               .cookies = valuesOf(request, http::field::cookie)},
                              access_);
  if (verdict == PageVerdict::Serve && request.target() == "/events") return beginEvents();
  answer(verdict, view(request.target()));
}

void PageConnection::answer(PageVerdict verdict, std::string_view target) {
  answer_ = responseOf(answerTo(verdict, target, access_));
  answer_.prepare_payload();
  writing_ = true;
  stream_.expires_after(limits_.writing);
  http::async_write(stream_, answer_, [self = shared_from_this()](beast::error_code, std::size_t) {
    self->writing_ = false;
    beast::error_code ignored;
    self->stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    self->stream_.expires_after(std::chrono::seconds(1));
    self->drain();
  });
}

/// Reads and drops the client's remaining bytes for up to a second: closing a socket with unread bytes would
/// discard the answer.
void PageConnection::drain() {
  stream_.async_read_some(asio::buffer(forgotten_),
                          [self = shared_from_this()](beast::error_code error, std::size_t) {
                            error ? self->close() : self->drain();
                          });
}

void PageConnection::beginEvents() {
  std::ostringstream text;
  text << responseOf(answerWithEvents()).base();
  events_ = true;
  reader_ = source_.reader();
  send(text.str());
  waitForEnd();
}

/// A client of events sends nothing more: any input closes the connection.
void PageConnection::waitForEnd() {
  stream_.socket().async_wait(asio::ip::tcp::socket::wait_read,
                              [self = shared_from_this()](beast::error_code) { self->close(); });
}

void PageConnection::send(std::string text) {
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

}  // namespace muster::detail
