#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/listeners/watch/page/page_inbox.h"

namespace muster {

/// A curve of at most kMost points: when it is full, each four points become the smallest and the largest of
/// them, and so do points that come later, in larger and larger groups. So its extremes stay.
class PageCurve {
 public:
  static constexpr std::size_t kMost = 2000;
  /// A value of the curve.
  struct Point {
    std::int64_t step = 0;
    double value = 0;
  };

  PageCurve() = default;
  /// A curve that continues from points of an earlier one. The first point that is added replaces those at
  /// its step: an epoch's end may come again after the checkpoint of its last merge.
  /// @param groupSize  as it was there.
  PageCurve(std::vector<Point> points, std::size_t groupSize)
      : points_(std::move(points)), groupSize_(groupSize), continues_(true) {}

  /// @return whether points that were there have changed.
  bool add(Point point);
  /// Drops points after this step. @return whether `points` had any.
  bool endAt(std::int64_t step);
  const std::vector<Point>& points() const { return points_; }
  /// Points given to `add` that become one point, or two if more than one.
  std::size_t groupSize() const { return groupSize_; }
  /// The value at a step, of a curve that grows from (0, 0): linear between points, and beyond the last in
  /// proportion to it. 0 without points.
  double at(std::int64_t step) const;

 private:
  void thin();
  std::vector<Point> points_;
  std::vector<Point> group_;  // the last points, while there are fewer than groupSize_
  std::size_t groupSize_ = 1;
  bool continues_ = false;  // and no point was added since
};

/// Names of a run, where a page has several.
struct PageRun {
  std::string name = {};
  std::string group = {};   ///< runs of one group are drawn as their mean; empty: the name
  std::string failed = {};  ///< why it ended early; empty: it did not
};

/// All that a page shows of a run, and what each reader of it has seen. One thread at a time.
class PageStore {
 public:
  PageStore() = default;
  explicit PageStore(PageRun run) : run_(std::move(run)) {}

  /// What a reader has seen.
  struct Seen {
    std::int64_t generation = -1;  ///< none
    std::int64_t version = -1;
    std::vector<std::size_t> points;                                        // [series]
    std::int64_t texts = -1, histograms = -1, progress = -1, network = -1;  // versions
  };

  /// Adds what has come.
  void add(const PageInbox::Content& content);
  void point(std::string_view name, std::int64_t step, double value);
  /// Puts a curve of the same training, recorded by an earlier process, before the points of this name.
  void putBefore(std::string_view name, PageCurve curve);
  /// Marks the run as running, also if it had ended early.
  void begins();
  /// Why the run ended early.
  void failed(std::string why);
  /// What `seen` lacks, as JSON; "" if nothing. Everything, with "all": true, if points were thinned or
  /// replaced since.
  /// @param histograms  false: these wait for a later call.
  std::string news(Seen& seen, bool histograms = true) const;
  /// All of it.
  std::string all() const;

 private:
  std::size_t curve(std::string_view name);

  PageRun run_;
  std::map<std::string, std::size_t, std::less<>> indices_;  // [name] of curves_
  std::vector<std::size_t> ofInbox_;                         // [series in the inbox] index of curves_
  std::vector<std::string> names_;
  std::vector<PageCurve> curves_;
  std::map<std::string, std::string> texts_;
  std::optional<PageHistograms> histograms_;
  std::optional<PageProgress> progress_;
  std::string network_;
  std::int64_t lost_ = 0;
  std::int64_t generation_ = 0;  // grows when points that were there change
  std::int64_t version_ = 0;     // grows with each addition
  std::int64_t textsVersion_ = -1, histogramsVersion_ = -1, progressVersion_ = -1, networkVersion_ = -1;
};

}  // namespace muster
