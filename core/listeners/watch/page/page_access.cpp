#include "muster/core/listeners/watch/page/page_access.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>

#include "muster/core/base/error.h"

namespace muster {
namespace {

constexpr int kHttpPort = 80;  // browsers leave it out of Host

/// Compares in constant time, so that timing reveals nothing about the secret.
bool same(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < one.size(); ++i)
    difference = static_cast<unsigned char>(difference | (one[i] ^ other[i]));
  return difference == 0;
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool isThisServer(std::string_view host, int port) {
  for (const std::string_view name : {"127.0.0.1", "localhost"})
    if (host == fmt::format("{}:{}", name, port) || (port == kHttpPort && host == name)) return true;
  return false;
}

bool hasCookie(std::string_view field, std::string_view name, std::string_view token) {
  while (!field.empty()) {
    const auto end = field.find(';');
    const auto pair = trimmed(field.substr(0, end));
    const auto equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == name &&
        same(pair.substr(equals + 1), token))
      return true;
    if (end == std::string_view::npos) break;
    field.remove_prefix(end + 1);
  }
  return false;
}

}  // namespace

std::string cookieName(const PageAccess& access) {
  return fmt::format("muster-{}", access.port);
}

std::string newToken() {
  std::array<unsigned char, 32> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw DeviceFailure("page: the system has no random numbers for the token");
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

PageVerdict decide(const PageRequest& request, const PageAccess& access) {
  if (request.hosts.size() != 1)
    return request.hosts.empty() ? PageVerdict::Misdirected : PageVerdict::BadRequest;
  if (!isThisServer(request.hosts.front(), access.port)) return PageVerdict::Misdirected;
  if (request.method != "GET") return PageVerdict::NotAllowed;
  if (!request.target.starts_with('/')) return PageVerdict::BadRequest;
  constexpr std::string_view kWithToken = "/?token=";
  if (request.target.starts_with(kWithToken))
    return same(request.target.substr(kWithToken.size()), access.token) ? PageVerdict::SetCookie
                                                                        : PageVerdict::Forbidden;
  const auto name = cookieName(access);
  for (const auto field : request.cookies)
    if (hasCookie(field, name, access.token)) return PageVerdict::Serve;
  return PageVerdict::Forbidden;
}

}  // namespace muster
