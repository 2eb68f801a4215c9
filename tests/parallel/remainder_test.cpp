#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr double kLearningRate = 0.25, kMomentum = 0.5;

/// One replica of a toy model with one parameter under Nesterov momentum, in float64.
struct Replica {
  double p = 0, velocity = 0, mean = 0, variance = 0, weight = 0;

  void step(const std::vector<float>& x) {
    double sum = 0, squares = 0;
    for (const float value : x) sum += value;
    const auto n = static_cast<double>(x.size());
    for (const float value : x) squares += (value - sum / n) * (value - sum / n);
    const double gradient = p - sum / n;
    velocity = kMomentum * velocity + gradient;
    p -= kLearningRate * (gradient + kMomentum * velocity);
    mean = sum / n;
    variance = squares / n;
    weight += n;
  }
};

/// The simplest training loop, in one thread.
struct Simulation {
  Replica merged;
  std::int64_t iteration = 0;

  void epoch(const std::vector<ToyBatch>& batches, std::size_t workers, std::size_t frequency) {
    std::vector<Replica> replicas(workers, merged);
    std::size_t round = 0;
    for (std::size_t first = 0; first < batches.size(); first += workers, ++iteration) {
      for (std::size_t w = 0; w < workers && first + w < batches.size(); ++w)
        replicas[w].step(batches[first + w].values);
      if (++round % frequency == 0) merge(replicas);
    }
    merge(replicas);  // the remainder
  }

  void merge(std::vector<Replica>& replicas) {
    double total = 0;
    for (const auto& r : replicas) total += r.weight;
    if (total == 0) return;
    Replica result;
    for (const auto& r : replicas) {
      const double share = r.weight / total;
      result.p += share * r.p;
      result.velocity += share * r.velocity;
      result.mean += share * r.mean;
      result.variance += share * (r.variance + r.mean * r.mean);
    }
    result.variance -= result.mean * result.mean;
    merged = result;
    for (auto& r : replicas) r = merged;
  }
};

void checkClose(double actual, double expected) {
  // Allows some hundred float32 roundings of numbers around 1.
  CHECK(std::abs(actual - expected) < 1e-5);
}

}  // namespace

TEST_CASE("whatever the remainder, the user's model is the merged model") {
  for (int workers = 1; workers <= 5; ++workers)
    for (int frequency = 1; frequency <= 4; ++frequency)
      for (int count = 1; count <= 12; ++count) {
        INFO("workers ", workers, ", frequency ", frequency, ", count ", count);
        const auto batches = randomBatches(static_cast<std::uint64_t>(100 + count), count, 4, 1, true);
        ToyModel model(
            {.training = {.updater = Nesterovs{.learningRate = kLearningRate, .momentum = kMomentum}},
             .statistics = true});
        ToyIterator data(batches);
        auto wrapper = toyWrapper(model, workers, frequency).prefetchBuffer(count % 3).build();
        wrapper.fit(data, 2);
        wrapper.fit(data);

        Simulation expected;
        for (int e = 0; e < 3; ++e)
          expected.epoch(batches, static_cast<std::size_t>(workers), static_cast<std::size_t>(frequency));
        checkClose(model.parameters()[0], expected.merged.p);
        checkClose(model.updaterState("velocity")[0], expected.merged.velocity);
        checkClose(model.statistics()[0], expected.merged.mean);
        checkClose(model.statistics()[1], expected.merged.variance);
        CHECK(model.iteration() == expected.iteration);
        CHECK(model.epoch() == 3);
      }
}
