#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "muster/core/listeners/watch/page/page_source.h"

namespace muster {

/// Files and directories that are looked at in the search for runs: a link may lead to a whole disk.
inline constexpr std::size_t kMostEntries = 100'000;

/// The files of curves below a directory, in no order; their paths begin with it. Follows links, but not to
/// the directory itself or one above it; each file is found once. Leaves out directories that cannot be read.
/// @param mostEntries  files and directories that it looks at. If there are more, it warns that runs may be
///                     missing.
std::vector<std::filesystem::path> curvesBelow(const std::filesystem::path& directory,
                                               std::size_t mostEntries = kMostEntries);

/// The runs below a directory, each a file of curves (`CurvesFile`), which may grow while it is shown, and
/// new ones may come. A run's name is the file's path without its end. Unreadable files are skipped with
/// one warning.
class PageDirectory final : public PageSource {
 public:
  static constexpr std::size_t kMostRuns = 1000;

  /// @param findEvery  the shortest time between two searches for new files. It is longer if a search takes
  ///        long: ten times as long as the search. 0: each update searches.
  /// @throws FileError if it is no directory.
  explicit PageDirectory(std::filesystem::path directory,
                         std::chrono::milliseconds findEvery = std::chrono::seconds(2));

  void update() override;
  std::unique_ptr<PageReader> reader() override;

  std::size_t runs() const { return runs_.size(); }
  /// All of it, for `stillPage`.
  std::vector<std::string> news() const;

 private:
  friend class PageDirectoryReader;
  struct Run {
    std::string group;
    std::uint64_t file = 0;          // its inode: another one begins anew
    std::uintmax_t read = 0;         // bytes
    std::int64_t generation = 0;     // grows when it begins anew
    std::vector<std::string> lines;  // of news, as they are sent
  };

  void find();
  void follow(const std::string& name, Run& run);
  void addLine(const std::string& name, Run& run, std::string_view line);

  std::filesystem::path directory_;
  std::chrono::milliseconds findEvery_;
  std::map<std::string, Run> runs_;  // by name
  std::set<std::string> bad_;        // names of files that cannot be read
  bool warnedOfMore_ = false;
  std::chrono::steady_clock::time_point nextFind_{};
};

}  // namespace muster
