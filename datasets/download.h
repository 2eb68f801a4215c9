#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

namespace muster {

struct DownloadOptions {
  int attempts = 4;                        ///< in all; at least 1
  std::chrono::milliseconds backOff{500};  ///< before the second attempt; doubled before each further
  std::chrono::milliseconds connectTimeout{10000};  ///< an attempt ends without a connection in this time
  std::chrono::seconds stallTimeout{20};            ///< or below 1000 bytes/s for this long
  std::size_t maxBytes = std::size_t{1} << 30;      ///< no more than this is taken
};

/// What is wrong with the bytes of a file, in words; empty where they are right.
using FileCheck = std::function<std::string(std::span<const std::uint8_t>)>;

/// Fetches a file by HTTP or HTTPS, following redirections and heeding the usual proxy variables.
///
/// The bytes are gathered in memory and checked before anything is written, then put into place in one step:
/// `target` is either whole or as it was, whatever happens. Of several processes or threads that want files
/// in one directory one fetches at a time; the others wait and find the file there. A file at `target` that
/// does not pass `check` is replaced.
///
/// @param check  decides whether what arrived is right; something wrong counts as a failed attempt.
/// @throws DownloadError naming the address and the cause, after all attempts, or at once where another
/// cannot help (HTTP 4xx but 408 and 429); FileError where the file cannot be written.
void download(const std::string& address, const std::filesystem::path& target, const FileCheck& check,
              const DownloadOptions& options = {});

}  // namespace muster
