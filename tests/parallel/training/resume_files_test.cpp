// Checkpoints on the disk: networks that draw random numbers, and the library's iterators.

#include "muster/core/data/image_transform.h"
#include "muster/core/data/prefetch.h"
#include "muster/core/io/weights.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/generated_digits.h"
#include "tests/parallel/builder_of.h"
#include "tests/parallel/resumable.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kFileEpochs = 2;

MultiLayerConfiguration network(const Updater& updater) {
  return {.seed = 3,
          .updater = updater,
          .l2 = 1e-3,
          .inputShape = {1, 28, 28},
          .layers = {Conv2d{.outChannels = 3, .kernel = {7, 7}, .stride = {4, 4}}, BatchNorm{},
                     Dropout{.rate = 0.3}, Dense{.units = 8, .activation = Activation::ReLU},
                     Output{.classes = 10}}};
}

/// 11 prefetched batches of digits, shifted and mirrored.
struct Data {
  explicit Data(int depth) : ahead(shifted, depth) {}
  GeneratedDigitsIterator digits{6, 64, 7, true};
  TransformingIterator shifted{digits, {RandomCrop{.padding = 2}, RandomFlip{}}, 9};
  PrefetchingIterator ahead;
};

/// Trains up to the last epoch. @return the bytes of its checkpoint.
std::string train(const ResumableRule& rule, const std::filesystem::path& directory,
                  const std::filesystem::path& from = {}, std::int64_t prefetch = 16, int depth = 2,
                  bool pin = false) {
  MultiLayerNetwork model(network(rule.updater));
  model.init();
  if (!from.empty()) loadState(model, from);
  auto checkpoints = std::make_shared<CheckpointListener>(
      CheckpointOptions{.directory = directory, .everyIterations = from.empty() ? 1 : 0});
  Data data(depth);
  ParallelWrapper::Builder(model)
      .workers(rule.workers(2))
      .strategy(rule.options)
      .prefetchBuffer(prefetch)
      .pinThreads(pin)
      .listeners({checkpoints, std::make_shared<AwaitFile>(checkpoints)})
      .build()
      .fit(data.ahead, kFileEpochs - model.epoch());
  return test::readFile(checkpoints->files().back());
}

}  // namespace

TEST_CASE("resumed from any checkpoint, with other buffers and pinning, a training ends with the same file") {
  for (const auto& rule : ofEachKind(resumableRules())) {
    CAPTURE(rule.name);
    const TemporaryDirectory directory;
    const std::string whole = train(rule, directory / "whole");
    auto files = checkpointsIn(directory / "whole", "checkpoint");
    REQUIRE(files.size() >= 4);
    files.pop_back();
    for (std::size_t i = 0; i < files.size(); i += 1 + files.size() / 6) {
      CAPTURE(files[i].path.filename());
      const auto number = static_cast<std::int64_t>(i);
      CHECK(train(rule, directory / fmt::format("from{}", i), files[i].path, number % 3,
                  static_cast<int>(i % 4), i % 2 == 0) == whole);
    }
  }
}

TEST_CASE("a checkpoint is a model's file; a model knows the file of its state until that is another one") {
  const TemporaryDirectory directory;
  const ResumableRule rule = resumableRules().back();
  train(rule, directory / "c");
  const auto file = checkpointsIn(directory / "c", "checkpoint").at(1);
  const auto path = file.path;
  const auto loaded = MultiLayerNetwork::load(path);
  CHECK(loaded->iteration() == file.place.iteration);
  CHECK_FALSE(loaded->trainingState().empty());
  CHECK(loaded->output(Tensor::zeros({1, 1, 28, 28})).shape() == Shape{1, 10});
  loaded->save(directory / "again");
  CHECK(test::readFile(directory / "again") == test::readFile(path));
  CHECK(loaded->loadedFrom() == path);
  CHECK(loaded->clone()->loadedFrom() == path);

  MultiLayerNetwork model(network(rule.updater)), fresh(network(rule.updater));
  model.init();
  fresh.init();
  saveWeights(model, directory / "weights");
  Data data(2);
  const std::function<void()> changes[] = {[&] { loadWeights(model, directory / "weights"); },
                                           [&] { model.copyStateFrom(fresh); },
                                           [&] { model.copyStateFrom(*loaded, /*withUpdaterState=*/false); },
                                           [&] { model.copyStateFrom(fresh, /*withUpdaterState=*/false); },
                                           [&] { builderOf(model, 2, rule.options).build().fit(data.ahead); },
                                           [&] { model.fit(data.ahead); },
                                           [&] { model.init(); }};
  for (const auto& change : changes) {
    CAPTURE(&change - changes);
    loadState(model, path);
    CHECK(model.loadedFrom() == path);
    change();
    CHECK(model.loadedFrom().empty());
  }
  model.copyStateFrom(*loaded);
  CHECK(model.loadedFrom() == path);
}

TEST_CASE("what is wrong in a checkpoint's state is told with the file's name, until the model was trained") {
  const TemporaryDirectory directory;
  const ResumableRule rule{{"AdaComm", Averaging{.frequency = Period::adaComm(4, {.interval = 2})}}};
  train(rule, directory / "c");
  const auto path = checkpointsIn(directory / "c", "checkpoint").at(1).path;
  const auto refusal = [&](const char* name, std::size_t at, auto number, bool alone = false) {
    const auto saved = MultiLayerNetwork::load(path);
    for (auto* const all : {&saved->strategyState(), &saved->trainingState()})
      for (auto& [of, values] : *all)
        if (of == name) values.template data<decltype(number)>()[at] = number;
    saved->save(directory / "damaged");
    MultiLayerNetwork model(network(rule.updater));
    loadState(model, directory / "damaged");
    CHECK(model.loadedFrom() == directory / "damaged");
    Data data(2);
    return test::thrown<FileError>([&] {
      if (alone) return model.fit(data.ahead);
      builderOf(model, 2, rule.options).build().fit(data.ahead);
    });
  };
  const std::string begin = (directory / "damaged").string() + ": cannot be resumed: ",
                    end = ", which is impossible";
  const std::int64_t minusOne = -1, zero = 0;
  const auto position = begin + "training state: \"position\" has -1 trained batches" + end;
  CHECK(refusal("position", 0, minusOne) == position);
  CHECK(refusal("position", 0, minusOne, /*alone=*/true) == position);
  CHECK(refusal("rounds", 0, minusOne) == begin + "training state: \"rounds\" has -1 finished rounds" + end);
  CHECK(refusal("rounds", 1, zero).starts_with(begin + "training state: the strategy's plan: "));
  CHECK(refusal("AdaComm", 0, std::nan("")) ==
        begin + "strategy state: element 0 of \"AdaComm\" is nan" + end);  // found by the wrapper
  CHECK(refusal("AdaComm", 4, -1.0) ==
        begin + "strategy state: \"AdaComm\" has -1 rounds" + end);  // found by the rule
}

TEST_CASE("options that do not fit the model are an InvalidArgument, also where a checkpoint is resumed") {
  const TemporaryDirectory directory;
  const ResumableRule two{{"streaming", StreamingOuter{.frequency = 4, .fragments = 2}}};
  train(two, directory / "c");
  const auto path = checkpointsIn(directory / "c", "checkpoint").at(1).path;
  MultiLayerNetwork model(network(two.updater));
  loadState(model, path);
  Data data(2);
  const auto fit = [&](int fragments) {
    builderOf(model, 2, StreamingOuter{.frequency = 60, .fragments = fragments}).build().fit(data.ahead);
  };
  CHECK_REFUSED(fit(20),
                "streaming outer averaging: the model has 8 tensors, which 20 fragments cannot be made of");
  CHECK(model.loadedFrom() == path);
  CHECK_NOTHROW(fit(4));
}
