// Trainings over nodes that are threads of this process, resumed from the content of checkpoints.
// `resume_test` does the same on one node.

#include "muster/core/io/checkpoint_files.h"
#include "muster/core/io/model_file.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/parallel/mixing_rules.h"
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
using Each = std::vector<AnyStrategy>;

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
/// which reads a checkpoint at each merge if there is `atMerges`.  @param devices  pretended ones of each
/// node.
End trainOver(const Places& places, const ResumableRule& rule, const Held* from = nullptr,
              std::vector<Held>* atMerges = nullptr, bool listening = true, int devices = 0) {
  End end;
  end.models = fromAll(places.nodes, [&](const Nodes& here) {
    auto model = modelOf(rule);
    if (from) from->giveTo(model);
    auto data = dataFor(places.all());
    const auto holder = std::make_shared<Holder>(atMerges);
    builderOf(model, places.workers, rule.options)
        .internals({.pretendedDevices = devices})
        .nodes(here)
        .listeners(listening ? Listeners{holder} : Listeners())
        .build()
        .fit(data, kEpochs - model.epoch());
    if (here.node() == 0) end.held = holder->atEnd();
    return stateBits(model);
  });
  return end;
}

/// Trains with the workers of all nodes in one process. @return its model
Bits trainTogether(const Places& places, const ResumableRule& rule, const Held* from,
                   std::vector<Held>* atMerges = nullptr) {
  auto model = modelOf(rule);
  if (from) from->giveTo(model);
  auto data = dataFor(places.all());
  builderOf(model, places.all(), rule.options)
      .groups(places.nodes)
      .listeners({std::make_shared<Holder>(atMerges)})
      .build()
      .fit(data, kEpochs - model.epoch());
  return stateBits(model);
}

/// What checkpoints hold at each merge of a training over nodes.
std::vector<Held> mergesOver(const Places& places, const ResumableRule& rule) {
  std::vector<Held> atMerges;
  trainOver(places, rule, nullptr, &atMerges);
  REQUIRE(atMerges.size() >= 3);
  return atMerges;
}

/// Without the updater's state if workers keep theirs, of which node 0 alone forms no mean.
Held comparable(const ResumableRule& rule, Held held) {
  if (rule.options.make()->traits(1).updaterState == UpdaterState::Keep) {
    std::erase_if(held.state,
                  [](const NamedValues& v) { return v.name == "velocity" || v.name.ends_with("Moment"); });
    std::erase_if(held.training, [](const NamedValues& v) {
      return v.name == "fingerprint" || v.name.starts_with("mean.");
    });
  }
  return held;
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

TEST_CASE(
    "resumed at any merge, over nodes, on devices or in one process, any rule has the bits of the whole") {
  const LogLines log;
  std::vector<Places> every = {{2, 1}, {2, 2}};
  if (whole()) every.push_back({3, 1});
  for (const Places& places : every)
    for (const ResumableRule& rule : rulesOver(places)) {
      CAPTURE(rule.name);
      CAPTURE(places);
      std::vector<Held> atMerges, onDevices, together;
      const End whole = trainOver(places, rule, nullptr, &atMerges);
      CHECK(whole.models == trainOver(places, rule, nullptr, nullptr, /*listening=*/false).models);
      REQUIRE(atMerges.size() >= 3);
      CHECK(whole.held.difference(trainOver(places, rule, nullptr, &onDevices, true, 2).held) == "");
      REQUIRE(onDevices.size() == atMerges.size());
      for (std::size_t m = 0; m < atMerges.size(); ++m) CHECK(onDevices[m].difference(atMerges[m]) == "");
      // One within an epoch and one at its end, or every merge over two workers.
      const std::size_t step =
          test::whole() && places.all() == 2 ? 1 : std::max<std::size_t>(1, atMerges.size() / 4);
      for (std::size_t m = 0; m + 1 < atMerges.size(); m += step) {
        CAPTURE(m);
        REQUIRE_FALSE(atMerges[m].training.empty());
        const End resumed = trainOver(places, rule, &atMerges[m], nullptr, true, m % 2 == 0 ? 2 : 0);
        CHECK(whole.held.difference(resumed.held) == "");
        CHECK(whole.models == resumed.models);
      }
      trainTogether(places, rule, nullptr, &together);
      REQUIRE(atMerges.size() == together.size());
      // Other rules may hold the state of senders and of workers in another order.
      if (rule.options.as<Gossip>() || rule.options.as<HierarchicalAveraging>())
        for (std::size_t m = 0; m < atMerges.size(); ++m)
          CHECK(comparable(rule, atMerges[m]).difference(comparable(rule, together[m])) == "");
      const std::size_t m = atMerges.size() / 3;
      CHECK(trainTogether(places, rule, &atMerges[m]) == whole.models.front());
      CHECK(trainOver(places, rule, &together[m]).models == whole.models);
    }
  CHECK(std::ranges::none_of(log.all(), [](const auto& line) { return contains(line, "no checkpoint"); }));
}

TEST_CASE("a training of a rule that mixes replicas is resumed after a stop, to the bits of one process") {
  for (const Places places : {Places{2, 2}, Places{3, 1}})
    for (const AnyStrategy& options : mixingRules(places.all())) {
      const ResumableRule rule{{options.make()->describe(), options}};
      CAPTURE(rule.name);
      CAPTURE(places);
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
      for (const Bits& bits : resumed.models) CHECK(bits == trainTogether(places, rule, &stopped));
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
       Each{Averaging{.frequency = 2, .updaterState = UpdaterState::Keep},
            StreamingOuter{.frequency = 6, .fragments = 2, .delay = 2, .codec = Int8Codec{}}}) {
    CAPTURE(rule.make()->describe());
    const TemporaryDirectory directory;
    const std::string whole = trainFiles(rule, directory / "whole");
    auto files = checkpointsIn(directory / "whole", "checkpoint");
    REQUIRE(files.size() >= 4);
    files.pop_back();
    for (std::size_t i = 0; i < files.size(); i += 1 + files.size() / 5) {
      CAPTURE(files[i].path.filename());
      CHECK((trainFiles(rule, directory / fmt::format("from{}", i), files[i].path) == whole));
    }
  }
}

TEST_CASE("nodes that begin with different checkpoints are refused, naming the places and the files") {
  const TemporaryDirectory directory;
  const AnyStrategy rule = Averaging{.frequency = 2};
  trainFiles(rule, directory / "c");
  const auto last = checkpointsIn(directory / "c", "checkpoint").back();
  std::filesystem::copy_file(last.path, directory / "copy");
  /// @return what both nodes say, of which the second one begins with this file.
  const auto refusal = [&](const std::filesystem::path& second) {
    VirtualNetwork network(2);
    const auto problems = onNodes(network, 30s, [&](const Nodes& here) {
      MultiLayerNetwork model(MultiLayerNetwork::load(last.path)->configuration());
      model.init();
      if (here.node() == 0) loadState(model, last.path);
      if (here.node() == 1 && !second.empty()) loadState(model, second);
      SmallExamples data(21);
      builderOf(model, 1, rule).nodes(here).build().fit(data, 3 - model.epoch());
    });
    CHECK(problems[0] == problems[1]);
    return problems[0];
  };
  CHECK(refusal({}) ==
        fmt::format("nodes: node 0 (virtual0) and node 1 (virtual1) differ in where the training begins, "
                    "which must be the same on all nodes: node 0 (virtual0) begins at batch 1 of epoch {} "
                    "(iteration {}) and loaded its model from {}, and node 1 (virtual1) begins at batch 1 of "
                    "epoch 1 (iteration 0) with a new model; load the same checkpoint on all nodes, or begin "
                    "a new training on all",
                    last.place.epoch + 1, MultiLayerNetwork::load(last.path)->iteration(),
                    last.path.string()));
  CHECK(refusal(directory / "copy") == "");  // the same checkpoint on two disks
}

TEST_CASE("with another number of nodes each begins with the mean of the residuals") {
  const ResumableRule rule{{"int8", OuterAveraging{.frequency = 2, .codec = Int8Codec{}}}};
  const auto held = mergesOver({2, 2}, rule);
  for (const Places places : {Places{4, 1}, Places{1, 4}}) {
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
  const Held held = mergesOver({2, 2}, rule).at(1);
  const Tensor* const kept = findValues(held.training, "replicas.velocity");
  REQUIRE(kept != nullptr);
  REQUIRE(kept->shape()[0] == 4);
  const auto examples = numbersIn<std::int64_t>(held.training, "examples", 4);
  const std::int64_t elements = kept->elements() / 4;
  auto model = modelOf(rule);
  held.giveTo(model);
  std::atomic<int> begun = 0;
  model.control().onUpdate = [&, start = model.iteration()](const Model& replica, const BatchStamp& stamp) {
    if (stamp.iteration != start) return;
    ++begun;
    const auto velocity = const_cast<Model&>(replica).updaterState().front().values.span<float>();
    for (std::int64_t i = 0; i < elements; ++i) {
      double sum = 0, total = 0;
      for (std::int64_t w = 0; w < 4; ++w) {
        const auto weight = static_cast<double>(examples[static_cast<std::size_t>(w)]);
        sum += weight * static_cast<double>(kept->data<float>()[w * elements + i]);
        total += weight;
      }
      CHECK(velocity[static_cast<std::size_t>(i)] == doctest::Approx(sum / total).epsilon(1e-6));
    }
  };
  auto data = dataFor(4);
  builderOf(model, 3, rule.options).build().fit(data, 1);
  CHECK(begun == 3);
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
  CHECK(mergesOver({2, 2}, {{"wrong", Rule{}}}).front().training.empty());
  CHECK(std::ranges::count_if(log.all(), [](const std::string& line) {
          return contains(line, "warning: there is no checkpoint of the training after iteration ");
        }) == 1);
}

TEST_CASE("a checkpoint whose state of the workers has another size is refused on all nodes") {
  const ResumableRule rule{{"two halves", TwoHalves{}}};
  const auto atMerges = mergesOver({2, 1}, rule);
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
       Each{Gossip{.graph = GossipGraph::Ring, .frequency = 2},
            Averaging{.frequency = 2, .updaterState = UpdaterState::Keep}, SharedGradients{},
            OuterAveraging{.frequency = 2, .codec = Int8Codec{}}}) {
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
