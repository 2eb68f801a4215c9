#include "muster/core/listeners/watch/page/page_directory.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/io/detail/directory_names.h"
#include "muster/core/io/input_file.h"
#include "muster/core/io/json_fields.h"
#include "muster/core/io/output_path.h"
#include "muster/core/listeners/watch/page/curves_file.h"
#include "muster/core/listeners/watch/page/page_json.h"

namespace muster {
namespace {

constexpr std::size_t kMostAtOnce = 1 << 20;  // bytes of an answer; the next answer continues

/// What a path leads to, through links: device and inode. Empty if there is nothing.
using FileId = std::optional<std::pair<dev_t, ino_t>>;

FileId idOf(const std::filesystem::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return {};
  return std::pair(found.st_dev, found.st_ino);
}

/// Walks a directory and those that links lead to, each once. Of several paths to one file it takes one that
/// is no link, if there is one. Ends after so many entries: a link may lead to a whole disk.
class CurvesSearch {
 public:
  CurvesSearch(std::filesystem::path directory, std::size_t mostEntries)
      : directory_(std::move(directory)), left_(mostEntries) {
    enter({});
    while (!links_.empty() && complete_) {
      std::ranges::sort(links_, std::greater{});
      const auto link = std::move(links_.back());
      links_.pop_back();
      // A directory above this one would add runs that are not below it.
      if (!isInside(directory_, directory_ / link)) enter(link);
    }
    std::ranges::sort(linkedFiles_);
    for (auto& file : linkedFiles_) add(std::move(file));
  }

  /// Relative to the directory.
  std::vector<std::filesystem::path> found() && { return std::move(found_); }
  bool complete() const { return complete_; }

 private:
  void enter(const std::filesystem::path& start) {
    std::vector<std::filesystem::path> unread{start};
    while (!unread.empty()) {
      const auto below = std::move(unread.back());
      unread.pop_back();
      if (!isNew(below)) continue;
      std::error_code ignored;
      for (const auto& name : detail::namesIn(directory_ / below, ignored)) {
        if (name == "." || name == "..") continue;
        if (left_ == 0) {
          complete_ = false;
          return;
        }
        --left_;
        auto path = below / name;
        const auto file = directory_ / path;
        const bool link = std::filesystem::is_symlink(file, ignored);
        if (std::filesystem::is_directory(file, ignored))
          (link ? links_ : unread).push_back(std::move(path));
        else if (!name.ends_with(kCurvesSuffix) || !std::filesystem::is_regular_file(file, ignored))
          continue;
        else if (link)
          linkedFiles_.push_back(std::move(path));
        else
          add(std::move(path));
      }
    }
  }
  void add(std::filesystem::path file) {
    if (isNew(file)) found_.push_back(std::move(file));
  }
  bool isNew(const std::filesystem::path& path) {
    const auto id = idOf(directory_ / path);
    return id && seen_.insert(*id).second;
  }

  std::filesystem::path directory_;
  std::size_t left_;  // entries that may still be looked at
  bool complete_ = true;
  std::set<std::pair<dev_t, ino_t>> seen_;
  std::vector<std::filesystem::path> links_, linkedFiles_, found_;
};

void warnOfMore(const std::filesystem::path& directory) {
  logWarning(
      "page: {} holds too many files and directories to look at all, so runs may be missing; name a "
      "directory that holds only runs",
      directory.string());
}

}  // namespace

std::vector<std::filesystem::path> curvesBelow(const std::filesystem::path& directory,
                                               std::size_t mostEntries) {
  CurvesSearch search(directory, mostEntries);
  if (!search.complete()) warnOfMore(directory);
  auto paths = std::move(search).found();
  for (auto& path : paths) path = directory / path;
  return paths;
}

/// Tracks how much of each run one client has received.
class PageDirectoryReader final : public PageReader {
 public:
  explicit PageDirectoryReader(const PageDirectory& directory) : directory_(directory) {}

  std::string news() override {
    std::string json;
    for (const auto& [name, run] : directory_.runs_) {
      auto& [generation, sent] = seen_[name];
      if (generation != run.generation) sent = 0;
      generation = run.generation;
      for (; sent < run.lines.size() && json.size() < kMostAtOnce; ++sent)
        (json += json.empty() ? "[" : ",") += run.lines[sent];
    }
    return json.empty() ? json : json + "]";
  }

 private:
  const PageDirectory& directory_;
  std::map<std::string, std::pair<std::int64_t, std::size_t>> seen_;  // [run] generation, lines sent
};

PageDirectory::PageDirectory(std::filesystem::path directory, std::chrono::milliseconds findEvery)
    : directory_(std::move(directory)), findEvery_(findEvery) {
  if (fileTypeOf(directory_) != std::filesystem::file_type::directory)
    throw FileError(directory_, "is no directory");
  update();
}

void PageDirectory::find() {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  if (begin < nextFind_) return;
  CurvesSearch search(directory_, kMostEntries);
  if (!search.complete() && !std::exchange(warnedOfMore_, true)) warnOfMore(directory_);
  if (findEvery_ > findEvery_.zero())
    nextFind_ = begin + std::max<Clock::duration>(findEvery_, 10 * (Clock::now() - begin));
  for (const auto& path : std::move(search).found()) {
    auto name = path.generic_string();
    name.resize(name.size() - kCurvesSuffix.size());
    if (runs_.contains(name) || bad_.contains(name)) continue;
    if (runs_.size() == kMostRuns) {
      if (bad_.insert("").second) logWarning("page: only the first {} runs are shown", kMostRuns);
      return;
    }
    runs_[name];
  }
}

void PageDirectory::addLine(const std::string& name, Run& run, std::string_view line) {
  JsonReader json(line);
  if (run.lines.empty() && run.group.empty()) {
    std::string format;
    json.field("format", format);
    require(format == kCurvesFormat, "it is not a file of curves, or has another version");
    json.field("group", run.group);
    if (run.group.empty()) run.group = name;
    return;
  }
  std::string sent = "{\"run\":";
  page_json::append(sent, name);
  sent += ",\"group\":";
  page_json::append(sent, run.group);
  sent += ",\"news\":";
  page_json::appendJson(sent, line);
  run.lines.push_back(sent + "}");
}

void PageDirectory::follow(const std::string& name, Run& run) {
  const auto path = directory_ / (name + std::string(kCurvesSuffix));
  struct stat now {};
  if (::stat(path.c_str(), &now) != 0) return;  // the file is gone: keep the lines read before
  const auto size = static_cast<std::uintmax_t>(now.st_size);
  if (run.file != now.st_ino || size < run.read)
    run = {.group = {}, .file = now.st_ino, .generation = run.generation + 1, .lines = {}};
  if (size == run.read) return;
  require(size <= kMostCurvesBytes, "it has {} bytes, and at most {} are read", size, kMostCurvesBytes);
  std::ifstream in(path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(run.read));
  std::string text(size - run.read, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  std::string_view left = text;
  for (auto end = left.find('\n'); end != left.npos; end = left.find('\n')) {
    addLine(name, run, left.substr(0, end));
    left.remove_prefix(end + 1);
    run.read += end + 1;  // an incomplete last line is read again
  }
}

void PageDirectory::update() {
  find();
  for (auto run = runs_.begin(); run != runs_.end();) try {
      follow(run->first, run->second);
      ++run;
    } catch (const InvalidArgument& error) {
      logWarning("page: {}{}: {}; it is left out", (directory_ / run->first).string(), kCurvesSuffix,
                 error.what());
      bad_.insert(run->first);
      run = runs_.erase(run);
    }
}

std::unique_ptr<PageReader> PageDirectory::reader() {
  return std::make_unique<PageDirectoryReader>(*this);
}

std::vector<std::string> PageDirectory::news() const {
  std::vector<std::string> all;
  for (const auto& [name, run] : runs_) all.insert(all.end(), run.lines.begin(), run.lines.end());
  return all;
}

}  // namespace muster
