#include "muster/core/listeners/watch/page/page_answer.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace muster {
namespace {

const PageAccess kAccess{.port = 8123, .token = "0123abcd"};

/// The field's value; "-" without one.
std::string field(const PageAnswer& answer, std::string_view name) {
  const auto found = std::ranges::find_if(answer.fields, [&](const auto& one) { return one.first == name; });
  return found == answer.fields.end() ? "-" : found->second;
}

TEST_CASE("what the server answers for each verdict") {
  struct Row {
    PageVerdict verdict;
    const char* path;
    int status;
    const char *type, *allow, *location, *cookie;
  };
  const auto* const plain = "text/plain; charset=utf-8";
  for (const Row& row :
       {Row{PageVerdict::Serve, "/", 200, "text/html; charset=utf-8", "-", "-", "-"},
        Row{PageVerdict::Serve, "/page.js", 200, "text/javascript; charset=utf-8", "-", "-", "-"},
        Row{PageVerdict::Serve, "/none", 404, plain, "-", "-", "-"},
        Row{PageVerdict::Serve, "", 404, plain, "-", "-", "-"},
        Row{PageVerdict::SetCookie, "/", 303, plain, "-", "/",
            "muster-8123=0123abcd; HttpOnly; SameSite=Strict; Path=/"},
        Row{PageVerdict::BadRequest, "/", 400, plain, "-", "-", "-"},
        Row{PageVerdict::Forbidden, "/", 403, plain, "-", "-", "-"},
        Row{PageVerdict::NotAllowed, "/", 405, plain, "GET", "-", "-"},
        Row{PageVerdict::Misdirected, "/", 421, plain, "-", "-", "-"}}) {
    CAPTURE(row.status);
    const PageAnswer answer = answerTo(row.verdict, row.path, kAccess);
    CHECK(answer.status == row.status);
    CHECK(field(answer, "Content-Type") == row.type);
    CHECK(field(answer, "Allow") == row.allow);
    CHECK(field(answer, "Location") == row.location);
    CHECK(field(answer, "Set-Cookie") == row.cookie);
    CHECK(answer.text.empty() == (row.status == 303));
  }
  CHECK(answerTo(PageVerdict::Misdirected, "/", kAccess).text.find("127.0.0.1:8123 or localhost:8123") !=
        std::string::npos);
}

TEST_CASE("no answer has the token but the cookie, and all have the security fields") {
  for (const auto verdict : {PageVerdict::Serve, PageVerdict::SetCookie, PageVerdict::BadRequest,
                             PageVerdict::Forbidden, PageVerdict::NotAllowed, PageVerdict::Misdirected}) {
    const PageAnswer answer = answerTo(verdict, "/", kAccess);
    CHECK(answer.text.find(kAccess.token) == std::string::npos);
    for (const auto& [name, value] : answer.fields)
      CHECK((name == "Set-Cookie" || value.find(kAccess.token) == std::string::npos));
  }
  for (const PageAnswer& answer : {answerTo(PageVerdict::Serve, "/", kAccess),
                                   answerTo(PageVerdict::Forbidden, "/", kAccess), answerWithEvents()}) {
    CHECK(field(answer, "Content-Security-Policy").starts_with("default-src 'none'; "));
    CHECK(field(answer, "X-Content-Type-Options") == "nosniff");
    CHECK(field(answer, "Referrer-Policy") == "no-referrer");
    CHECK(field(answer, "Cross-Origin-Resource-Policy") == "same-origin");
    CHECK(field(answer, "Cache-Control") == "no-store");
  }
  CHECK(field(answerWithEvents(), "Content-Type") == "text/event-stream");
}

}  // namespace
}  // namespace muster
