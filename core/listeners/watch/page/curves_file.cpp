#include "muster/core/listeners/watch/page/curves_file.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <system_error>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/io/atomic_file.h"
#include "muster/core/io/json_value.h"
#include "muster/core/io/output_path.h"
#include "muster/core/listeners/watch/page/page_json.h"

namespace muster {
namespace {

namespace json = boost::json;

constexpr std::int64_t kMostInGroup = std::int64_t{1} << 40;

void prepare(const std::filesystem::path& path) {
  require(path.filename().string().ends_with(kCurvesSuffix) &&
              path.filename().string().size() > kCurvesSuffix.size(),
          "curves: the name of a run's file must end in {}, by which muster page finds it; got {}",
          kCurvesSuffix, path.string());
  std::error_code problem;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), problem);
  if (problem) throw FileError(path.parent_path(), fmt::format("cannot be made: {}", problem.message()));
}

/// A curve while a file is read.
struct CurveRead {
  std::string name;
  std::vector<PageCurve::Point> points;
  std::size_t groupSize = 1;
};

/// Collects the curves of a file's lines.
class CurvesReader {
 public:
  static void head(const json::object& line) {
    const auto* const format = line.if_contains("format");
    require(format != nullptr && format->is_string() && format->get_string() == kCurvesFormat,
            "it is not a file of curves, or has another version");
  }

  void line(const json::object& line) {
    const auto* const all = line.if_contains("all");
    if (all != nullptr && all->is_bool() && all->get_bool()) {
      curves_.clear();
      indices_.clear();
    }
    if (const auto* const network = line.if_contains("network")) saved_.network = printJsonLine(*network);
    if (const auto* const series = line.if_contains("series"))
      for (const auto& one : elements(*series)) add(one);
  }

  SavedCurves finish() && {
    for (auto& curve : curves_)
      saved_.curves.emplace_back(std::move(curve.name), PageCurve(std::move(curve.points), curve.groupSize));
    return std::move(saved_);
  }

 private:
  static std::string text(const json::value& value) {
    require(value.is_string(), "expected a string, found {}", describeJson(value));
    return std::string(value.get_string());
  }
  static const json::array& elements(const json::value& value) {
    require(value.is_array(), "expected an array, found {}", describeJson(value));
    return value.get_array();
  }

  void add(const json::value& series) {
    require(series.is_object(), "expected a curve, found {}", describeJson(series));
    const auto& fields = series.get_object();
    const auto *const name = fields.if_contains("name"), *const points = fields.if_contains("points");
    require(name != nullptr && points != nullptr, "a curve has no name or no points");
    CurveRead& curve = named(text(*name));
    if (const auto* const size = fields.if_contains("groupSize")) {
      require(size->is_int64() && size->get_int64() >= 1 && size->get_int64() <= kMostInGroup,
              "the curve {} cannot have this groupSize, {}", curve.name, describeJson(*size));
      curve.groupSize = static_cast<std::size_t>(size->get_int64());
    }
    for (const auto& point : elements(*points)) {
      const auto& pair = elements(point);
      require(pair.size() == 2 && pair[0].is_int64() && pair[0].get_int64() >= 0 &&
                  (pair[1].is_number() || pair[1].is_null()),
              "the curve {} has a point that is not a pair of an iteration and a value", curve.name);
      curve.points.push_back(
          {pair[0].get_int64(), pair[1].is_null() ? std::nan("") : pair[1].to_number<double>()});
    }
  }

  CurveRead& named(std::string name) {
    const auto [known, isNew] = indices_.emplace(std::move(name), curves_.size());
    if (isNew) curves_.push_back({.name = known->first, .points = {}});
    return curves_[known->second];
  }

  SavedCurves saved_;
  std::vector<CurveRead> curves_;
  std::map<std::string, std::size_t> indices_;  // [name] of curves_
};

}  // namespace

SavedCurves readCurves(const std::filesystem::path& path) {
  std::error_code problem;
  const auto size = std::filesystem::file_size(path, problem);
  if (problem) throw FileError(path, fmt::format("cannot be read: {}", problem.message()));
  require(size <= kMostCurvesBytes, "{}: it has {} bytes, and at most {} are read", path.string(), size,
          kMostCurvesBytes);
  std::ifstream in(path, std::ios::binary);
  CurvesReader reader;
  std::string line;
  std::int64_t number = 0;
  while (std::getline(in, line) && !in.eof()) try {
      ++number;
      const auto value = parseJson(line);
      require(value.is_object(), "expected an object, found {}", describeJson(value));
      if (number == 1)
        CurvesReader::head(value.get_object());
      else
        reader.line(value.get_object());
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("{}, line {}: {}", path.string(), number, error.what()));
    }
  if (in.bad()) throw FileError(path, "cannot be read");
  require(number > 0, "{}: it is no file of curves", path.string());
  return std::move(reader).finish();
}

std::string curvesHead(std::string_view group) {
  std::string head = fmt::format("{{\"format\":\"{}\",\"group\":", kCurvesFormat);
  page_json::append(head, group);
  return head + "}\n";
}

CurvesFile::CurvesFile(std::filesystem::path path, std::string_view group)
    : path_(std::move(path)), head_(curvesHead(group)) {
  prepare(path_);
  std::error_code missing;
  const auto size = std::filesystem::file_size(path_, missing);
  if (!missing && size > 0)
    checkOutputFile(path_);
  else
    writeFileAtomically(path_, head_);
  out_.open(path_, std::ios::app | std::ios::binary);
}

SavedCurves CurvesFile::read() const {
  std::error_code problem;
  const auto size = std::filesystem::file_size(path_, problem);
  if (size == 0 || problem == std::errc::no_such_file_or_directory) return {};
  return readCurves(path_);
}

std::filesystem::path CurvesFile::setAside() {
  auto old = path_;
  old += ".old";
  std::error_code problem;
  for (int i = 2; std::filesystem::exists(std::filesystem::symlink_status(old, problem)); ++i) {
    old = path_;
    old += fmt::format(".old-{}", i);
  }
  std::filesystem::rename(path_, old, problem);
  if (!problem) return old;
  failed_ = true;
  logWarning("curves: {} cannot be renamed to {}: {}; the training continues without them", path_.string(),
             old.string(), problem.message());
  return {};
}

void CurvesFile::update(const PageStore& store, bool last) {
  if (failed_) return;
  const auto now = std::chrono::steady_clock::now();
  const bool histograms = last || now - histogramsAt_ > std::chrono::minutes(1);
  if (histograms) histogramsAt_ = now;
  const auto before = seen_.generation;
  auto news = store.news(seen_, histograms);
  if (news.empty()) return;
  news += '\n';
  try {
    errno = 0;
    if (seen_.generation != before) {
      out_.close();
      writeFileAtomically(path_, head_ + news);
      out_.open(path_, std::ios::app | std::ios::binary);
    } else {
      out_ << news << std::flush;
    }
    if (const int why = errno; !out_)
      throw FileError(path_, why == 0 ? "cannot be written"
                                      : "cannot be written: " + std::generic_category().message(why));
  } catch (const Error& error) {
    failed_ = true;
    logWarning("curves: {}; the training continues without them", error.what());
  }
}

void writeCurves(const std::filesystem::path& path, std::string_view group, const PageStore& store) {
  prepare(path);
  writeFileAtomically(path, curvesHead(group) + store.all() + "\n");
}

}  // namespace muster
