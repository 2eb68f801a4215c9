#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace example {

/// What a page shows of a run, beside others.
struct PageCurves {
  std::string run;
  std::string group;   ///< runs of one group are drawn as their mean
  std::string failed;  ///< why it ended early; empty: it did not
  std::map<std::string, std::vector<std::pair<std::int64_t, double>>> series;  ///< by name: iteration, value
};

/// What is said where this program was built without the page.
inline constexpr const char* kNoPage =
    "this program was built without the page, as dygraphs was not found; install libjs-dygraphs and build it "
    "again";

/// One HTML file that needs nothing else; "" if this program was built without the page.
/// @param document  JSON of what is beside the curves, as muster::stillPage has it; "": nothing.
std::string stillPage(const std::vector<PageCurves>& runs, const std::string& document);
/// The same of the files of curves below a directory. @throws muster::FileError; InvalidArgument if there are
/// none, or this program was built without the page.
std::string stillPageOf(const std::filesystem::path& directory);

/// Writes a file of curves for `servePage`; its name ends in ".curves.jsonl". Does nothing if this program
/// was built without the page. @throws muster::FileError.
void writeCurves(const std::filesystem::path& path, const PageCurves& curves);

/// Shows the runs below a directory to browsers of this machine, also those that are under way, until
/// `stop`. Prints its address. @throws as stillPageOf, and for a port that is in use.
void servePage(const std::filesystem::path& directory, int port, const std::stop_token& stop);

}  // namespace example
