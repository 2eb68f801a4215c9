#include "muster/core/listeners/watch/page/page_answer.h"

#include "tests/support/test.h"

namespace muster::test {
namespace {

const PageAccess kAccess{.port = 8123, .token = "0123abcd"};

/// The field's value; "-" without one.
std::string field(const PageAnswer& answer, std::string_view name) {
  const auto found = std::ranges::find_if(answer.fields, [&](const auto& one) { return one.first == name; });
  return found == answer.fields.end() ? "-" : found->second;
}

TEST_CASE("what the server answers for each verdict") {
  /// Status, Content-Type, Allow, Location and Set-Cookie.
  const auto answer = [](PageVerdict verdict, const char* path) {
    const PageAnswer all = answerTo(verdict, path, kAccess);
    CHECK(all.text.empty() == (all.status == 303));
    return textOf(all.status, field(all, "Content-Type"), field(all, "Allow"), field(all, "Location"),
                  field(all, "Set-Cookie"));
  };
  const std::string plain = " text/plain; charset=utf-8 ";
  CHECK(answer(PageVerdict::Serve, "/") == "200 text/html; charset=utf-8 - - -");
  CHECK(answer(PageVerdict::Serve, "/page.js") == "200 text/javascript; charset=utf-8 - - -");
  for (const char* path : {"/none", "", "/../etc/passwd", "/page.js/", "//", "/%2e%2e"})
    CHECK(answer(PageVerdict::Serve, path) == "404" + plain + "- - -");
  CHECK(answer(PageVerdict::SetCookie, "/") ==
        "303" + plain + "- / muster-8123=0123abcd; HttpOnly; SameSite=Strict; Path=/");
  CHECK(answer(PageVerdict::BadRequest, "/") == "400" + plain + "- - -");
  CHECK(answer(PageVerdict::Forbidden, "/") == "403" + plain + "- - -");
  CHECK(answer(PageVerdict::NotAllowed, "/") == "405" + plain + "GET - -");
  CHECK(answer(PageVerdict::Misdirected, "/") == "421" + plain + "- - -");
  CHECK_CONTAINS(answerTo(PageVerdict::Misdirected, "/", kAccess).text, "127.0.0.1:8123 or localhost:8123");
}

TEST_CASE("no answer has the token but the cookie, and all have the security fields") {
  for (const auto verdict : {PageVerdict::Serve, PageVerdict::SetCookie, PageVerdict::BadRequest,
                             PageVerdict::Forbidden, PageVerdict::NotAllowed, PageVerdict::Misdirected}) {
    const PageAnswer answer = answerTo(verdict, "/", kAccess);
    CHECK_LACKS(answer.text, kAccess.token);
    for (const auto& [name, value] : answer.fields)
      if (name != "Set-Cookie") CHECK_LACKS(value, kAccess.token);
  }
  for (const PageAnswer& answer : {answerTo(PageVerdict::Serve, "/", kAccess),
                                   answerTo(PageVerdict::Forbidden, "/", kAccess), answerWithEvents()}) {
    CHECK(
        field(answer, "Content-Security-Policy") ==
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    CHECK(textOf(field(answer, "X-Content-Type-Options"), field(answer, "Referrer-Policy"),
                 field(answer, "Cross-Origin-Resource-Policy"),
                 field(answer, "Cache-Control")) == "nosniff no-referrer same-origin no-store");
  }
  CHECK(field(answerWithEvents(), "Content-Type") == "text/event-stream");
}

}  // namespace
}  // namespace muster::test
