#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "muster/core/listeners/watch/page/page_store.h"

namespace muster {

/// The end of such a file's name, by which a directory's are found.
inline constexpr std::string_view kCurvesSuffix = ".curves.jsonl";

/// The first line of a run's file: the format, "muster-curves/1", and the group. Each line after it is news
/// of the run as in `stillPage`.
std::string curvesHead(std::string_view group);

/// Keeps a file of a run's curves up to date, for a page of several runs: appends what is new, and writes it
/// again when points were thinned. A failure after the constructor is one warning and does not end the
/// training. One thread at a time.
class CurvesFile {
 public:
  /// Replaces what is there; makes the directories above it.
  /// @throws InvalidArgument unless the name ends in kCurvesSuffix; FileError.
  CurvesFile(std::filesystem::path path, std::string_view group);

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
