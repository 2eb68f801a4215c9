#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/mutex.h"
#include "muster/core/listeners/watch/layer_histograms.h"

namespace muster {

/// One point of a curve.
struct PagePoint {
  std::int32_t series = 0;  ///< index of its name
  std::int64_t step = 0;
  double value = 0;
};

/// How far the training is.
struct PageProgress {
  bool running = false;
  int workers = 0;
  std::int64_t epoch = 0;      ///< epochs finished
  std::int64_t lastEpoch = 0;  ///< of this `fit()`
  std::int64_t iteration = 0;
  std::int64_t batches = 0;  ///< in the epoch, by all workers
  std::optional<std::int64_t> batchesPerEpoch = {};
  std::chrono::system_clock::time_point began = {};
};

/// The histograms of all layers at one merge.
struct PageHistograms {
  std::int64_t step = 0;
  std::vector<LayerHistogram> layers = {};
};

/// A buffer from the training to the server. Both hold its lock only while they add a number to a vector or
/// swap vectors. If the server does not empty it in time, points are lost and memory does not grow.
class PageInbox {
 public:
  /// What has come since the last time.
  struct Content {
    std::vector<std::string> newNames;  ///< in the order of their indices
    std::vector<PagePoint> points;
    std::vector<std::pair<std::string, std::string>> texts;  ///< by name
    std::optional<PageHistograms> histograms;
    std::optional<PageProgress> progress;
    std::string network;    ///< as JSON; empty: nothing new
    std::int64_t lost = 0;  ///< points for which there was no room
  };
  static constexpr std::size_t kRoom = 1 << 15;  ///< points between two visits

  PageInbox();

  // For the training. Thread-safe.
  void point(std::string_view name, std::int64_t step, double value);
  void text(std::string_view name, std::string_view text);
  void histograms(PageHistograms histograms);
  void progress(const PageProgress& progress);
  void network(std::string json);

  /// For the server. @param content  is swapped: its vectors are emptied and their memory used again.
  void take(Content& content);

 private:
  Mutex mutex_;
  std::map<std::string, std::int32_t, std::less<>> names_ MUSTER_GUARDED_BY(mutex_);
  Content content_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster
