#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/listeners/watch/page/page_access.h"
#include "muster/core/listeners/watch/page/page_source.h"

namespace muster {

/// Limits of the server, for tests to change.
struct PageLimits {
  std::chrono::milliseconds tick{500};      ///< between two calls of PageSource::update
  std::chrono::milliseconds reading{5000};  ///< for a whole request to arrive
  std::chrono::milliseconds writing{5000};  ///< for a client to receive data; then it is dropped
  std::chrono::milliseconds silence{
      15000};                             ///< after which a comment is sent, to find clients that have gone
  std::chrono::milliseconds ending{300};  ///< at the end, for clients to take the last news
  int connections = 32;  ///< at a time; for a new one the oldest that has no request gives way
  int sendBuffer = 0;    ///< bytes of a socket's buffer; 0: the system's
};

/// Serves the page on 127.0.0.1, with a thread of its own, as long as it lives. Clients cost the training
/// nothing but this thread. Data for a client are computed after it has received the data before, so no queue
/// grows for a slow one. The destructor sends the last news, and waits for slow clients for 0.3 s at most.
class PageServer {
 public:
  /// @param port  0: any that is free.
  /// @throws InvalidArgument for a port that is in use or not allowed.
  PageServer(int port, std::shared_ptr<PageSource> source, const PageLimits& limits = {});
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  const PageAccess& access() const;
  /// With the token, for a browser.
  std::string address() const;
  /// The lines to print: the address, and how it is reached from another machine.
  std::vector<std::string> lines() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
