#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/listeners/watch/page/page_store.h"

namespace muster {

/// The end of such a file's name, by which a directory's are found.
inline constexpr std::string_view kCurvesSuffix = ".curves.jsonl";
/// The format in the first line of such a file: a name, and after the slash its version.
inline constexpr std::string_view kCurvesFormat = "muster-curves/1";
/// Larger files are not read.
inline constexpr std::uintmax_t kMostCurvesBytes = 256 << 20;

/// The first line of a run's file: the format, kCurvesFormat, and the group. Each line after it is news
/// of the run as in `stillPage`.
std::string curvesHead(std::string_view group);

/// Curves as a file has them, for a training that continues.
struct SavedCurves {
  std::string network;                                    ///< JSON on one line; empty: none
  std::vector<std::pair<std::string, PageCurve>> curves;  ///< with their names
  bool empty() const { return network.empty() && curves.empty(); }
};

/// Reads a whole file of curves; an incomplete last line is left out.
/// @throws FileError if it cannot be read; InvalidArgument naming the file, the line and the problem.
SavedCurves readCurves(const std::filesystem::path& path);

/// Keeps a file of a run's curves up to date, for a page of several runs: appends what is new, and writes it
/// again when points were thinned. A failure after the constructor is one warning and does not end the
/// training. One thread at a time.
class CurvesFile {
 public:
  /// Makes the directories above it, and the file if it is missing.
  /// @throws InvalidArgument unless the name ends in kCurvesSuffix; FileError if it cannot be written.
  CurvesFile(std::filesystem::path path, std::string_view group);

  const std::filesystem::path& path() const { return path_; }
  /// The file's curves; empty if it is missing or has only its first line. @throws as `readCurves`.
  SavedCurves read() const;
  /// Renames the file, so that it stays when `update` writes another one.
  /// @return its new name, which no other file has: with ".old" at the end, or ".old-2" and so on; "" after a
  ///         failure, which ends the updates.
  std::filesystem::path setAside();

  /// The first call replaces what the file held before.
  /// @param last  the run has ended: histograms are written, too, which otherwise is done every minute.
  void update(const PageStore& store, bool last);

 private:
  std::filesystem::path path_;
  std::string head_;
  std::ofstream out_;
  PageStore::Seen seen_;
  std::chrono::steady_clock::time_point histogramsAt_{};
  bool failed_ = false;
};

/// Writes a whole file. @throws as above.
void writeCurves(const std::filesystem::path& path, std::string_view group, const PageStore& store);

}  // namespace muster
