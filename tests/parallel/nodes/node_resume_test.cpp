// Trainings over nodes that are threads of this process, resumed from the content of checkpoints.
// `resume_test` does the same on one node.

#include "muster/core/io/checkpoint_files.h"
#include "muster/core/io/model_file.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/parallel/on_nodes.h"
#include "tests/parallel/resumable.h"
#include "tests/support/log_lines.h"
#include "tests/support/on_merge.h"
#include "tests/support/small_examples.h"
#include "tests/support/temporary_directory.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

using Bits = std::vector<std::byte>;

constexpr std::int64_t kWidth = 40, kEpochs = 2;

ToyModel modelOf(const ResumableRule& rule) {
  return ToyModel(
      {.size = kWidth, .training = {.updater = rule.updater, .l2 = 0.01}, .statistics = true, .split = true});
}

/// Five uneven batches per worker and one more, so an epoch's last round is partial.
ToyIterator dataFor(int workers) {
  return ToyIterator(randomBatches(7, 5 * workers + 1, 3, kWidth, /*ragged=*/true), kWidth);
}

/// What is left of a training: on every node the model, on node 0 also the content of a checkpoint.
struct End {
  std::vector<Bits> models;  // [node]
  Held held;
};

/// Trains over nodes. @param from  null: from the start.  @param listening  whether node 0 has a listener,
/// which reads a checkpoint at each merge if there is `atMerges`.
End trainOver(const Places& places, const ResumableRule& rule, const Held* from,
              std::vector<Held>* atMerges = nullptr, bool listening = true) {
  End end;
  end.models = fromAll(places.nodes, [&](const Nodes& here) {
    auto model = modelOf(rule);
    if (from) from->giveTo(model);
    auto data = dataFor(places.all());
    const auto holder = std::make_shared<Holder>(atMerges);
    builderOf(model, places.workers, rule.options)
        .nodes(here)
        .listeners(listening ? Listeners{holder} : Listeners())
        .build()
        .fit(data, kEpochs - model.epoch());
    if (here.node() == 0) end.held = holder->atEnd();
    return stateBits(model);
  });
  return end;
}

/// As `trainOver`, with the workers of all nodes in one process.
End trainTogether(const Places& places, const ResumableRule& rule, const Held* from,
                  std::vector<Held>* atMerges = nullptr) {
  auto model = modelOf(rule);
  if (from) from->giveTo(model);
  const int workers = places.all();
  auto data = dataFor(workers);
  const auto holder = std::make_shared<Holder>(atMerges);
  builderOf(model, workers, rule.options)
      .groups(places.nodes)
      .listeners({holder})
      .build()
      .fit(data, kEpochs - model.epoch());
  return {.models = {stateBits(model)}, .held = holder->atEnd()};
}

/// Rules that run over so many nodes, one of each kind, and variants with other state for a checkpoint.
std::vector<ResumableRule> rulesOver(const Places& places) {
  auto rules = resumableRules();
  rules.push_back({{"two halves, in flight", TwoHalves{.inFlight = true}}});
  rules.push_back({{"late, kept", OverlappedAveraging{.frequency = 3,
                                                      .delay = 2,
                                                      .rate = 0.7,
                                                      .momentum = 0.5,
                                                      .nesterov = true,
                                                      .updaterState = UpdaterState::Keep}},
                   Adam{.learningRate = 0.05}});
  rules.push_back({{"elastic, top-k", ElasticAveraging{.frequency = 2,
                                                       .updaterState = UpdaterState::Keep,
                                                       .codec = TopKCodec{.share = 0.2}}}});
  rules.push_back({{"gossip on a ring, kept", Gossip{.graph = GossipGraph::Ring,
                                                     .frequency = 2,
                                                     .updaterState = UpdaterState::Keep,
                                                     .modelEvery = 3}}});
  std::erase_if(rules, [&](const ResumableRule& rule) { return !runsOverNodes(rule.options, places.all()); });
  return ofEachKind(rules);
}

}  // namespace

TEST_CASE("resumed at any merge, over nodes or in one process, any rule has the bits of the whole training") {
  const LogLines log;
  std::vector<Places> every = {{2, 1}, {2, 2}};
  if (whole()) every.push_back({3, 1});
  for (const Places& places : every)
    for (const ResumableRule& rule : rulesOver(places)) {
      CAPTURE(rule.name);
      CAPTURE(places.nodes);
      CAPTURE(places.workers);
      std::vector<Held> atMerges, together;
      const End whole = trainOver(places, rule, nullptr, &atMerges);
      CHECK(whole.models == trainOver(places, rule, nullptr, nullptr, /*listening=*/false).models);
      REQUIRE(atMerges.size() >= 3);
      // One within an epoch and one at its end, or every merge over two workers.
      const std::size_t step =
          test::whole() && places.all() == 2 ? 1 : std::max<std::size_t>(1, atMerges.size() / 4);
      for (std::size_t m = 0; m + 1 < atMerges.size(); m += step) {
        CAPTURE(m);
        REQUIRE_FALSE(atMerges[m].training.empty());
        const End resumed = trainOver(places, rule, &atMerges[m]);
        CHECK(whole.held.difference(resumed.held) == "");
        CHECK(whole.models == resumed.models);
      }
      trainTogether(places, rule, nullptr, &together);
      REQUIRE(atMerges.size() == together.size());
      const std::size_t m = atMerges.size() / 3;
      CHECK(trainTogether(places, rule, &atMerges[m]).models.front() == whole.models.front());
      CHECK(trainOver(places, rule, &together[m]).models == whole.models);
    }
  CHECK(std::ranges::none_of(log.all(), [](const auto& line) { return contains(line, "no checkpoint"); }));
}

TEST_CASE("a training of a rule that mixes replicas is resumed after a stop, to the bits of one process") {
  for (const Places places : {Places{2, 2}, Places{3, 1}})
    for (const ResumableRule& rule :
         {ResumableRule{{"gossip", Gossip{.frequency = 2, .modelEvery = 3}}},
          ResumableRule{
              {"ring, kept",
               Gossip{.graph = GossipGraph::Ring, .frequency = 2, .updaterState = UpdaterState::Keep}}},
          ResumableRule{
              {"pairs, reset", Gossip{.graph = GossipGraph::Pairs, .updaterState = UpdaterState::Reset}}},
          ResumableRule{{"groups, kept",
                         HierarchicalAveraging{
                             .levels = {{.period = 1, .group = places.nodes == 2 ? 2 : 1}, {.period = 3}},
       .updaterState = UpdaterState::Keep}}}}) {
      CAPTURE(rule.name);
      CAPTURE(places.nodes);
      Held stopped;
      onAll(places.nodes, [&](const Nodes& here) {
        auto model = modelOf(rule);
        auto data = dataFor(places.all());
        const auto holder = std::make_shared<Holder>();
        auto wrapper = builderOf(model, places.workers, rule.options).nodes(here).listeners({holder}).build();
        model.control().onStep = [&](const Batch& batch) {
          if (here.node() == 1 && batch.stamp.iteration == 3) wrapper.stopFit();
        };
        wrapper.fit(data, kEpochs);
        CHECK(model.epoch() == 0);
        if (here.node() == 0) stopped = holder->atEnd();
      });
      REQUIRE_FALSE(stopped.training.empty());
      const End resumed = trainOver(places, rule, &stopped);
      for (const Bits& bits : resumed.models) CHECK(bits == trainTogether(places, rule, &stopped).models[0]);
      // With other workers the training continues, though not to the same bits.
      auto model = modelOf(rule);
      stopped.giveTo(model);
      auto data = dataFor(places.all());
      builderOf(model, 2, Averaging{}).build().fit(data, 1);
      CHECK(model.epoch() == 1);
    }
}

namespace {

/// Trains a network over two nodes with a checkpoint after each iteration. @return the bytes of the last one.
std::string trainFiles(const AnyStrategy& rule, const std::filesystem::path& directory,
                       const std::filesystem::path& from = {}) {
  std::string last;
  onAll(2, [&](const Nodes& here) {
    MultiLayerNetwork model(
        {.seed = 3,
         .updater = Adam{.learningRate = 0.05},
         .inputShape = {6},
         .layers = {Dense{.units = 7, .activation = Activation::ReLU}, Output{.classes = 4}}});
    model.init();
    if (!from.empty()) loadState(model, from);
    const auto checkpoints =
        std::make_shared<CheckpointListener>(CheckpointOptions{.directory = directory, .everyIterations = 1});
    SmallExamples data(21);
    builderOf(model, 1, rule)
        .nodes(here)
        .listeners({checkpoints, std::make_shared<AwaitFile>(checkpoints)})
        .build()
        .fit(data, kEpochs - model.epoch());
    if (here.node() == 0) last = test::readFile(checkpoints->files().back());
  });
  return last;
}

}  // namespace

TEST_CASE("all nodes are resumed from node 0's file, and node 0 writes the same file at the end") {
  for (const AnyStrategy& rule :
       {AnyStrategy(Averaging{.frequency = 2, .updaterState = UpdaterState::Keep}),
        AnyStrategy(ElasticAveraging{.frequency = 2, .codec = PowerSgdCodec{.rank = 2}}),
        AnyStrategy(OverlappedAveraging{.frequency = 3,
        .delay = 2,
        .updaterState = UpdaterState::Keep,
        .codec = PowerSgdCodec{.rank = 2}}),
        AnyStrategy(StreamingOuter{.frequency = 6,
        .fragments = 2,
        .delay = 2,
        .mixing = 0.3,
        .nesterov = true,
        .updaterState = UpdaterState::Keep,
        .codec = Int8Codec{}})}) {
    CAPTURE(rule.make()->describe());
    const TemporaryDirectory directory;
    const std::string whole = trainFiles(rule, directory / "whole");
    auto files = checkpointsIn(directory / "whole", "checkpoint");
    REQUIRE(files.size() >= 4);
    files.pop_back();
    for (std::size_t i = 0; i < files.size(); i += 1 + files.size() / 5) {
      CAPTURE(files[i].path.filename());
      const bool same = trainFiles(rule, directory / fmt::format("from{}", i), files[i].path) == whole;
      CHECK(same);
    }
  }
}

TEST_CASE("nodes that begin with different checkpoints are refused, naming the places and the files") {
  const TemporaryDirectory directory;
  const AnyStrategy rule = Averaging{.frequency = 2};
  trainFiles(rule, directory / "c");
  const auto files = checkpointsIn(directory / "c", "checkpoint");
  REQUIRE(files.size() >= 3);
  const auto within = std::ranges::find_if(files, [](const auto& file) { return file.place.iteration > 0; });
  REQUIRE(within != files.end());
  const auto& [path, place] = files.back();
  const auto differing = directory / "differing";  // of the same place
  MultiLayerNetwork other(MultiLayerNetwork::load(path)->configuration());
  loadState(other, path);
  other.block(BlockKind::Parameters).values.data<float>()[0] += 1;
  other.save(differing);
  /// @return what both nodes say.
  const auto refusal = [&](const std::filesystem::path& first, const std::filesystem::path& second) {
    VirtualNetwork network(2);
    const auto problems = onNodes(network, 30s, [&](const Nodes& here) {
      MultiLayerNetwork model(other.configuration());
      model.init();
      const auto& from = here.node() == 0 ? first : second;
      if (!from.empty()) loadState(model, from);
      SmallExamples data(21);
      builderOf(model, 1, rule).nodes(here).build().fit(data, 3 - model.epoch());
    });
    CHECK(problems[0] == problems[1]);
    return problems[0];
  };
  CHECK(refusal(path, {}) ==
        fmt::format("nodes: node 0 (virtual0) and node 1 (virtual1) differ in where the training begins, "
                    "which must be the same on all nodes: node 0 (virtual0) begins at batch 1 of epoch {} "
                    "(iteration {}) and loaded its model from {}, and node 1 (virtual1) begins at batch 1 of "
                    "epoch 1 (iteration 0) with a new model; load the same checkpoint on all nodes, or begin "
                    "a new training on all",
                    place.epoch + 1, MultiLayerNetwork::load(path)->iteration(), path.string()));
  CHECK(contains(refusal(within->path, path), " and loaded its model from " + path.string()));
  CHECK(refusal(differing, path) ==
        fmt::format(
            "nodes: node 0 (virtual0) and node 1 (virtual1) differ in the parameters or the state of "
            "the model, which must be the same on all nodes: node 0 (virtual0) loaded its model from {}, and "
            "node 1 (virtual1) loaded its "
            "model from {}; load the same file on all nodes, or initialise the model with the same seed",
            differing.string(), path.string()));
  std::filesystem::copy_file(path, directory / "copy");
  CHECK(refusal(path, directory / "copy") == "");  // the same checkpoint on two disks
}

TEST_CASE("with another number of nodes each begins with the mean of the residuals") {
  const ResumableRule rule{{"int8", OuterAveraging{.frequency = 2, .codec = Int8Codec{}}}};
  std::vector<Held> held;
  trainOver({.nodes = 2, .workers = 2}, rule, nullptr, &held);
  REQUIRE(held.size() > 2);
  for (const Places places : {Places{.nodes = 4, .workers = 1}, Places{.nodes = 1, .workers = 4}}) {
    const LogLines lines;
    trainTogether(places, rule, &held[1]);
    const auto all = lines.all();
    const auto means = std::ranges::count_if(all, [&](const std::string& line) {
      return line.starts_with("the saved coding residual of outer averaging every 2 iterations") &&
             contains(line, " is of 2 workers or nodes, now there are ") &&
             line.ends_with(": each begins with its mean");
    });
    CHECK(means == 1);
    CHECK(std::ranges::none_of(all, [](const std::string& line) { return contains(line, "it is reset"); }));
  }
}

TEST_CASE("with another number of workers, all start with the mean of the updater states that workers kept") {
  const ResumableRule rule{{"kept", Averaging{.frequency = 2, .updaterState = UpdaterState::Keep}},
                           Nesterovs{.learningRate = 0.1}};
  std::vector<Held> atMerges;
  trainOver({2, 2}, rule, nullptr, &atMerges);
  const Held& held = atMerges.at(1);
  const Tensor* const kept = findValues(held.training, "replicas.velocity");
  REQUIRE(kept != nullptr);
  REQUIRE(kept->shape()[0] == 4);
  const auto examples = numbersIn<std::int64_t>(held.training, "examples", 4);
  const std::int64_t elements = kept->elements() / 4;
  std::vector<float> mean;
  for (std::int64_t i = 0; i < elements; ++i) {
    double sum = 0, total = 0;
    for (std::int64_t w = 0; w < 4; ++w) {
      const auto weight = static_cast<double>(examples[static_cast<std::size_t>(w)]);
      sum += weight * static_cast<double>(kept->data<float>()[w * elements + i]);
      total += weight;
    }
    mean.push_back(static_cast<float>(sum / total));
  }
  auto model = modelOf(rule);
  held.giveTo(model);
  const std::int64_t start = model.iteration();
  std::mutex mutex;
  std::vector<std::vector<float>> begun;
  model.control().onUpdate = [&](const Model& replica, const BatchStamp& stamp) {
    if (stamp.iteration != start) return;
    for (const StateBlock* const block : const_cast<Model&>(replica).state()) {
      if (block->kind != BlockKind::UpdaterState) continue;
      const std::lock_guard lock(mutex);
      begun.emplace_back(block->values.data<float>(), block->values.data<float>() + elements);
    }
  };
  auto data = dataFor(4);
  builderOf(model, 3, rule.options).build().fit(data, 1);
  REQUIRE(begun.size() == 3);
  for (const auto& velocity : begun)
    for (std::size_t i = 0; i < mean.size(); ++i)
      CHECK(velocity[i] == doctest::Approx(mean[i]).epsilon(1e-6));
}

TEST_CASE("a rule whose replicas differ against its word gets a warning and no checkpoint") {
  struct Wrong final : TwoHalvesStrategy {
    Wrong() : TwoHalvesStrategy(TwoHalves{}) {}
    StrategyTraits traits(int workers) const override {
      StrategyTraits traits = TwoHalvesStrategy::traits(workers);
      traits.replicasDiffer = false;
      return traits;
    }
  };
  struct Rule {
    void validate() const {}
    std::unique_ptr<Strategy> make() const { return std::make_unique<Wrong>(); }
  };
  const LogLines log;
  std::vector<Held> atMerges;
  trainOver({2, 2}, {{"wrong", Rule{}}}, nullptr, &atMerges);
  REQUIRE(atMerges.size() >= 3);
  CHECK(atMerges.front().training.empty());
  CHECK(std::ranges::count_if(log.all(), [](const std::string& line) {
          return contains(line, "warning: there is no checkpoint of the training after iteration ");
        }) == 1);
}

TEST_CASE("a checkpoint whose state of the workers has another size is refused on all nodes") {
  const ResumableRule rule{{"two halves", TwoHalves{}}};
  std::vector<Held> atMerges;
  trainOver({2, 1}, rule, nullptr, &atMerges);
  for (const auto& shape : {Shape{2, kWidth - 1}, Shape{3, kWidth}, Shape{2}}) {
    CAPTURE(shape);
    Held damaged = atMerges.at(1);
    const auto sent = std::ranges::find(damaged.training, "of workers.sent", &NamedValues::name);
    REQUIRE(sent != damaged.training.end());
    sent->values = Tensor::zeros(shape);
    VirtualNetwork network(2);
    const auto problems = onNodes(network, 30s, [&](const Nodes& here) {
      auto model = modelOf(rule);
      damaged.giveTo(model);
      auto data = dataFor(2);
      builderOf(model, 1, rule.options).nodes(here).build().fit(data, 1);
    });
    for (const auto& problem : problems) {
      CAPTURE(problem);
      CHECK(problem.starts_with("training state: \"sent\" of the workers is "));
    }
  }
}

TEST_CASE("a node that is lost while node 0 collects state is named, and no listener is blamed") {
  for (const AnyStrategy& rule :
       {AnyStrategy(Gossip{.graph = GossipGraph::Ring, .frequency = 2}),
        AnyStrategy(Averaging{.frequency = 2, .updaterState = UpdaterState::Keep}),
        AnyStrategy(SharedGradients{}), AnyStrategy(OuterAveraging{.frequency = 2, .codec = Int8Codec{}})}) {
    CAPTURE(rule.make()->describe());
    VirtualNetwork network(2);
    const auto saving = onMerge([&](const MergeEvent& event) {
      if (event.iteration == 4) network.silence(1);
      event.trainer.trainingState();
    });
    const auto problems = onNodes(network, 1s, [&](const Nodes& here) {
      auto model = modelOf({{"", rule}});
      auto data = dataFor(4);
      builderOf(model, 2, rule).nodes(here).listeners({saving}).build().fit(data, 2);
    });
    CAPTURE(problems[0]);
    CHECK(contains(problems[0], "the training on 2 nodes has failed after iteration 4: "));
    CHECK(contains(problems[0], "node 1 (virtual1) "));
    CHECK_FALSE(problems[1].empty());
  }
}
