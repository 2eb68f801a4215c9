// Measures the share of a training's time spent waiting for checkpoints: the MNIST convnet on noise, two
// workers, merged every 3 iterations. The share of wall time, and of processor time, which other programs do
// not disturb: the listener's computing while two workers wait, relative to the whole process, including the
// writing.
#include <fmt/format.h>
#include <time.h>

#include <boost/program_options.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "muster/core/listeners/checkpoint_listener.h"
#include "muster/core/listeners/progress_listener.h"
#include "muster/core/nn/models/convnet.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/bench/noise.h"

using namespace muster;
using Seconds = std::chrono::duration<double>;
using Clock = std::chrono::steady_clock;

namespace {

Seconds processorTime(clockid_t whose) {
  timespec time{};
  ::clock_gettime(whose, &time);
  return Seconds(static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec));
}

/// A checkpoint listener that times its calls, during which all workers wait.
class Timed final : public Listener {
 public:
  explicit Timed(CheckpointOptions options) : listener_(std::move(options)) {}
  void onFitStart(const FitEvent& e) override { listener_.onFitStart(e); }
  void onMerge(const MergeEvent& e) override {
    time([&] { listener_.onMerge(e); });
  }
  void onEpochEnd(const EpochEvent& e) override {
    time([&] { listener_.onEpochEnd(e); });
  }
  void onFitEnd(Trainer& trainer) override { listener_.onFitEnd(trainer); }
  Seconds waited() const { return waited_; }
  Seconds computed() const { return computed_; }

 private:
  template <typename Call>
  void time(Call call) {
    const auto begin = Clock::now();
    const Seconds computedBefore = processorTime(CLOCK_THREAD_CPUTIME_ID);
    call();
    waited_ += Clock::now() - begin;
    computed_ += processorTime(CLOCK_THREAD_CPUTIME_ID) - computedBefore;
  }
  CheckpointListener listener_;
  Seconds waited_{0}, computed_{0};
};

void measure(std::int64_t everyIterations, std::int64_t epochs, InMemoryDataSetIterator& data,
             const std::filesystem::path& directory) {
  MultiLayerNetwork model(convnet());
  model.init();
  const auto listener = std::make_shared<Timed>(
      CheckpointOptions{.directory = directory, .everyIterations = everyIterations, .keepLast = 2});
  auto wrapper =
      ParallelWrapper::Builder(model).workers(2).averagingFrequency(3).listeners({listener}).build();
  const auto begin = Clock::now();
  const Seconds computedBefore = processorTime(CLOCK_PROCESS_CPUTIME_ID);
  wrapper.fit(data, epochs);
  const Seconds whole = Clock::now() - begin;
  const Seconds computed = processorTime(CLOCK_PROCESS_CPUTIME_ID) - computedBefore;
  fmt::print("| {} | {:.1f} s | {:.1f} ms | {:.3f} % | {:.1f} ms | {:.3f} % |\n", everyIterations,
             whole.count(), 1000 * listener->waited().count(),
             100 * listener->waited().count() / whole.count(), 1000 * listener->computed().count(),
             200 * listener->computed().count() / computed.count());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) try {
  muster::showProgress(false);
  namespace po = boost::program_options;
  std::int64_t batch = 128, batches = 120, epochs = 3;
  std::filesystem::path directory = std::filesystem::temp_directory_path() / "muster-checkpoint-share";
  po::options_description options("Options");
  options.add_options()("help", "this text");
  options.add_options()("batch", po::value(&batch)->default_value(batch), "examples of a batch");
  options.add_options()("batches", po::value(&batches)->default_value(batches), "batches of an epoch");
  options.add_options()("epochs", po::value(&epochs)->default_value(epochs), "epochs of each training");
  options.add_options()("directory", po::value(&directory)->default_value(directory),
                        "where checkpoints are written, and removed at the end");
  po::variables_map given;
  po::store(po::parse_command_line(argc, argv, options), given);
  po::notify(given);
  if (given.contains("help")) {
    std::cout << options;
    return 0;
  }
  auto data = noise(batches, batch);
  fmt::print(
      "| checkpoint every N iterations | training | waits | share | computes meanwhile | share |\n"
      "|---|---|---|---|---|---|\n");
  for (const std::int64_t every : {3, 30, 100})
    measure(every, epochs, data, directory / fmt::format("{}", every));
  std::filesystem::remove_all(directory);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "checkpoint_share: {}\n", error.what());
  return 2;
}
