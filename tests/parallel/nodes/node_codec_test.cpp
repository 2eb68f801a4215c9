// Codecs, and the bytes of other rules, over nodes that are threads of this process.

#include "tests/parallel/coded_rules.h"
#include "tests/parallel/on_nodes.h"
#include "tests/parallel/rule_wrapper.h"
#include "tests/support/on_merge.h"
#include "tests/support/reference_model.h"
#include "tests/support/small_examples.h"
#include "tests/support/whole.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kCodedWidth = 704;  // no padding; three chunks of 256, the last one short

ToyModel toy() {
  return ToyModel({.size = kCodedWidth, .training = {.updater = Sgd{.learningRate = 0.125}}});
}

}  // namespace

TEST_CASE("every codec of every rule over nodes has the bits of one process in groups") {
  // A network has matrices, for which PowerSGD sends factors.
  const auto network = [] {
    return MultiLayerNetwork(networkOf({.training = {.updater = Sgd{.learningRate = 0.25}}}));
  };
  const auto fit = [](ParallelWrapper& wrapper, Model&) {
    SmallExamples data(31);
    wrapper.fit(data, 3);
  };
  for (const Codec& codec : {Codec(Bf16Codec{}), Codec(Int8Codec{}), Codec(E3M0Codec{}),
                             Codec(TopKCodec{.share = 0.1}), Codec(PowerSgdCodec{.rank = 1})})
    for (const CodedRule& rule : codedRules())
      for (const Places places : {Places{2, 2}, Places{3, 1}})
        if (rule.accepts(codec) && runsOverNodes(rule.with(codec), places.all()) &&
            (whole() || places.nodes == 2))
          checkLikeOneProcess(rule.with(codec), places, network, fit);
}

TEST_CASE("nodes send the bytes that listeners are told") {
  constexpr std::int64_t kLong = 1 << 16, kFloats = 4 * kLong;
  /// @param told  bytes of a merge.  @param least  what each node sends in four rounds; or [node], 0: any.
  /// @param fewer, more  how far the messages about rounds may change that.
  const auto check = [&](const Places& places, const AnyStrategy& rule, std::int64_t told,
                         const std::vector<std::int64_t>& least, int fewer = 0, int more = 20'000) {
    CAPTURE(rule.make()->describe());
    CAPTURE(places);
    VirtualNetwork network(places.nodes);
    std::vector<std::int64_t> merges;
    const auto bytes = onMerge([&](const MergeEvent& event) {
      if (event.bytes > 0) merges.push_back(event.bytes);
    });
    onAll(network, [&](const Nodes& here) {
      ToyModel model({.size = kLong, .training = {.updater = Sgd{.learningRate = 0.125}}});
      ToyIterator share(randomBatches(5, 4 * places.all(), 1, kLong), kLong);
      builderOf(model, places.workers, rule).nodes(here).listeners({bytes}).build().fit(share, 1);
    });
    REQUIRE(merges.size() >= 2);
    merges.resize(std::min<std::size_t>(3, merges.size()));  // the last one may send residuals, too
    CHECK(merges == std::vector(merges.size(), told));
    for (int n = 0; n < places.nodes; ++n) {
      const auto sent = least.size() == 1 ? least[0] : least[static_cast<std::size_t>(n)];
      if (sent == 0) continue;
      CHECK(network.bytesSent(n) >= sent - fewer);
      CHECK(network.bytesSent(n) < sent + more);
    }
  };
  for (const Places places : {Places{2, 2}, Places{3, 1}}) {
    const auto ofCodec = [&](const AnyStrategy& rule, std::int64_t coded, int merges = 4) {
      check(places, rule, coded,
            {(places.nodes - 1) * (merges * coded + kFloats)});  // at the end the residual
    };
    ofCodec(Averaging{.codec = Bf16Codec{}}, 2 * kLong);
    ofCodec(Averaging{.codec = Int8Codec{}}, kLong + kFloats / 256);
    ofCodec(Averaging{.codec = E3M0Codec{}}, kLong / 2 + kLong / 256);
    ofCodec(Averaging{.codec = TopKCodec{.share = 1.0 / 256}}, 8 * kLong / 256);
    ofCodec(StreamingOuter{.frequency = 2, .fragments = 1, .delay = 1, .codec = Int8Codec{}},
            kLong + kFloats / 256, 3);
  }
  for (const Places places : {Places{2, 1}, Places{3, 1}, Places{2, 2}}) {
    // A map of all elements each iteration; the residuals at the end in full.
    const std::int64_t message = 16 + kLong / 4, others = places.nodes - 1;
    const std::int64_t width = places.workers > 1 ? 8 : 4;  // sums of several workers are in float64
    const std::int64_t residual = others * kLong * (width + 8) / places.nodes;  // there, and the mean back
    check(places, SharedGradients{.thresholdAlgorithm = FixedThreshold{.threshold = 1e-4}}, message,
          {4 * places.workers * others * message + residual}, 4096);
  }
  // Worker 1 sends its replica and half of the result, worker 0 half of its sum and half of the result.
  check({2, 1}, Adasum{.frequency = 1}, kFloats, {4 * kFloats, 6 * kFloats});
  // Its sum once; its quarter of the result to three nodes.
  check({4, 1}, Adasum{.frequency = 1}, kFloats, {0, 7 * kFloats, 7 * kFloats, 7 * kFloats}, 0, 30'000);
}

TEST_CASE("after a fit() the model holds the residuals, with which other wrappers and nodes continue") {
  const OuterAveraging rule{
      .frequency = 2, .rate = 0.7, .momentum = 0.5, .nesterov = true, .codec = E3M0Codec{}};
  const auto batches = randomBatches(5, 29, 3, kCodedWidth, /*ragged=*/true);  // the last round is partial
  const auto residualOf = [](Model& model) {
    const auto& all = model.strategyState();
    const auto found = std::ranges::find(all, "coding residual", &NamedValues::name);
    REQUIRE(found != all.end());
    return std::vector<float>(found->values.data<float>(),
                              found->values.data<float>() + found->values.elements());
  };
  auto whole = toy(), first = toy();
  ToyIterator data(batches, kCodedWidth);
  builderOf(whole, 4, rule).groups(2).build().fit(data, 3);
  builderOf(first, 4, rule).groups(2).build().fit(data, 2);
  const auto residual = residualOf(first);
  CHECK(residual.size() == 2 * static_cast<std::size_t>(kCodedWidth));
  for (const auto& bits : fromAll(2, [&](const Nodes& here) {
         auto model = toy(), next = toy();
         ToyIterator share(batches, kCodedWidth);
         builderOf(model, 2, rule).nodes(here).build().fit(share, 2);
         CHECK(residualOf(model) == residual);
         next.copyStateFrom(model);
         builderOf(next, 2, rule).nodes(here).build().fit(share, 1);
         return stateBits(next);
       }))
    CHECK(bits == stateBits(whole));
  const auto others = fromAll(3, [&](const Nodes& here) {
    auto model = toy();
    model.copyStateFrom(first);
    ToyIterator share(batches, kCodedWidth);
    builderOf(model, 1, rule).nodes(here).build().fit(share, 1);
    CHECK(model.epoch() == 3);
    return stateBits(model);
  });
  for (const auto& bits : others) CHECK((bits == others[0] && bits != stateBits(whole)));
}
