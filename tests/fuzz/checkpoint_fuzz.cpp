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
#include "muster/parallel/training/resumption.h"
#include "tests/fuzz/checkpoint_rules.h"
#include "tests/fuzz/container.h"
#include "tests/fuzz/header_sweep.h"
#include "tests/fuzz/input_file.h"
#include "tests/fuzz/json_mutation.h"
#include "tests/fuzz/schema_networks.h"
#include "tests/fuzz/tensor_sweep.h"
#include "tests/support/small_examples.h"
#include "tests/support/temporary_directory.h"

namespace muster::fuzz {
namespace {

constexpr int kWorkers = 2, kBatches = 6;

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

/// Writes a file in the middle of the first epoch.
class Writer final : public Listener {
 public:
  void onMerge(const MergeEvent& event) override {
    if (!bytes.empty()) return;
    ModelSnapshot(dynamic_cast<Network&>(event.trainer.model()), event.trainer.trainingState())
        .write(directory_ / "checkpoint");
    bytes = bytesOf(test::readFile(directory_ / "checkpoint"));
  }
  Bytes bytes;

 private:
  test::TemporaryDirectory directory_;
};

Bytes checkpointOf(const AnyStrategy& rule, int workers) {
  const auto writer = std::make_shared<Writer>();
  MultiLayerNetwork network(configuration());
  network.init();
  Training(network, rule, workers, {writer}).fit();
  return writer->bytes;
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
  if (auto* const configuration = configurationIn(*file);
      draw.oneIn(8) && configuration && configuration->is_string())
    *configuration = mutateJsonText(configuration->get_string(), draw, networkVocabulary());
  if (draw.oneIn(4)) {
    boost::json::value header = file->header;
    mutateJson(header, draw);
    if (header.is_object()) file->header = header.get_object();
    file->settleOffsets();
  }
  for (std::size_t times = draw.below(4); times-- > 0;)
    file->mutateNumber(draw.oneIn(2) ? "updater.training." : draw.oneIn(2) ? "updater.strategy." : "", draw);
  if (draw.oneIn(2)) settleFingerprint(*file);
  file->settleChecksums();
  bytes = file->bytes();
}

Bytes withTensors(Container file) {
  settleFingerprint(file);
  file.settleChecksums();
  return file.bytes();
}

std::optional<Bytes> sweep(std::size_t number) {
  static const auto files = [] {
    std::vector<Container> all;
    for (const auto& seed : seeds()) all.push_back(*Container::in(seed));
    return all;
  }();
  static const TensorSweep tensors(files);
  static const HeaderSweep headers(files.front());
  if (number < tensors.size()) return withTensors(tensors.at(number));
  number -= tensors.size();
  if (const auto network = networkSweep().at(number))
    return withConfiguration(files.front(), boost::json::serialize(network->value));
  return headers.at(number - networkSweep().size());
}

}  // namespace

const Target targets::checkpoint{"checkpoint", &run, &seeds, &mutate, &sweep};

}  // namespace muster::fuzz
