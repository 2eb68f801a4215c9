// Trainings over nodes that are threads of this process, resumed from the content of checkpoints.
// `resume_test` does the same on one node.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/io/checkpoint_files.h"
#include "muster/core/io/model_file.h"
#include "muster/core/listeners/checkpoint_listener.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/parallel/on_nodes.h"
#include "tests/parallel/resumable.h"
#include "tests/support/log_lines.h"
#include "tests/support/small_examples.h"
#include "tests/support/state_bits.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/toy_data.h"
#include "tests/support/toy_model.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

using Bits = std::vector<std::byte>;

constexpr std::int64_t kWidth = 40, kEpochs = 2;

ToyModel modelOf(const ResumableRule& rule) {
  return ToyModel({.size = kWidth, .training = {.updater = rule.updater, .l2 = 0.01}, .statistics = true});
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
  End end{.models = std::vector<Bits>(static_cast<std::size_t>(places.nodes)), .held = {}};
  VirtualNetwork network(places.nodes);
  const auto problems = onNodes(network, 30s, [&](const Nodes& here) {
    auto model = modelOf(rule);
    if (from) from->giveTo(model);
    auto data = dataFor(places.nodes * places.workers);
    const auto holder = std::make_shared<Holder>(atMerges);
    builderOf(model, places.workers, rule.options)
        .nodes(here)
        .listeners(listening ? Listeners{holder} : Listeners())
        .build()
        .fit(data, kEpochs - model.epoch());
    end.models[static_cast<std::size_t>(here.node())] = stateBits(model);
    if (here.node() == 0) end.held = holder->atEnd();
  });
  for (const auto& problem : problems) CHECK(problem == "");
  return end;
}

/// As `trainOver`, with the workers of all nodes in one process.
End trainTogether(const Places& places, const ResumableRule& rule, const Held* from,
                  std::vector<Held>* atMerges = nullptr) {
  auto model = modelOf(rule);
  if (from) from->giveTo(model);
  const int workers = places.nodes * places.workers;
  auto data = dataFor(workers);
  const auto holder = std::make_shared<Holder>(atMerges);
  builderOf(model, workers, rule.options)
      .groups(places.nodes)
      .listeners({holder})
      .build()
      .fit(data, kEpochs - model.epoch());
  return {.models = {stateBits(model)}, .held = holder->atEnd()};
}

/// Rules that run over so many nodes, and variants with other state for a checkpoint.
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
  std::erase_if(rules, [&](const ResumableRule& rule) {
    return !runsOverNodes(rule.options, places.nodes * places.workers);
  });
  return rules;
}

}  // namespace

TEST_CASE(
    "resumed over nodes at any merge, with any rule, the training ends with the bits of the whole one") {
  const LogLines log;
  for (const Places places : {Places{2, 1}, Places{2, 2}, Places{3, 1}})
    for (const ResumableRule& rule : rulesOver(places)) {
      CAPTURE(rule.name);
      CAPTURE(places.nodes);
      CAPTURE(places.workers);
      std::vector<Held> atMerges;
      const End whole = trainOver(places, rule, nullptr, &atMerges);
      REQUIRE(atMerges.size() >= 3);
      // Every merge over two workers; else one within an epoch and one at its end.
      const std::size_t step =
          places.nodes * places.workers == 2 ? 1 : std::max<std::size_t>(1, atMerges.size() / 4);
      for (std::size_t m = 0; m + 1 < atMerges.size(); m += step) {
        CAPTURE(m);
        REQUIRE_FALSE(atMerges[m].training.empty());
        const End resumed = trainOver(places, rule, &atMerges[m]);
        CHECK(whole.held.difference(resumed.held) == "");
        CHECK(whole.models == resumed.models);
      }
    }
  CHECK(std::ranges::none_of(log.all(), [](const auto& line) { return contains(line, "no checkpoint"); }));
}

TEST_CASE("checkpoints over nodes change no bit, and land no merge early") {
  for (const Places places : {Places{2, 1}, Places{2, 2}})
    for (const ResumableRule& rule : rulesOver(places)) {
      CAPTURE(rule.name);
      CAPTURE(places.workers);
      std::vector<Held> atMerges;
      const End watched = trainOver(places, rule, nullptr, &atMerges);
      CHECK(watched.models == trainOver(places, rule, nullptr, nullptr, /*listening=*/false).models);
    }
}

TEST_CASE("a checkpoint over nodes is resumed in one process in groups, and the other way round") {
  constexpr Places kPlaces{2, 2};
  for (const ResumableRule& rule : rulesOver(kPlaces)) {
    CAPTURE(rule.name);
    std::vector<Held> overNodes, together;
    const End whole = trainOver(kPlaces, rule, nullptr, &overNodes);
    trainTogether(kPlaces, rule, nullptr, &together);
    REQUIRE(overNodes.size() == together.size());
    const std::size_t m = overNodes.size() / 3;
    CHECK(trainTogether(kPlaces, rule, &overNodes[m]).models.front() == whole.models.front());
    CHECK(trainOver(kPlaces, rule, &together[m]).models == whole.models);
  }
}
