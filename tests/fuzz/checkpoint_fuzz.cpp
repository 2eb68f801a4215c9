// Checkpoints: a training continues from a checkpoint, or reports why it cannot.
#include <algorithm>
#include <boost/json/value.hpp>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/base/log.h"
#include "muster/core/io/model_file.h"
#include "muster/core/nn/layers.h"
#include "muster/core/optim/updaters.h"
#include "muster/parallel/parallel_wrapper.h"
#include "muster/parallel/strategies/asynchronous_outer.h"
#include "muster/parallel/strategies/averaging.h"
#include "muster/parallel/strategies/gossip.h"
#include "muster/parallel/strategies/hierarchical_averaging.h"
#include "muster/parallel/strategies/overlapped_averaging.h"
#include "muster/parallel/strategies/shared_gradients.h"
#include "muster/parallel/strategies/streaming_outer.h"
#include "tests/fuzz/container.h"
#include "tests/fuzz/input_file.h"
#include "tests/fuzz/json_mutation.h"
#include "tests/fuzz/networks.h"
#include "tests/support/small_examples.h"
#include "tests/support/temporary_directory.h"

namespace muster::fuzz {
namespace {

constexpr int kWorkers = 2, kBatches = 6;

MultiLayerConfiguration configuration() {
  return {.updater = Nesterovs{.learningRate = 0.1}, .inputShape = {6}, .layers = {Output{.classes = 4}}};
}

/// Rules with different state in a checkpoint.
std::vector<AnyStrategy> rules() {
  return {Averaging{.frequency = 2, .updaterState = UpdaterState::Keep},
          OverlappedAveraging{.frequency = 2, .delay = 1, .rate = 0.7, .momentum = 0.5},
          SharedGradients{.updaterState = UpdaterState::Keep},
          Averaging{.frequency = Period::adaComm(2, {.interval = 1})},
          StreamingOuter{.frequency = 2, .fragments = 1, .delay = 1},
          Gossip{.graph = GossipGraph::Ring},
          HierarchicalAveraging{.levels = {{.period = 1, .group = 2}, {.period = 2}}},
          AsynchronousOuter{.momentum = 0.5}};
}

/// A network and its trainer. Used for many inputs, because starting threads takes longer than a training.
class Training {
 public:
  explicit Training(const AnyStrategy& rule, Listeners listeners = {})
      : rule_(rule.make()->describe()),
        wrapper_(ParallelWrapper::Builder(network)
                     .workers(kWorkers)
                     .strategy(rule)
                     .pinThreads(false)
                     .prefetchBuffer(0)
                     .listeners(std::move(listeners))
                     .build()) {}
  /// The length of the rule's text if a file contains it, else 0. A rule's text may be part of another's.
  std::size_t match(ByteSpan bytes) const {
    return textOf(bytes).find(rule_) != std::string_view::npos ? rule_.size() : 0;
  }
  void fit() { wrapper_.fit(data_, 1); }

  MultiLayerNetwork network{configuration()};

 private:
  const std::string rule_;
  ParallelWrapper wrapper_;
  test::SmallExamples data_{kBatches};
};

Training& trainingOf(ByteSpan bytes) {
  static const auto all = [] {
    std::vector<std::unique_ptr<Training>> made;
    for (const auto& rule : rules()) made.push_back(std::make_unique<Training>(rule));
    return made;
  }();
  return **std::ranges::max_element(all, {}, [&](const auto& one) { return one->match(bytes); });
}

/// The trainings serve all inputs, since making one takes longer than running it. So an error may need the
/// inputs before it.
void run(ByteSpan bytes) {
  static const bool quiet = (setLogSink([](LogLevel, std::string_view) {}), true);
  static_cast<void>(quiet);
  static FuzzedFile file;
  const auto& path = file.of(bytes);
  Training& training = trainingOf(bytes);
  if (!isRead(path, [&] { loadState(training.network, path); })) return;
  try {
    training.fit();
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

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const auto& rule : rules()) {
    const auto writer = std::make_shared<Writer>();
    Training training(rule, {writer});
    training.network.init();
    training.fit();
    all.push_back(writer->bytes);
  }
  return all;
}

void mutate(Bytes& bytes, Draw& draw) {
  auto file = Container::in(bytes);
  if (!file) return mutateBytes(bytes, draw);
  if (draw.oneIn(4)) {
    boost::json::value header = file->header;
    mutateJson(header, draw);
    if (header.is_object()) file->header = header.get_object();
    file->settleOffsets();
  } else {
    file->mutateTensor("updater.", draw);
  }
  file->settleChecksums();
  bytes = file->bytes();
}

}  // namespace

const Target targets::checkpoint{"checkpoint", &run, &seeds, &mutate};

}  // namespace muster::fuzz
