#include "muster/core/listeners/watch/page/page_access.h"

#include "tests/support/test.h"

using namespace muster;

namespace {

const PageAccess kAccess{.port = 8123, .token = "0123abcd"};

PageVerdict of(std::string_view host, std::string_view target, std::vector<std::string_view> cookies = {},
               std::string_view method = "GET") {
  return decide({.method = method, .target = target, .hosts = {host}, .cookies = std::move(cookies)},
                kAccess);
}

}  // namespace

TEST_CASE("only the exact names localhost and 127.0.0.1 with the right port are accepted as the host") {
  const std::string_view cookie = "muster-8123=0123abcd";
  for (const auto* host : {"127.0.0.1:8123", "localhost:8123"})
    CHECK(of(host, "/", {cookie}) == PageVerdict::Serve);
  for (const auto* host :
       {"", "127.0.0.1", "localhost", "127.0.0.1:8124", "127.0.0.1:81230", "127.0.0.1.evil.example:8123",
        "evil.example:8123", "evil.example", "LOCALHOST:8123", "localhost.:8123", "[::1]:8123",
        "127.0.0.1:8123 ", "127.0.0.1:08123", "0.0.0.0:8123", "127.1:8123", "2130706433:8123",
        "user@127.0.0.1:8123", "127.0.0.1:8123, evil.example"})
    CHECK_MESSAGE(of(host, "/", {cookie}) == PageVerdict::Misdirected, host);
  CHECK(decide({.method = "GET", .target = "/", .hosts = {}, .cookies = {cookie}}, kAccess) ==
        PageVerdict::Misdirected);
  CHECK(decide({.method = "GET",
                .target = "/",
                .hosts = {"127.0.0.1:8123", "127.0.0.1:8123"},
                .cookies = {cookie}},
               kAccess) == PageVerdict::BadRequest);
}

TEST_CASE("on port 80 a host without a port is accepted, as browsers omit it") {
  const auto at = [](int port, std::string_view host) {
    return decide({.method = "GET", .target = "/?token=0123abcd", .hosts = {host}, .cookies = {}},
                  {.port = port, .token = "0123abcd"});
  };
  for (const auto* host : {"127.0.0.1", "localhost", "127.0.0.1:80", "localhost:80"})
    CHECK_MESSAGE(at(80, host) == PageVerdict::SetCookie, host);
  for (const auto* host : {"", "127.0.0.1:", "localhost:8080", "evil.example", "localhost.evil.example"})
    CHECK_MESSAGE(at(80, host) == PageVerdict::Misdirected, host);
  CHECK(at(8080, "localhost") == PageVerdict::Misdirected);
}

TEST_CASE("only GET requests are accepted") {
  for (const auto* method : {"POST", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", ""})
    CHECK_MESSAGE(of("localhost:8123", "/", {"muster-8123=0123abcd"}, method) == PageVerdict::NotAllowed,
                  method);
}

TEST_CASE("the whole token in the address gives the cookie, and nowhere else") {
  CHECK(of("localhost:8123", "/?token=0123abcd") == PageVerdict::SetCookie);
  for (const auto* target :
       {"/?token=", "/?token=0123abc", "/?token=0123abcde", "/?token=0123ABCD", "/?token=0123abcd&",
        "/?x=1&token=0123abcd", "/events?token=0123abcd", "/page.js?token=0123abcd"})
    CHECK_MESSAGE(of("localhost:8123", target) == PageVerdict::Forbidden, target);
  for (const auto* target : {"", "*", "http://localhost:8123/", "page.js"})
    CHECK_MESSAGE(of("localhost:8123", target) == PageVerdict::BadRequest, target);
}

TEST_CASE("the cookie of this port is found among others in any order") {
  CHECK(cookieName(kAccess) == "muster-8123");
  for (const auto* cookies :
       {"muster-8123=0123abcd", "a=b; muster-8123=0123abcd", "muster-8123=0123abcd; a=b",
        "muster-8123=old; muster-8123=0123abcd", "muster-9000=x;muster-8123=0123abcd"})
    CHECK_MESSAGE(of("localhost:8123", "/page.js", {cookies}) == PageVerdict::Serve, cookies);
  for (const auto* cookies :
       {"", "muster-8123", "muster-8123=", "muster-8123=0123abc", "muster-812=0123abcd",
        "xmuster-8123=0123abcd", "muster-8123=\"0123abcd\"", "muster-8124=0123abcd", ";;;", "=0123abcd"})
    CHECK_MESSAGE(of("localhost:8123", "/page.js", {cookies}) == PageVerdict::Forbidden, cookies);
  CHECK(of("localhost:8123", "/page.js") == PageVerdict::Forbidden);
  CHECK(of("localhost:8123", "/page.js", {"a=b", "muster-8123=0123abcd"}) == PageVerdict::Serve);
}

TEST_CASE("tokens have 256 bits, and no two are equal") {
  std::set<std::string> tokens;
  for (int i = 0; i < 100; ++i) tokens.insert(newToken());
  CHECK(tokens.size() == 100);
  CHECK(tokens.begin()->size() == 64);
  CHECK(tokens.begin()->find_first_not_of("0123456789abcdef") == std::string::npos);
}
