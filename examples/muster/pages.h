#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace program {

/// One run's curves on a page.
struct PageCurves {
  std::string run;
  std::string group;   ///< the page draws the mean of a group
  std::string failed;  ///< why the run ended early; empty: it did not
  std::map<std::string, std::vector<std::pair<std::int64_t, double>>> series;  ///< by name: iteration, value
};

/// A page of the files of curves below a directory. @throws muster::FileError; InvalidArgument if there
/// are no files or this program was built without the page.
std::string stillPageOf(const std::filesystem::path& directory);

/// The files of curves below a directory; none if this program was built without the page.
std::vector<std::filesystem::path> curvesBelow(const std::filesystem::path& directory);

/// A text near the beginning of each page; "" if this program was built without the page.
std::string_view pageMark();
/// A text near the beginning of each file of curves, of any version; "" if this program was built without the
/// page.
std::string_view curvesMark();

/// Writes a file of curves for `servePage`; its name ends in ".curves.jsonl". Does nothing if this program
/// was built without the page. @throws muster::FileError.
void writeCurves(const std::filesystem::path& path, const PageCurves& curves);

/// Serves a page of the runs below a directory, also of unfinished ones, to browsers on this machine until
/// `stop`. Prints the page's address. @throws as stillPageOf, and for a port in use.
void servePage(const std::filesystem::path& directory, int port, const std::stop_token& stop);

}  // namespace program
