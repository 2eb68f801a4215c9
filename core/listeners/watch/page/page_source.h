#pragma once

#include <memory>
#include <string>

namespace muster {

/// Keeps track of what one client of a page has received.
class PageReader {
 public:
  virtual ~PageReader() = default;
  /// The data that the client lacks, as JSON on one line: an object or an array of objects; "" if none.
  virtual std::string news() = 0;
};

/// The data that a page shows. Used on the server's thread alone.
class PageSource {
 public:
  virtual ~PageSource() = default;
  /// Fetches new data. The server calls it once a tick.
  virtual void update() = 0;
  /// For a client that has seen nothing. It lives no longer than the source.
  virtual std::unique_ptr<PageReader> reader() = 0;
};

}  // namespace muster
