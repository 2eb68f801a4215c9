#include "muster/core/listeners/watch/page/page_answer.h"

#include <fmt/format.h>

#include "muster/core/listeners/watch/page/page_assets.h"

namespace muster {
namespace {

PageAnswer secure(int status, std::string_view type, std::string text) {
  return {.status = status,
          .text = std::move(text),
          .fields = {{"Content-Type", std::string(type)},
                     {"Content-Security-Policy",
                      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src "
                      "'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
                     {"Referrer-Policy", "no-referrer"},
                     {"X-Content-Type-Options", "nosniff"},
                     {"Cross-Origin-Resource-Policy", "same-origin"},
                     {"Cache-Control", "no-store"}}};
}

PageAnswer plain(int status, std::string text) {
  return secure(status, "text/plain; charset=utf-8", std::move(text));
}

PageAnswer asset(std::string_view path) {
  for (const auto& asset : pageAssets())
    if (asset.path == path) return secure(200, asset.type, std::string(asset.text));
  return plain(404, "there is no such page\n");
}

}  // namespace

PageAnswer answerTo(PageVerdict verdict, std::string_view path, const PageAccess& access) {
  switch (verdict) {
    case PageVerdict::Misdirected:
      return plain(421,
                   fmt::format("open this page as 127.0.0.1:{0} or localhost:{0}; a tunnel must have the "
                               "same port at both ends\n",
                               access.port));
    case PageVerdict::BadRequest:
      return plain(400, "this is no request for a page\n");
    case PageVerdict::Forbidden:
      return plain(403, "open the address that the program has printed, with its token\n");
    case PageVerdict::NotAllowed: {
      auto answer = plain(405, "only GET\n");
      answer.fields.emplace_back("Allow", "GET");
      return answer;
    }
    case PageVerdict::SetCookie: {
      auto answer = plain(303, "");
      answer.fields.emplace_back("Location", "/");
      answer.fields.emplace_back("Set-Cookie", fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/",
                                                           cookieName(access), access.token));
      return answer;
    }
    case PageVerdict::Serve:
      break;
  }
  return asset(path);
}

PageAnswer answerWithEvents() {
  return secure(200, "text/event-stream", "");
}

}  // namespace muster
