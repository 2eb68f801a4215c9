// Checkpoints: a training continues from a checkpoint, or reports why it cannot.
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "muster/core/base/log.h"
#include "muster/core/io/model_file.h"
#include "muster/core/nn/layers.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/core/nn/training_state.h"
#include "muster/core/optim/updaters.h"
#include "muster/parallel/parallel_wrapper.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/training/resumption.h"
#include "tests/fuzz/container.h"
#include "tests/fuzz/input_file.h"
#include "tests/fuzz/schema_networks.h"
#include "tests/support/on_merge.h"
#include "tests/support/small_examples.h"

namespace muster::fuzz {
namespace {

constexpr int kWorkers = 2, kBatches = 6;

/// Options in place of a rule's defaults, so that it merges, launches and lands within a few batches.
std::string quickOptions(const AnyStrategy& rule) {
  static constexpr auto kQuick = std::to_array<std::pair<std::string_view, std::string_view>>(
      {{"every", "2"}, {"delay", "1"}, {"fragments", "1"}, {"levels", "1:1,2:all"}});
  std::string text;
  for (const auto& option : optionsOf(rule))
    for (const auto& [name, value] : kQuick)
      if (option.name == name) text.append(text.empty() ? "" : ",").append(name).append("=").append(value);
  return text;
}

/// Every rule of the library that has a name, merging often.
std::vector<AnyStrategy> namedRules(int workers) {
  std::vector<AnyStrategy> all;
  for (const auto& rule : namedStrategies(workers))
    all.push_back(strategyNamed(rule.name, quickOptions(rule.options), workers));
  return all;
}

/// These for two workers, and rules with options that add state to checkpoints.
std::vector<AnyStrategy> checkpointRules() {
  auto all = namedRules(kWorkers);
  static constexpr auto kOthers = std::to_array<std::pair<const char*, const char*>>(
      {{"averaging", "every=2,updaterState=keep"},
       {"averaging", "every=2,period=adacomm,period.interval=1"},
       {"averaging", "every=2,period=qsr,period.alpha=0.2"},
       {"averaging", "every=2,period.until=2"},
       {"averaging", "every=2,codec=int8"},
       {"outer", "every=2,codec=top-k,codec.share=0.2,momentum=0.5"},
       {"averaging", "every=2,codec=power-sgd"},
       {"adasum", "every=2,codec=bf16"},
       {"gossip", "graph=ring,codec=e3m0,modelEvery=2"},
       {"streaming", "every=2,fragments=1,delay=1,codec=int8"},
       {"shared", "threshold=fixed,updaterState=keep"},
       {"shared", "threshold=target"},
       {"asynchronous", "every=1,momentum=0.5,speeds=1,0.5"},
       {"asynchronous", "every=1,arrivalsPerStep=2,nesterov=true,momentum=0.5,codec=int8"},
       {"overlapped", "every=2,delay=1,rate=0.7,momentum=0.5,landing=eager"}});
  for (const auto& [name, options] : kOthers) all.push_back(strategyNamed(name, options, kWorkers));
  return all;
}

MultiLayerConfiguration configuration() {
  return {.updater = Nesterovs{.learningRate = 0.1}, .inputShape = {6}, .layers = {Output{.classes = 4}}};
}

/// A trainer of a network, which others may train, too. Used for many inputs, because starting threads takes
/// longer than a training.
class Training {
 public:
  explicit Training(MultiLayerNetwork& network, const AnyStrategy& rule, int workers = kWorkers,
                    Listeners listeners = {})
      : rule_(ruleText(rule)),
        wrapper_(ParallelWrapper::Builder(network)
                     .workers(workers)
                     .strategy(rule)
                     .pinThreads(false)
                     .prefetchBuffer(0)
                     .listeners(std::move(listeners))
                     .build()) {}
  /// How well a checkpoint's rule is this one: other options may have the same description.
  int match(const TrainingState& state) const {
    const auto is = [&](std::string_view name, std::string_view text) {
      const Tensor* const saved = findValues(state, name);
      return saved && std::string_view(static_cast<const char*>(saved->raw()), saved->bytes()) == text;
    };
    return 2 * is("rule", rule_.description) + is("rule options", rule_.options);
  }
  void fit() { wrapper_.fit(data_, 1); }

 private:
  const RuleText rule_;
  ParallelWrapper wrapper_;
  test::SmallExamples data_{kBatches};
};

Training& trainingOf(MultiLayerNetwork& network) {
  static const auto all = [&] {
    std::vector<std::unique_ptr<Training>> made;
    for (const auto& rule : checkpointRules()) made.push_back(std::make_unique<Training>(network, rule));
    return made;
  }();
  return **std::ranges::max_element(all, {},
                                    [&](const auto& one) { return one->match(network.trainingState()); });
}

/// The trainings serve all inputs, since making one takes longer than running it. So an error may need the
/// inputs before it.
void run(ByteSpan bytes) {
  static const bool quiet = (setLogSink([](LogLevel, std::string_view) {}), true);
  static_cast<void>(quiet);
  static FuzzedFile file;
  static MultiLayerNetwork network(configuration());
  const auto& path = file.of(bytes);
  if (!isRead(path, [&] { loadState(network, path); })) return;
  try {
    trainingOf(network).fit();
  } catch (const FileError& error) {  // its numbers are impossible
    if (error.path() != path) throw;
  } catch (const InvalidArgument&) {
  } catch (const TrainingError& error) {
    try {
      std::rethrow_exception(error.cause());
    } catch (const InvalidArgument&) {
    } catch (const NonFiniteScore&) {  // caused by hostile parameters
    }
  } catch (const NonFiniteScore&) {
  }
}

/// A checkpoint in the middle of the first epoch.
Bytes checkpointOf(const AnyStrategy& rule, int workers) {
  Bytes bytes;
  const auto writer = test::onMerge([&](const MergeEvent& event) {
    if (!bytes.empty()) return;
    const ModelSnapshot snapshot(dynamic_cast<Network&>(event.trainer.model()),
                                 event.trainer.trainingState());
    bytes = writtenBy([&](const auto& path) { snapshot.write(path); });
  });
  MultiLayerNetwork network(configuration());
  network.init();
  Training(network, rule, workers, {writer}).fit();
  return bytes;
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const auto& rule : checkpointRules()) all.push_back(checkpointOf(rule, kWorkers));
  for (const auto& rule : namedRules(2 * kWorkers)) all.push_back(checkpointOf(rule, 2 * kWorkers));
  return all;
}

/// Makes the training state that of the changed model, so that it is not discarded.
void settleFingerprint(Container& file) {
  static MultiLayerNetwork network(configuration());
  static FuzzedFile saved;
  file.settleChecksums();
  try {
    loadState(network, saved.of(file.bytes()));
    const test::SmallExamples data(kBatches);
    const auto state = positionState(network, data, {});
    file.replace("updater.training.fingerprint", findValues(state, "fingerprint")->span<std::int64_t>()[0]);
  } catch (const Error&) {
  }
}

void mutate(Bytes& bytes, Draw& draw) {
  auto file = Container::in(bytes);
  if (!file) return mutateBytes(bytes, draw);
  if (auto* const configuration = file->metadata("configuration");
      draw.oneIn(8) && configuration && configuration->is_string())
    *configuration = mutateJsonText(configuration->get_string(), draw, networkVocabulary());
  if (draw.oneIn(4)) {
    file->mutateHeader(draw);
    file->settleOffsets();
  }
  for (std::size_t times = draw.below(4); times-- > 0;)
    file->mutateNumber(draw.oneIn(2) ? "updater.training." : draw.oneIn(2) ? "updater.strategy." : "", draw);
  if (draw.oneIn(2)) settleFingerprint(*file);
  file->settleChecksums();
  bytes = file->bytes();
}

Sweep sweep() {
  std::vector<Container> files;
  for (const auto& seed : seeds()) files.push_back(*Container::in(seed));
  const Container first = files.front();
  const auto withNetwork = [first](std::size_t number) {
    return withConfiguration(first, boost::json::serialize(networkSweep().at(number).value));
  };
  return joined({tensorSweep(std::move(files), settleFingerprint),
                 {networkSweep().size(), withNetwork},
                 headerSweep(first)});
}

}  // namespace

const Target targets::checkpoint{"checkpoint", &run, &seeds, &mutate, &sweep};

}  // namespace muster::fuzz
