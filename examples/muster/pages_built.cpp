#include <fmt/format.h>

#include <condition_variable>
#include <memory>
#include <mutex>

#include "examples/muster/pages.h"
#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/listeners/watch/page/curves_file.h"
#include "muster/core/listeners/watch/page/page_directory.h"
#include "muster/core/listeners/watch/page/page_server.h"
#include "muster/core/listeners/watch/page/page_store.h"
#include "muster/core/listeners/watch/page/still_page.h"

namespace program {
namespace {

muster::PageStore storeOf(const PageCurves& curves) {
  muster::PageStore store({.name = curves.run, .group = curves.group, .failed = curves.failed});
  for (const auto& [name, points] : curves.series)
    for (const auto& [step, value] : points) store.point(name, step, value);
  return store;
}

}  // namespace

std::string stillPageOf(const std::filesystem::path& directory) {
  const muster::PageDirectory runs(directory);
  muster::require(runs.runs() > 0, "page: {} has no runs: files whose names end in {}", directory.string(),
                  muster::kCurvesSuffix);
  return muster::stillPage(runs.news());
}

std::vector<std::filesystem::path> curvesBelow(const std::filesystem::path& directory) {
  return muster::curvesBelow(directory);
}

std::string_view pageMark() {
  return muster::pageTitle();
}

std::string_view curvesMark() {
  return muster::kCurvesFormat.substr(0, muster::kCurvesFormat.find('/') + 1);
}

void writeCurves(const std::filesystem::path& path, const PageCurves& curves) {
  muster::writeCurves(path, curves.group, storeOf(curves));
}

void servePage(const std::filesystem::path& directory, int port, const std::stop_token& stop) {
  auto runs = std::make_shared<muster::PageDirectory>(directory);
  fmt::print("{} in {}; new ones are shown as they come. Ctrl-C ends the page.\n",
             muster::plural(runs->runs(), "run"), directory.string());
  const muster::PageServer server(port, std::move(runs));
  for (const auto& line : server.lines()) fmt::print("{}\n", line);
  std::fflush(stdout);
  std::mutex mutex;
  std::condition_variable_any ended;
  std::unique_lock lock(mutex);
  ended.wait(lock, stop, [] { return false; });
}

}  // namespace program
