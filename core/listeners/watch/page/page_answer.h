#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/listeners/watch/page/page_access.h"

namespace muster {

/// An answer of HTTP, without the fields for its length and its connection. A value.
struct PageAnswer {
  int status = 200;
  std::string text = {};
  std::vector<std::pair<std::string, std::string>> fields = {};
};

/// The answer to any request except "/events". All answers have the security fields: the page loads files
/// from this server only, and other sites cannot embed it.
/// @param path  the request's target; read only for PageVerdict::Serve.
PageAnswer answerTo(PageVerdict verdict, std::string_view path, const PageAccess& access);
/// The beginning of the answer to "/events", without text.
PageAnswer answerWithEvents();

}  // namespace muster
