// Codecs with every rule that supports them.
#include "muster/parallel/strategies/codec.h"

#include "muster/core/data/in_memory.h"
#include "tests/parallel/coded_rules.h"
#include "tests/parallel/rule_wrapper.h"
#include "tests/support/on_merge.h"
#include "tests/support/recording_listener.h"
#include "tests/support/reference_model.h"
#include "tests/support/rounding.h"
#include "tests/support/small_examples.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kWidth = 704;  // no padding; three chunks of 256, the last one short

ToyModel toy(double learningRate = 0.125) {
  return ToyModel({.size = kWidth, .training = {.updater = Sgd{.learningRate = learningRate}}});
}

std::vector<std::byte> train(const AnyStrategy& rule, int devices = 0) {
  ToyModel model({.size = kWidth, .training = {.updater = Sgd{.learningRate = 0.125}}, .split = true});
  ToyIterator data(randomBatches(5, 33, 3, kWidth, /*ragged=*/true), kWidth);
  wrapperOf(model, 4, rule, devices).fit(data, 3);
  return stateBits(model);
}

}  // namespace

TEST_CASE("TopK with all elements equals no codec, bit for bit") {
  for (const CodedRule& rule : codedRules()) {
    CAPTURE(rule.name);
    const AnyStrategy whole = rule.with({}), coded = rule.with(TopKCodec{.share = 1});
    if (rule.name == "gossip" || rule.name == "gossip on a ring") continue;  // the next case has rings
    CHECK(train(coded) == train(whole));
    CHECK(train(coded, 3) == train(whole, 3));
    if (rule.name != "hierarchical averaging")  // a vector is sent uncoded
      CHECK(train(rule.with(PowerSgdCodec{})) == train(whole));
  }
}

TEST_CASE("on a ring the public copies follow the replicas, and equal them to rounding if all is sent") {
  const auto trained = [](const Codec& codec) {
    auto model = toy();
    ToyIterator data(randomBatches(5, 33, 3, kWidth, /*ragged=*/true), kWidth);
    wrapperOf(model, 4, Gossip{.graph = GossipGraph::Ring, .codec = codec}).fit(data, 2);
    return model.parameters();
  };
  const auto whole = trained({}), coded = trained(TopKCodec{.share = 1}),
             some = trained(TopKCodec{.share = 0.2});
  // Replicas have the same bits; the merged copy is their mean, of numbers below 4, summed in another order.
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CHECK(std::abs(whole[i]) < 4);
    CHECK(std::abs(whole[i] - coded[i]) <= roundings(2, 4));
  }
  CHECK(some != whole);
}

TEST_CASE("moves that the codec can represent equal no codec, bit for bit") {
  // Batches of one row and steps of rate 1: worker 0 moves to a, worker 1 to b, then both to the mean.
  const auto trained = [](Averaging options, float scale) {
    auto model = toy(1);
    std::vector<ToyBatch> batches(2);
    for (std::int64_t i = 0; i < kWidth; ++i) {
      const auto octave = static_cast<float>(1 << (i % 7));
      batches[0].values.push_back(scale * octave);
      batches[1].values.push_back(-scale * octave * (i % 7 == 6 ? 1 : 2));
    }
    ToyIterator data(batches, kWidth);
    wrapperOf(model, 2, options).fit(data);
    return model.parameters();
  };
  for (const float scale : {1.0f, 0.25f})
    for (const Codec& codec : {Codec(Bf16Codec{}), Codec(E3M0Codec{})})
      CHECK(trained({.codec = codec}, scale) == trained({}, scale));
  CHECK(trained({.codec = Int8Codec{}}, 127.0f / 64) != trained({}, 127.0f / 64));
}

TEST_CASE("over a training the sent moves and the residual add up to all moves") {
  // One worker on integers, batches of one row, steps of rate 1: each move is the batch minus the merged
  // copy. With rate 1 the merged copy is the sum sent so far; with error feedback, merged copy plus residual
  // is the last batch.
  for (const Codec& codec : {Codec(Bf16Codec{}), Codec(E3M0Codec{}), Codec(TopKCodec{.share = 0.01})}) {
    auto model = toy(1);
    std::vector<ToyBatch> batches(9);
    for (std::size_t b = 0; b < batches.size(); ++b)
      for (std::int64_t i = 0; i < kWidth; ++i)
        batches[b].values.push_back(static_cast<float>((37 * i + 101 * static_cast<std::int64_t>(b)) % 4096));
    ToyIterator data(batches, kWidth);
    wrapperOf(model, 1, Averaging{.codec = codec}).fit(data);
    std::vector<float> residual;
    for (const auto& saved : model.strategyState())
      if (saved.name == "coding residual") residual = floatsOf(saved.values);
    REQUIRE(residual.size() == static_cast<std::size_t>(kWidth));
    // sum of moves = sum_b (x_b - W_b-1), W_b - W_b-1 = sent_b, so sum of moves = sent + residual.
    const auto merged = model.parameters();
    CHECK(merged != batches.back().values);
    // Replay in integers: the residual is the sum of the moves minus the merged copy.
    bool good = true;
    for (std::size_t i = 0; i < residual.size(); ++i) {
      double moves = 0, before = 0;
      for (const auto& step : model.control().steps()) {
        before = static_cast<double>(step.before[i]);
        moves +=
            static_cast<double>(batches[static_cast<std::size_t>(step.stamp.sequence)].values[i]) - before;
      }
      good = good && static_cast<double>(merged[i]) + static_cast<double>(residual[i]) == moves;
    }
    CHECK(good);
  }
}

TEST_CASE("a codec changes a training, with the same bits on one device as on the host") {
  for (const CodedRule& rule : codedRules()) {
    CAPTURE(rule.name);
    if (rule.name == "gossip") continue;  // its graph supports no codec
    const auto coded = train(rule.with(Int8Codec{}));
    CHECK(train(rule.with(Int8Codec{}), 1) == coded);
    CHECK(coded != train(rule.with({})));
  }
}

TEST_CASE("matrices are sent as products, which at full rank equal no codec") {
  std::int64_t sent = 0;
  const auto bytes = onMerge([&](const MergeEvent& event) { sent = event.bytes; });
  const auto trained = [&](const Codec& codec, std::vector<int> calls = {3}, int devices = 0) {
    SmallExamples data(31);
    auto model =
        std::make_unique<MultiLayerNetwork>(networkOf({.training = {.updater = Sgd{.learningRate = 0.25}}}));
    model->init();
    const OuterAveraging options{
        .frequency = 2, .rate = 0.7, .momentum = 0.5, .nesterov = true, .codec = codec};
    for (const int epochs : calls) {
      auto next = std::make_unique<MultiLayerNetwork>(
          networkOf({.training = {.updater = Sgd{.learningRate = 0.25}}}));
      next->init();
      next->copyStateFrom(*model);
      wrapperOf(*next, 3, options, devices, {bytes}).fit(data, epochs);
      model = std::move(next);
    }
    return stateBits(*model);
  };
  const auto whole = trained(WholeReplicas{});
  CHECK(sent == 4 * 96);
  CHECK(trained(PowerSgdCodec{.rank = 32}) == whole);
  CHECK(sent == 4 * 96);
  for (const std::int64_t rank : {1, 2}) {
    const auto coded = trained(PowerSgdCodec{.rank = rank});
    // Factors of [5, 6] and [4, 5]; biases and padding uncoded.
    CHECK(sent == 4 * (rank * (5 + 6 + 4 + 5) + 96 - 5 * 6 - 4 * 5));
    CHECK(coded != whole);
    CHECK(trained(PowerSgdCodec{.rank = rank}) == coded);
    CHECK(trained(PowerSgdCodec{.rank = rank}, {3}, 1) == coded);
    CHECK(trained(PowerSgdCodec{.rank = rank}, {1, 2}) == coded);  // resumed from the model's state
  }
}

TEST_CASE("a merge counts the bytes that a network would transfer") {
  const auto bytesOf = [](auto options, int workers) {
    std::vector<std::int64_t> sent;
    const auto bytes = onMerge([&](const MergeEvent& event) { sent.push_back(event.bytes); });
    auto model = toy();
    ToyIterator data(randomBatches(5, 2 * workers, 1, kWidth), kWidth);
    wrapperOf(model, workers, options, 0, {bytes}).fit(data);
    return sent.front();
  };
  CHECK(bytesOf(Averaging{}, 2) == 4 * kWidth);
  CHECK(bytesOf(Averaging{.codec = Bf16Codec{}}, 2) == 2 * kWidth);
  CHECK(bytesOf(OuterAveraging{.codec = Int8Codec{}}, 2) == kWidth + 3 * 4);
  CHECK(bytesOf(ElasticAveraging{.frequency = 1, .codec = E3M0Codec{}}, 2) == kWidth / 2 + 3);
  CHECK(bytesOf(StreamingOuter{.frequency = 1, .fragments = 1, .delay = 0, .codec = TopKCodec{.share = 0.01}},
                2) == 8 * 8);
  CHECK(bytesOf(Averaging{.codec = Bf16Codec{}}, 1) == 0);
  CHECK(bytesOf(Adasum{.frequency = 1}, 2) == 4 * kWidth);
  CHECK(bytesOf(Adasum{.frequency = 1, .codec = Int8Codec{}}, 2) == kWidth + 3 * 4);
  // A group of two counts like a merge; on a ring of four, each worker sends to two.
  const auto groups = [](const Codec& codec) {
    return HierarchicalAveraging{.levels = {{.period = 1, .group = 2}, {.period = 4}}, .codec = codec};
  };
  CHECK(bytesOf(groups({}), 4) == 4 * kWidth);
  CHECK(bytesOf(groups(Bf16Codec{}), 4) == 2 * kWidth);
  CHECK(bytesOf(Gossip{.graph = GossipGraph::Ring}, 4) == 2 * 4 * kWidth);
  CHECK(bytesOf(Gossip{.graph = GossipGraph::Ring, .codec = Bf16Codec{}}, 4) == 2 * 2 * kWidth);
  CHECK(bytesOf(Gossip{.graph = GossipGraph::Complete, .codec = Bf16Codec{}}, 4) == 2 * kWidth);
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

TEST_CASE("PowerSGD of fragments has the same bits with listeners, buffers, devices, in several calls") {
  const auto trained = [](std::int64_t prefetch, bool listens, int devices, std::vector<int> calls) {
    SmallExamples data(31);
    MultiLayerNetwork model(networkOf({.training = {.updater = Sgd{.learningRate = 0.25}}}));
    model.init();
    auto builder = ParallelWrapper::Builder(model);
    builder.workers(3).pinThreads(false).prefetchBuffer(prefetch).internals({.pretendedDevices = devices});
    if (listens) builder.listeners({mergedListener()});
    auto wrapper = builder
                       .strategy(StreamingOuter{.frequency = 4,
                                                .fragments = 2,
                                                .delay = 1,
                                                .rate = 0.7,
                                                .momentum = 0.5,
                                                .codec = PowerSgdCodec{.rank = 1}})
                       .build();
    for (const int epochs : calls) wrapper.fit(data, epochs);
    return stateBits(model);
  };
  const auto bits = trained(16, false, 0, {3});
  CHECK(trained(0, true, 0, {3}) == bits);
  CHECK(trained(3, false, 1, {3}) == bits);
  CHECK(trained(3, true, 0, {1, 2}) == bits);
}

TEST_CASE("a codec reports its bytes, and options out of range are refused by name") {
  auto model = toy();
  CHECK(wrapperOf(model, 2, Averaging{.frequency = 3, .codec = Int8Codec{}}).plan() ==
        "2 workers on cpu (1 thread each, not pinned), outer averaging every 3 iterations (rate 1, momentum "
        "0), sent as int8 (which costs time, and saves bytes over a network only): 6 batches per round");
  const auto refusal = [](auto options) { return thrown<InvalidArgument>([&] { options.validate(); }); };
  CHECK(refusal(Averaging{.codec = TopKCodec{.share = 0}}) ==
        "averaging: codec: share must be in (0, 1], got 0");
  CHECK(refusal(StreamingOuter{.codec = TopKCodec{.share = std::nan("")}}) ==
        "streaming outer averaging: codec: share must be in (0, 1], got nan");
  CHECK(refusal(ElasticAveraging{.codec = PowerSgdCodec{.rank = 33}}) ==
        "elastic averaging: codec: rank must be between 1 and 32, got 33");
  CHECK(refusal(Gossip{.codec = Int8Codec{}}) ==
        "gossip: codec cannot be given with the graph exponential: in this graph a worker's receivers "
        "change, so "
        "a receiver does not know the base of the difference; use ring or complete");
  CHECK(refusal(Gossip{.graph = GossipGraph::Ring, .codec = PowerSgdCodec{}}) ==
        "gossip: codec cannot be power-sgd, whose factors are means over all workers, where only some are "
        "merged");
  CHECK(refusal(HierarchicalAveraging{.levels = {{1, 2}, {2, 0}}, .codec = PowerSgdCodec{}})
            .starts_with("hierarchical averaging: codec cannot be power-sgd"));
  CHECK(refusal(Averaging{.measureDivergence = true, .codec = Bf16Codec{}}) ==
        "averaging: measureDivergence cannot be given with a codec");
}
