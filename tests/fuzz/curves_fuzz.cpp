// Files of curves, which `muster page` shows: what is sent to browsers is JSON that cannot end a script, and
// is the same for a file that grows. A resumed training reads them, too: it accepts what it wrote from them.
#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/listeners/watch/page/curves_file.h"
#include "muster/core/listeners/watch/page/page_directory.h"
#include "tests/fuzz/input_file.h"
#include "tests/fuzz/json_changes.h"

namespace muster::fuzz {
namespace {

/// A directory with one run, whose file is in memory.
class RunDirectory {
 public:
  RunDirectory() {
    std::filesystem::create_symlink(file_.path(), directory_ / ("run" + std::string(kCurvesSuffix)));
  }
  const std::filesystem::path& with(ByteSpan bytes) {
    file_.of(bytes);
    return directory_.path();
  }

 private:
  FuzzedFile file_;
  test::TemporaryDirectory directory_;
};

/// Files that cannot be read are warnings.
class CheckedWarnings {
 public:
  CheckedWarnings()
      : before_(setLogSink([](LogLevel, std::string_view message) { expectReadable(message); })) {}
  ~CheckedWarnings() { setLogSink(std::move(before_)); }
  CheckedWarnings(const CheckedWarnings&) = delete;
  CheckedWarnings& operator=(const CheckedWarnings&) = delete;

 private:
  LogSink before_;
};

/// Reads the file as a resumed training does, or refuses it with a readable reason.
void resume(const std::filesystem::path& file) {
  SavedCurves saved;
  try {
    saved = readCurves(file);
  } catch (const InvalidArgument& error) {
    return expectReadable(error.what());
  }
  PageStore store;
  for (auto& [name, curve] : saved.curves) {
    const double at = curve.at(3);
    curve.endAt(std::isfinite(at) ? 100 : 3);
    store.putBefore(name, std::move(curve));
    store.point(name, 101, 0.5);
  }
  const auto written = jsonIn(store.all());
  expect(written && written->is_object(), "what a resumed training writes is not JSON");
}

void run(ByteSpan bytes) {
  static RunDirectory directory;
  const CheckedWarnings warnings;
  PageDirectory growing(directory.with(bytes.first(bytes.size() / 2)), std::chrono::milliseconds(0));
  const PageDirectory whole(directory.with(bytes));
  resume(directory.with(bytes) / ("run" + std::string(kCurvesSuffix)));
  growing.update();
  expect(growing.news() == whole.news(), "a file that has grown shows other curves");
  for (const auto& news : whole.news()) {
    const auto json = jsonIn(news);
    expect(json && json->is_object() && json->get_object().contains("news"), "what is sent is not JSON");
    expect(news.find('<') == news.npos, "what is sent may end a script");
  }
}

std::vector<Bytes> seeds() {
  PageStore store({.name = "a", .group = "<arm>"});
  for (int i = 0; i < 4; ++i) store.point("score/merged", i, 1.0 / (i + 1));
  PageStore ended({.name = "b", .failed = "the score became nan"});
  ended.point("accuracy", 0, 0.5);
  return {bytesOf(curvesHead("<arm>") + store.all() + "\n"),
          bytesOf(curvesHead("") + store.all() + "\n" + ended.all() + "\n")};
}

void mutate(Bytes& bytes, Draw& draw) {
  bytes = bytesOf(mutateJsonLines(textOf(bytes), draw));
}

}  // namespace

const Target targets::curves{"curves", &run, &seeds, &mutate};

}  // namespace muster::fuzz
