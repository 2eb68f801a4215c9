#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

namespace muster {

/// Options of `download`.
struct DownloadOptions {
  int attempts = 4;                        ///< total; at least 1
  std::chrono::milliseconds backOff{500};  ///< before the second attempt; doubles for each further one
  std::chrono::milliseconds connectTimeout{10000};  ///< an attempt fails without a connection after this
  std::chrono::seconds stallTimeout{20};            ///< or below 1000 bytes/s for this long
  std::size_t maxBytes = std::size_t{1} << 30;      ///< a larger file is refused
  /// PEM file of the authorities that sign servers' certificates, for example of a company's proxy; empty:
  /// the system's.
  std::filesystem::path authorities{};
};

/// Returns what is wrong with the bytes of a file; empty if they are right.
using FileCheck = std::function<std::string(std::span<const std::uint8_t>)>;

/// Downloads a file by HTTP or HTTPS; follows redirections (from HTTPS to HTTPS alone) and uses the usual
/// proxy variables. A server's certificate must be signed by a known authority and name the server.
///
/// The bytes are kept in memory and checked, then written in one step: `target` is complete or unchanged,
/// whatever happens. If several processes or threads download into one directory, one does so at a time; the
/// others wait and find the file. A file at `target` that fails `check` is replaced.
///
/// @param check  decides whether the received bytes are right; wrong bytes are a failed attempt.
/// @throws DownloadError naming the address and the cause, after all attempts, or at once if a retry cannot
///         help (HTTP 4xx except 408 and 429); FileError if the file cannot be written.
void download(const std::string& address, const std::filesystem::path& target, const FileCheck& check,
              const DownloadOptions& options = {});

}  // namespace muster
