// Measures the merges' share of a training's computing for each rule: the MNIST convnet on noise, two
// workers, merged every 3 iterations. Uses processor time, which other programs do not disturb: the
// strategy's calls in both workers relative to the whole process. The rules take turns.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <boost/program_options.hpp>
#include <cstdio>
#include <iostream>
#include <utility>

#include "muster/core/listeners/progress_listener.h"
#include "muster/core/nn/models/convnet.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/parallel_wrapper.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "tests/bench/noise.h"
#include "tests/bench/timing.h"

using namespace muster;
using bench::medianOf;

namespace {

std::int64_t nanoseconds(clockid_t whose) {
  timespec time{};
  ::clock_gettime(whose, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

/// Calls another strategy and sums the processor time of a merge's calls.
class Timed final : public Strategy {
 public:
  Timed(std::unique_ptr<Strategy> strategy, std::shared_ptr<std::atomic<std::int64_t>> computed)
      : strategy_(std::move(strategy)), computed_(std::move(computed)) {}
  std::string describe() const override { return strategy_->describe(); }
  std::vector<StrategyBlock> blocks(int workers) const override { return strategy_->blocks(workers); }
  StrategyTraits traits(int workers) const override { return strategy_->traits(workers); }
  void begin(const Exchange& exchange) override { strategy_->begin(exchange); }
  void start(MergeOps& ops) override { strategy_->start(ops); }
  RoundPlan plan(const TrainingProgress& progress) override { return strategy_->plan(progress); }
  void contribute(double weight, MergeOps& ops) override {
    time([&] { strategy_->contribute(weight, ops); });
  }
  void prepare(const Round& round) override {
    time([&] { strategy_->prepare(round); });
  }
  void launch(int fragment, const Round& round, MergeOps& ops) override {
    time([&] { strategy_->launch(fragment, round, ops); });
  }
  void land(int fragment, const Round& round, MergeOps& ops) override {
    time([&] { strategy_->land(fragment, round, ops); });
  }
  void afterReduction(const Round& round, MergeOps& ops) override {
    time([&] { strategy_->afterReduction(round, ops); });
  }
  bool pending() const override { return strategy_->pending(); }
  MergeReport report() const override { return strategy_->report(); }

 private:
  template <typename Call>
  void time(Call call) {
    const std::int64_t before = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    call();
    *computed_ += nanoseconds(CLOCK_THREAD_CPUTIME_ID) - before;
  }

  const std::unique_ptr<Strategy> strategy_;
  const std::shared_ptr<std::atomic<std::int64_t>> computed_;
};

struct TimedOptions {
  AnyStrategy strategy;
  std::shared_ptr<std::atomic<std::int64_t>> computed;
  void validate() const { strategy.validate(); }
  std::unique_ptr<Strategy> make() const { return std::make_unique<Timed>(strategy.make(), computed); }
};

/// A training with one rule, continued in each turn.
struct Arm {
  std::string text;  // as in "averaging:codec=int8"
  std::shared_ptr<std::atomic<std::int64_t>> computed = std::make_shared<std::atomic<std::int64_t>>(0);
  std::unique_ptr<MultiLayerNetwork> model = std::make_unique<MultiLayerNetwork>(convnet());
  std::unique_ptr<ParallelWrapper> wrapper = {};
  std::vector<double> shares = {};

  void turn(DataSetIterator& data) {
    const std::int64_t begin = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
    *computed = 0;
    wrapper->fit(data);
    const std::int64_t all = nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - begin;
    shares.push_back(100 * static_cast<double>(*computed) / static_cast<double>(all));
  }
};

std::unique_ptr<Arm> armOf(const std::string& text) {
  const auto colon = std::min(text.find(':'), text.size());
  const std::string options = text.substr(std::min(text.size(), colon + 1));
  auto arm = std::make_unique<Arm>(Arm{.text = text});
  arm->model->init();
  const std::string every = options.starts_with("every=") ? "" : options.empty() ? "every=3" : "every=3,";
  const auto strategy = strategyNamed(text.substr(0, colon), every + options, 2);
  arm->wrapper = std::make_unique<ParallelWrapper>(ParallelWrapper::Builder(*arm->model)
                                                       .workers(2)
                                                       .strategy(TimedOptions{strategy, arm->computed})
                                                       .build());
  return arm;
}

}  // namespace

int main(int argc, char** argv) try {
  muster::showProgress(false);
  namespace po = boost::program_options;
  std::int64_t batch = 128, batches = 60, turns = 5;
  std::vector<std::string> rules = {"averaging",
                                    "outer:rate=0.7,momentum=0.9,nesterov=true",
                                    "bmuf",
                                    "slowmo",
                                    "diloco",
                                    "lookahead",
                                    "easgd",
                                    "sma",
                                    "adasum",
                                    "overlapped",
                                    "streaming:every=6",
                                    "gossip",
                                    "asynchronous",
                                    "averaging:codec=int8"};
  po::options_description options("Options");
  options.add_options()("help", "this text");
  options.add_options()("batch", po::value(&batch)->default_value(batch), "examples of a batch");
  options.add_options()("batches", po::value(&batches)->default_value(batches), "batches of a turn");
  options.add_options()("turns", po::value(&turns)->default_value(turns), "of each rule");
  options.add_options()(
      "rules", po::value(&rules)->multitoken(),
      "instead of the usual ones, as in averaging diloco:rate=1; the first is compared with");
  po::variables_map given;
  po::store(po::parse_command_line(argc, argv, options), given);
  po::notify(given);
  if (given.contains("help")) {
    std::cout << options;
    return 0;
  }
  auto data = noise(batches, batch);
  std::vector<std::unique_ptr<Arm>> arms;
  for (const auto& rule : rules) arms.push_back(armOf(rule));
  for (const auto& arm : arms) arm->wrapper->fit(data);  // to warm up
  for (std::int64_t t = 0; t < turns; ++t)
    for (const auto& arm : arms) arm->turn(data);
  fmt::print("| rule | merging, % of computing | lowest | highest | beside {} |\n|---|---|---|---|---|\n",
             rules.front());
  for (const auto& arm : arms) {
    std::vector<double> ratios;
    for (std::size_t t = 0; t < arm->shares.size(); ++t)
      ratios.push_back(arm->shares[t] / arms.front()->shares[t]);
    fmt::print("| {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n", arm->text, medianOf(arm->shares),
               std::ranges::min(arm->shares), std::ranges::max(arm->shares), medianOf(ratios));
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "merge_share: {}\n", error.what());
  return 2;
}
