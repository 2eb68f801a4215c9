#include "muster/core/listeners/watch/page/curves_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/io/atomic_file.h"
#include "muster/core/listeners/watch/page/page_json.h"

namespace muster {
namespace {

void prepare(const std::filesystem::path& path) {
  require(path.filename().string().ends_with(kCurvesSuffix) &&
              path.filename().string().size() > kCurvesSuffix.size(),
          "curves: the name of a run's file ends in {}, by which muster page finds it; got {}", kCurvesSuffix,
          path.string());
  std::error_code problem;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), problem);
  if (problem) throw FileError(path.parent_path(), fmt::format("cannot be made: {}", problem.message()));
}

}  // namespace

std::string curvesHead(std::string_view group) {
  std::string head = "{\"format\":\"muster-curves/1\",\"group\":";
  page_json::append(head, group);
  return head + "}\n";
}

CurvesFile::CurvesFile(std::filesystem::path path, std::string_view group)
    : path_(std::move(path)), head_(curvesHead(group)) {
  prepare(path_);
  writeFileAtomically(path_, head_);
  out_.open(path_, std::ios::app | std::ios::binary);
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
    if (before >= 0 && seen_.generation != before) {
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
