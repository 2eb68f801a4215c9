#include "muster/datasets/download.h"

#include <curl/curl.h>
#include <strings.h>

#include <array>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/io/atomic_file.h"
#include "muster/datasets/directory_lock.h"
#include "muster/datasets/file_bytes.h"

namespace muster {
namespace {

struct Outcome {
  std::string problem;  // empty: success
  bool mayPass = true;  // a retry may help
};

struct Receiver {
  std::vector<std::uint8_t> bytes;
  std::size_t maxBytes;
  bool tooLong = false;
};

/// curl is C, so this must not throw. Returning fewer bytes than given ends the transfer.
std::size_t receive(char* data, std::size_t, std::size_t size, void* user) noexcept {
  auto& receiver = *static_cast<Receiver*>(user);
  receiver.tooLong = receiver.bytes.size() + size > receiver.maxBytes;
  if (receiver.tooLong) return 0;
  try {
    receiver.bytes.insert(receiver.bytes.end(), data, data + size);
    return size;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

using Transfer = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;

Transfer newTransfer() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  Transfer transfer(curl_easy_init(), &curl_easy_cleanup);
  if (!transfer) throw DownloadError("download: libcurl could not be started");
  return transfer;
}

bool isHttp(const std::string& address) {
  constexpr std::string_view kScheme = "http:";
  return ::strncasecmp(address.c_str(), kScheme.data(), kScheme.size()) == 0;
}

void configure(CURL* curl, const std::string& address, const DownloadOptions& options) {
  curl_easy_setopt(curl, CURLOPT_URL, address.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  // A download that begins encrypted must not be redirected to plain HTTP.
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, isHttp(address) ? "http,https" : "https");
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
  if (!options.authorities.empty()) {
    curl_easy_setopt(curl, CURLOPT_CAINFO, options.authorities.c_str());
    curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);
  }
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 10L);
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);  // required in multithreaded programs
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "muster");
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connectTimeout.count()));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1000L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(options.stallTimeout.count()));
}

Outcome judge(CURL* curl, CURLcode code, std::string_view details) {
  if (code == CURLE_OK) return {};
  if (code == CURLE_HTTP_RETURNED_ERROR) {
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    const bool callersFault = status >= 400 && status < 500 && status != 408 && status != 429;
    return {fmt::format("the server answered HTTP {}", status), !callersFault};
  }
  const bool hopeless = code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL;
  return {std::string(details.empty() ? curl_easy_strerror(code) : details), !hopeless};
}

Outcome fetch(const std::string& address, Receiver& receiver, const DownloadOptions& options) {
  const Transfer transfer = newTransfer();
  configure(transfer.get(), address, options);
  std::array<char, CURL_ERROR_SIZE> details{};
  curl_easy_setopt(transfer.get(), CURLOPT_ERRORBUFFER, details.data());
  curl_easy_setopt(transfer.get(), CURLOPT_WRITEFUNCTION, &receive);
  curl_easy_setopt(transfer.get(), CURLOPT_WRITEDATA, &receiver);
  const CURLcode code = curl_easy_perform(transfer.get());
  if (receiver.tooLong) return {fmt::format("it is over-long, more than {} bytes", options.maxBytes)};
  return judge(transfer.get(), code, details.data());
}

/// Downloads until the bytes are right, or throws after the last attempt.
std::vector<std::uint8_t> fetchRight(const std::string& address, const FileCheck& check,
                                     const DownloadOptions& options) {
  auto pause = options.backOff;
  for (int attempt = 1;; ++attempt) {
    Receiver receiver{{}, options.maxBytes};
    auto [problem, mayPass] = fetch(address, receiver, options);
    if (problem.empty()) problem = check(receiver.bytes);
    if (problem.empty()) return std::move(receiver.bytes);
    if (!mayPass || attempt == options.attempts)
      throw DownloadError(fmt::format("download: {} could not be fetched, tried {} time{}: {}", address,
                                      attempt, attempt == 1 ? "" : "s", problem));
    logWarning("fetching {} failed, trying again: {}", address, problem);
    std::this_thread::sleep_for(pause);
    pause *= 2;
  }
}

}  // namespace

void download(const std::string& address, const std::filesystem::path& target, const FileCheck& check,
              const DownloadOptions& options) {
  require(options.attempts >= 1, "download: at least 1 attempt is needed, got {}", options.attempts);
  const DirectoryLock lock(target.parent_path());
  // Another process may have downloaded it meanwhile.
  if (std::filesystem::exists(target) && check(readFile(target)).empty()) return;
  logInfo("fetching {}", address);
  const auto bytes = fetchRight(address, check, options);
  writeFileAtomically(target, std::as_bytes(std::span(bytes)));
}

}  // namespace muster
