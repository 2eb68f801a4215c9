// Codecs with every rule that supports them.
#include "muster/parallel/strategies/codec.h"

#include "muster/core/data/in_memory.h"
#include "tests/parallel/coded_rules.h"
#include "tests/parallel/rule_wrapper.h"
#include "tests/support/on_merge.h"
#include "tests/support/reference_model.h"
#include "tests/support/small_examples.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kCodedWidth = 704;  // no padding; three chunks of 256, the last one short

ToyModel toy() {
  return ToyModel({.size = kCodedWidth, .training = {.updater = Sgd{.learningRate = 0.125}}});
}

std::vector<std::byte> train(const AnyStrategy& rule, int devices = 0) {
  ToyModel model({.size = kCodedWidth, .training = {.updater = Sgd{.learningRate = 0.125}}, .split = true});
  ToyIterator data(randomBatches(5, 33, 3, kCodedWidth, /*ragged=*/true), kCodedWidth);
  wrapperOf(model, 4, rule, devices).fit(data, 3);
  return stateBits(model);
}

}  // namespace

TEST_CASE("TopK with all elements equals no codec, bit for bit") {
  for (const CodedRule& rule : codedRules()) {
    CAPTURE(rule.name);
    // On a graph of few neighbours public copies follow the replicas: against NumPy.
    if (rule.name == "gossip" || rule.name == "gossip on a ring") continue;
    const AnyStrategy whole = rule.with({}), coded = rule.with(TopKCodec{.share = 1});
    CHECK(train(coded) == train(whole));
    CHECK(train(coded, 3) == train(whole, 3));
    if (rule.name != "hierarchical averaging")  // a vector is sent uncoded
      CHECK(train(rule.with(PowerSgdCodec{})) == train(whole));
  }
}

TEST_CASE("matrices are sent as products, which at full rank equal no codec, with the same bits everywhere") {
  std::int64_t sent = 0;
  const auto bytes = onMerge([&](const MergeEvent& event) { sent = event.bytes; });
  const auto network = [] {
    auto made =
        std::make_unique<MultiLayerNetwork>(networkOf({.training = {.updater = Sgd{.learningRate = 0.25}}}));
    made->init();
    return made;
  };
  const auto trained = [&](const AnyStrategy& rule, std::vector<int> calls = {3}, int devices = 0) {
    SmallExamples data(31);
    auto model = network();
    for (const int epochs : calls) {
      auto next = network();
      next->copyStateFrom(*model);
      wrapperOf(*next, 3, rule, devices, {bytes}).fit(data, epochs);
      model = std::move(next);
    }
    return stateBits(*model);
  };
  const auto outer = [](const Codec& codec) {
    return OuterAveraging{.frequency = 2, .rate = 0.7, .momentum = 0.5, .nesterov = true, .codec = codec};
  };
  const auto whole = trained(outer(WholeReplicas{}));
  CHECK(sent == 4 * 96);
  CHECK(trained(outer(PowerSgdCodec{.rank = 32})) == whole);
  CHECK(sent == 4 * 96);
  for (const std::int64_t rank : {1, 2}) {
    CHECK(trained(outer(PowerSgdCodec{.rank = rank})) != whole);
    // Factors of [5, 6] and [4, 5]; biases and padding uncoded.
    CHECK(sent == 4 * (rank * (5 + 6 + 4 + 5) + 96 - 5 * 6 - 4 * 5));
  }
  const StreamingOuter fragments{.frequency = 4,
                                 .fragments = 2,
                                 .delay = 1,
                                 .rate = 0.7,
                                 .momentum = 0.5,
                                 .codec = PowerSgdCodec{.rank = 1}};
  for (const AnyStrategy& rule : {AnyStrategy(outer(PowerSgdCodec{.rank = 2})), AnyStrategy(fragments)}) {
    const auto coded = trained(rule);
    CHECK(trained(rule) == coded);
    CHECK(trained(rule, {3}, 1) == coded);
  }
  CHECK(trained(outer(PowerSgdCodec{.rank = 2}), {1, 2}) ==
        trained(outer(PowerSgdCodec{.rank = 2})));  // resumed
}

TEST_CASE("a merge counts the bytes that a network would transfer") {
  const auto bytesOf = [](auto options, int workers) {
    std::vector<std::int64_t> sent;
    const auto bytes = onMerge([&](const MergeEvent& event) { sent.push_back(event.bytes); });
    auto model = toy();
    ToyIterator data(randomBatches(5, 2 * workers, 1, kCodedWidth), kCodedWidth);
    wrapperOf(model, workers, options, 0, {bytes}).fit(data);
    return sent.front();
  };
  CHECK(bytesOf(Averaging{}, 2) == 4 * kCodedWidth);
  CHECK(bytesOf(Averaging{.codec = Bf16Codec{}}, 2) == 2 * kCodedWidth);
  CHECK(bytesOf(OuterAveraging{.codec = Int8Codec{}}, 2) == kCodedWidth + 3 * 4);
  CHECK(bytesOf(ElasticAveraging{.frequency = 1, .codec = E3M0Codec{}}, 2) == kCodedWidth / 2 + 3);
  CHECK(bytesOf(StreamingOuter{.frequency = 1, .fragments = 1, .delay = 0, .codec = TopKCodec{.share = 0.01}},
                2) == 8 * 8);
  CHECK(bytesOf(Averaging{.codec = Bf16Codec{}}, 1) == 0);
  CHECK(bytesOf(SynchronousGradients{}, 2) == 4 * kCodedWidth);
  CHECK(bytesOf(Adasum{.frequency = 1}, 2) == 4 * kCodedWidth);
  CHECK(bytesOf(Adasum{.frequency = 1, .codec = Int8Codec{}}, 2) == kCodedWidth + 3 * 4);
  // A group of two counts like a merge; on a ring of four, each worker sends to two.
  const auto groups = [](const Codec& codec) {
    return HierarchicalAveraging{.levels = {{.period = 1, .group = 2}, {.period = 4}}, .codec = codec};
  };
  CHECK(bytesOf(groups({}), 4) == 4 * kCodedWidth);
  CHECK(bytesOf(groups(Bf16Codec{}), 4) == 2 * kCodedWidth);
  CHECK(bytesOf(Gossip{.graph = GossipGraph::Ring}, 4) == 2 * 4 * kCodedWidth);
  CHECK(bytesOf(Gossip{.graph = GossipGraph::Ring, .codec = Bf16Codec{}}, 4) == 2 * 2 * kCodedWidth);
  CHECK(bytesOf(Gossip{.graph = GossipGraph::Complete, .codec = Bf16Codec{}}, 4) == 2 * kCodedWidth);
  // Parameters of 20, 4, 12 and 3 elements, each padded to a multiple of 16: a tenth of 39 are 4, all are 39.
  const auto bytesOfSmallTensors = [](double share) {
    MultiLayerNetwork network({.inputShape = {5}, .layers = {Dense{.units = 4}, Output{.classes = 3}}});
    InMemoryDataSetIterator data(Tensor::zeros({4, 5}), Tensor::zeros({4}, DType::Int64), 2);
    std::vector<std::int64_t> sent;
    const auto bytes = onMerge([&](const MergeEvent& event) { sent.push_back(event.bytes); });
    wrapperOf(network, 2, Averaging{.codec = TopKCodec{.share = share}}, 0, {bytes}).fit(data);
    return sent.front();
  };
  const std::int64_t padded = 32 + 16 + 16 + 16;
  CHECK(bytesOfSmallTensors(0.1) == 8 * 4);
  CHECK(bytesOfSmallTensors(0.5) == 8 * 20);
  CHECK(bytesOfSmallTensors(1) == 4 * padded);  // the block as it is
}

TEST_CASE("programs may compare codecs and landings") {
  CHECK(Codec{} == Codec{WholeReplicas{}});
  CHECK(Codec{Bf16Codec{}} != Codec{Int8Codec{}});
  CHECK(Codec{E3M0Codec{}} == Codec{E3M0Codec{}});
  CHECK(Codec{TopKCodec{.share = 0.1}} != Codec{TopKCodec{}});
  CHECK(Codec{PowerSgdCodec{.rank = 3}} != Codec{PowerSgdCodec{}});
  using Landing = decltype(OverlappedAveraging::landing);
  CHECK(Landing{OverlappedAveraging::Eager{}} != Landing{OverlappedAveraging::Delta{}});
  CHECK(Landing{OverlappedAveraging::Pull{.strength = 0.5}} != Landing{OverlappedAveraging::Pull{}});
}

TEST_CASE("the plan says what is sent, and codecs that a rule cannot use are refused") {
  auto model = toy();
  CHECK(wrapperOf(model, 2, Averaging{.frequency = 3, .codec = Int8Codec{}}).plan() ==
        "2 workers on cpu (1 thread each, not pinned), outer averaging every 3 iterations (rate 1, momentum "
        "0), sent as int8 (which costs time, and saves bytes over a network only): 6 batches per round");
  const auto refusal = [](auto options) { return thrown<InvalidArgument>([&] { options.validate(); }); };
  CHECK(refusal(Gossip{.codec = Int8Codec{}}) ==
        "gossip: codec cannot be given with the graph exponential: in this graph a worker's receivers "
        "change, so a receiver does not know the base of the difference; use ring or complete");
  CHECK(refusal(Gossip{.graph = GossipGraph::Ring, .codec = PowerSgdCodec{}}) ==
        "gossip: codec cannot be power-sgd, whose factors are means over all workers, where only some are "
        "merged");
  CHECK(refusal(HierarchicalAveraging{.levels = {{1, 2}, {2, 0}}, .codec = PowerSgdCodec{}})
            .starts_with("hierarchical averaging: codec cannot be power-sgd"));
  CHECK(refusal(Averaging{.measureDivergence = true, .codec = Bf16Codec{}}) ==
        "averaging: measureDivergence cannot be given with a codec");
}
