#include "muster/core/nn/learning_rate_finder.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "muster/core/base/error.h"
#include "muster/core/data/joining_iterator.h"
#include "muster/core/data/next_batch.h"
#include "muster/core/data/training_reads.h"

namespace muster {
namespace {

/// The rate of each step.
struct Ramp {
  static constexpr std::string_view kType = "ramp";
  LearningRateRange range;

  double at(std::int64_t iteration, std::int64_t) const {
    const double share = static_cast<double>(iteration) / static_cast<double>(range.steps - 1);
    return range.lowest * std::pow(range.highest / range.lowest, share);
  }
  void fields(Fields&) {}
  void validate() const {}
};

void check(const LearningRateRange& r) {
  require(std::isfinite(r.highest) && r.lowest > 0 && r.lowest < r.highest,
          "learning rate finder: expected 0 < lowest < highest, got {} and {}", r.lowest, r.highest);
  require(r.steps >= 10, "learning rate finder: steps must be at least 10, got {}", r.steps);
  require(r.smoothing >= 0 && r.smoothing < 1, "learning rate finder: smoothing must be in [0, 1), got {}",
          r.smoothing);
  require(r.divergence > 1, "learning rate finder: divergence must be above 1, got {}", r.divergence);
}

/// Batches without end: epoch after epoch.
class Epochs {
 public:
  explicit Epochs(DataSetIterator& data) : data_(data) { data_.reset(0); }

  void next(Batch& batch) {
    if (!nextBatch(data_, batch)) {
      data_.reset(++stamp_.epoch);
      stamp_.sequence = stamp_.firstExample = 0;
      require(nextBatch(data_, batch), "learning rate finder: the data set has no batches");
    }
    batch.stamp = stamp_;
    ++stamp_.sequence;
    ++stamp_.iteration;
    stamp_.firstExample += batch.examples();
  }

 private:
  DataSetIterator& data_;
  BatchStamp stamp_;
};

/// The last point before `lowest` that has at most a quarter of the fall behind it. Earlier points are not
/// searched: the first averages are of few scores, whose noise can be steeper than the fall. The fall begins
/// at the median of the first points.
std::size_t beginOfFall(const LearningRateCurve& curve, std::size_t lowest, double smoothing) {
  const double averaged = std::ceil(1 / (1 - smoothing));  // scores, of which an average mostly consists
  const auto count = static_cast<std::size_t>(std::min(averaged, static_cast<double>(lowest) + 1));
  std::vector<double> first(curve.scores.begin(), curve.scores.begin() + static_cast<std::ptrdiff_t>(count));
  const auto middle = first.begin() + static_cast<std::ptrdiff_t>(count / 2);
  std::ranges::nth_element(first, middle);
  const double begun = curve.scores[lowest] + 0.75 * (*middle - curve.scores[lowest]);
  std::size_t begin = lowest;
  while (begin > 0 && curve.scores[begin] < begun) --begin;
  return begin;
}

/// The rate where the curve falls fastest on the way to its lowest point. The rates' logarithms are equally
/// spaced.
std::optional<double> steepest(const LearningRateCurve& curve, double smoothing) {
  if (curve.scores.empty()) return {};
  const auto lowest = static_cast<std::size_t>(std::ranges::min_element(curve.scores) - curve.scores.begin());
  std::optional<double> rate;
  double fastest = 0;
  for (std::size_t i = std::max<std::size_t>(1, beginOfFall(curve, lowest, smoothing));
       i <= lowest && i + 1 < curve.scores.size(); ++i) {
    const double slope = curve.scores[i + 1] - curve.scores[i - 1];
    if (slope >= fastest) continue;
    fastest = slope;
    rate = curve.rates[i];
  }
  return rate;
}

}  // namespace

LearningRateCurve findLearningRate(Model& model, DataSetIterator& data, const LearningRateRange& range) {
  check(range);
  requireNotRead(data, "learning rate finder");
  model.fitBeforeTraining(data);
  JoiningIterator joined(data, model.trainingOptions().accumulate);
  Epochs batches(joined);
  Batch batch;
  batches.next(batch);
  model.prepare(batch);
  model.context().synchronize();
  const auto copy = model.replicate(model.context());
  copy->copyStateFrom(model);
  ContextScope scope(model.context());
  TrainingOptions options = model.trainingOptions();
  options.updater = options.updater.withLearningRate(Ramp{range});
  StateBlock& parameters = copy->block(BlockKind::Parameters);
  Optimizer optimizer(options, parameters);

  LearningRateCurve curve;
  double average = 0, lowest = std::numeric_limits<double>::infinity();
  for (std::int64_t step = 0; step < range.steps; ++step) {
    if (step > 0) batches.next(batch);
    const double score = copy->gradient(batch).wait().score;
    if (step == 0 && !std::isfinite(score))
      throw NonFiniteScore(fmt::format(
          "learning rate finder: the score is {} before the first step; the data or the model hold "
          "a value that is not finite, or are too large",
          score));
    average = range.smoothing * average + (1 - range.smoothing) * score;
    const double corrected = average / (1 - std::pow(range.smoothing, static_cast<double>(step + 1)));
    curve.diverged = !std::isfinite(corrected) || corrected > range.divergence * lowest;
    if (curve.diverged) break;
    lowest = std::min(lowest, corrected);
    curve.rates.push_back(options.updater.learningRate().at(step));
    curve.scores.push_back(corrected);
    const double penalty = optimizer.apply(parameters, copy->block(BlockKind::Gradients), step,
                                           batch.stamp.epoch, model.context(), step + 1);
    curve.diverged = !std::isfinite(penalty);
    if (curve.diverged) break;
  }
  curve.suggestion = steepest(curve, range.smoothing);
  return curve;
}

}  // namespace muster
