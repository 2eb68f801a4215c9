#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Access to a page: only browsers on this machine that show the token of the printed address.
struct PageAccess {
  int port = 0;
  std::string token;  ///< of random hexadecimal digits
};

/// The parts of a request that decide about it.
struct PageRequest {
  std::string_view method;
  std::string_view target;              ///< as in "/?token=..."
  std::vector<std::string_view> hosts;  ///< all Host fields
  std::vector<std::string_view> cookies;
};

/// What the server does with a request.
enum class PageVerdict {
  Serve,        ///< the path may be served
  SetCookie,    ///< the token was right: redirect to "/" with the cookie
  BadRequest,   ///< 400
  Forbidden,    ///< 403: no token, or a wrong one
  NotAllowed,   ///< 405: not GET
  Misdirected,  ///< 421: the host is not this server by number or as localhost
};

/// The checks, in this order: one Host field that is `127.0.0.1:PORT` or `localhost:PORT` exactly (on port 80
/// also without the port), because a name of an attacker's may lead to 127.0.0.1 (DNS rebinding); the method
/// GET, because nothing is changed from here; the token in the address of "/", or the cookie.
PageVerdict decide(const PageRequest& request, const PageAccess& access);

/// The cookie's name. It has the port in it, because browsers send a host's cookies to all its ports.
std::string cookieName(const PageAccess& access);

/// 32 random bytes of the system, in hexadecimal. @throws DeviceFailure if it has none.
std::string newToken();

}  // namespace muster
