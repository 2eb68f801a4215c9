// Codecs over nodes that are threads of this process.

#include "tests/parallel/coded_rules.h"
#include "tests/parallel/on_nodes.h"
#include "tests/parallel/rule_wrapper.h"
#include "tests/support/on_merge.h"
#include "tests/support/reference_model.h"
#include "tests/support/small_examples.h"
#include "tests/support/whole.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t kWidth = 704;  // no padding; three chunks of 256, the last one short

ToyModel toy() {
  return ToyModel({.size = kWidth, .training = {.updater = Sgd{.learningRate = 0.125}}});
}

/// An uneven epoch: in its last round some workers have no batch.
std::vector<ToyBatch> batchesOf(int workers) {
  return randomBatches(5, 7 * workers + 1, 3, kWidth, /*ragged=*/true);
}

const std::array<Codec, 5> kCodecs = {Bf16Codec{}, Int8Codec{}, E3M0Codec{}, TopKCodec{.share = 0.1},
                                      PowerSgdCodec{.rank = 1}};

/// Averaging with int8 in plain loops on worker 0: a node sends the mean of its workers.
struct PlainInt8 {
  int nodes = 1;
  std::int64_t frequency = 2;

  void validate() const {}
  std::unique_ptr<Strategy> make() const;
};

class PlainInt8Strategy final : public Strategy {
 public:
  explicit PlainInt8Strategy(const PlainInt8& options)
      : nodes_(static_cast<std::size_t>(options.nodes)),
        frequency_(options.frequency),
        residuals_(nodes_, std::vector<float>(kWidth)) {}
  std::string describe() const override { return "averaging with int8, written plainly"; }
  RoundPlan plan(const TrainingProgress&) override { return {.iterations = frequency_}; }
  void land(int, const Round& round, MergeOps& ops) override {
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    const auto workers = round.weights.size();
    ops.eachReplica(kWidth, [&](const Share& share) {
      if (share.workers.front() != 0) return;
      auto* const merged = parameters.mergedCopy().data<float>();
      std::vector<double> weights(nodes_), sum(kWidth);
      double total = 0;
      for (std::size_t w = 0; w < workers; ++w) weights[w % nodes_] += round.weights[w];
      for (const double weight : weights) total += weight;
      for (std::size_t n = 0; n < nodes_; ++n) {
        if (weights[n] == 0) continue;
        std::vector<double> own(kWidth);
        for (std::size_t w = n; w < workers; w += nodes_)
          for (std::size_t i = 0; i < own.size(); ++i)
            if (round.weights[w] > 0)
              own[i] += round.weights[w] / weights[n] *
                        static_cast<double>(parameters.replicas[w].data<float>()[i]);
        const auto sent = encoded(own, merged, residuals_[n]);
        for (std::size_t i = 0; i < sum.size(); ++i)
          sum[i] += weights[n] / total * static_cast<double>(sent[i]);
      }
      for (std::size_t i = 0; i < sum.size(); ++i) merged[i] = static_cast<float>(sum[i]);
    });
    ops.writeBack(parameters.mergedCopies, parameters.replicas, 0, Fragment::whole(kWidth));
  }

 private:
  static std::vector<float> encoded(const std::vector<double>& values, const float* base,
                                    std::vector<float>& residual) {
    std::vector<float> sent(values.size());
    for (std::size_t chunk = 0; chunk < values.size(); chunk += 256) {
      const std::size_t end = std::min(chunk + 256, values.size());
      const auto moveAt = [&](std::size_t i) {
        return static_cast<double>(static_cast<float>(values[i])) - static_cast<double>(base[i]) +
               static_cast<double>(residual[i]);
      };
      float largest = 0;
      for (std::size_t i = chunk; i < end; ++i)
        largest = std::max(largest, std::abs(static_cast<float>(moveAt(i))));
      const float scale = largest / 127;
      for (std::size_t i = chunk; i < end; ++i) {
        const double move = moveAt(i);
        const float level =
            scale == 0 ? 0 : std::clamp(std::nearbyint(static_cast<float>(move) / scale), -127.0f, 127.0f);
        sent[i] = static_cast<float>(static_cast<double>(base[i]) + static_cast<double>(level * scale));
        residual[i] =
            static_cast<float>(move - (static_cast<double>(sent[i]) - static_cast<double>(base[i])));
      }
    }
    return sent;
  }

  const std::size_t nodes_;
  const std::int64_t frequency_;
  std::vector<std::vector<float>> residuals_;  // [node]
};

std::unique_ptr<Strategy> PlainInt8::make() const {
  return std::make_unique<PlainInt8Strategy>(*this);
}

}  // namespace

TEST_CASE("a node sends the encoded mean of its workers, and keeps the residual, as plain loops do") {
  for (const Places places : {Places{2, 2}, Places{3, 1}, Places{3, 2}}) {
    const Averaging rule{.frequency = 2, .codec = Int8Codec{}};
    const auto fit = [&](ParallelWrapper& wrapper, Model&) {
      ToyIterator data(batchesOf(places.all()), kWidth);
      wrapper.fit(data, 3);
    };
    auto expected = toy(), inGroups = toy();
    auto plain = builderOf(expected, places.all(), PlainInt8{.nodes = places.nodes}).build(),
         grouped = builderOf(inGroups, places.all(), rule).groups(places.nodes).build();
    fit(plain, expected);
    fit(grouped, inGroups);
    CHECK(stateBits(inGroups) == stateBits(expected));
    checkLikeOneProcess(
        rule, places, [] { return toy(); }, fit);
  }
}

TEST_CASE("every codec of every rule over nodes has the bits of one process in groups") {
  // A network has matrices, for which PowerSGD sends factors.
  const auto network = [] {
    return MultiLayerNetwork(networkOf({.training = {.updater = Sgd{.learningRate = 0.25}}}));
  };
  const auto fit = [](ParallelWrapper& wrapper, Model&) {
    SmallExamples data(31);
    wrapper.fit(data, 3);
  };
  for (const Codec& codec : kCodecs)
    for (const CodedRule& rule : codedRules())
      for (const Places places : {Places{2, 2}, Places{3, 1}})
        if (rule.accepts(codec) && runsOverNodes(rule.with(codec), places.all()) &&
            (whole() || places.nodes == 2))
          checkLikeOneProcess(rule.with(codec), places, network, fit);
}

TEST_CASE("nodes send encoded bytes, as the network counts them and as listeners are told") {
  constexpr std::int64_t kLong = 1 << 16;
  for (const Places places : {Places{2, 2}, Places{3, 1}}) {
    CAPTURE(places.nodes);
    const auto check = [&](const AnyStrategy& rule, std::int64_t coded) {
      CAPTURE(rule.make()->describe());
      VirtualNetwork network(places.nodes);
      std::int64_t merges = 0, most = 0;
      const auto bytes = onMerge([&](const MergeEvent& event) {
        merges += event.bytes > 0 ? 1 : 0;
        most = std::max(most, event.bytes);
      });
      onAll(network, [&](const Nodes& here) {
        ToyModel model({.size = kLong, .training = {.updater = Sgd{.learningRate = 0.125}}});
        ToyIterator share(randomBatches(5, 4 * places.nodes * places.workers, 1, kLong), kLong);
        builderOf(model, places.workers, rule).nodes(here).listeners({bytes}).build().fit(share, 1);
      });
      CHECK(merges >= 2);
      CHECK(most == coded);
      // Besides the merges, nodes send messages about rounds and, once at the end, the residual.
      const std::int64_t least = (places.nodes - 1) * (merges * coded + 4 * kLong);
      CHECK(network.bytesSent(0) >= least);
      CHECK(network.bytesSent(0) < least + 20'000);
    };
    check(Averaging{.codec = Bf16Codec{}}, 2 * kLong);
    check(Averaging{.codec = Int8Codec{}}, kLong + 4 * kLong / 256);
    check(Averaging{.codec = E3M0Codec{}}, kLong / 2 + kLong / 256);
    check(Averaging{.codec = TopKCodec{.share = 1.0 / 256}}, 8 * kLong / 256);
    check(StreamingOuter{.frequency = 2, .fragments = 1, .delay = 1, .codec = Int8Codec{}},
          kLong + 4 * kLong / 256);
  }
}

TEST_CASE("after a fit() the model holds the residuals, with which other wrappers and nodes continue") {
  const OuterAveraging rule{
      .frequency = 2, .rate = 0.7, .momentum = 0.5, .nesterov = true, .codec = E3M0Codec{}};
  const auto batches = batchesOf(4);
  const auto residualOf = [](Model& model) {
    const auto& all = model.strategyState();
    const auto found = std::ranges::find(all, "coding residual", &NamedValues::name);
    REQUIRE(found != all.end());
    return std::vector<float>(found->values.data<float>(),
                              found->values.data<float>() + found->values.elements());
  };
  auto whole = toy(), first = toy();
  ToyIterator data(batches, kWidth);
  builderOf(whole, 4, rule).groups(2).build().fit(data, 3);
  builderOf(first, 4, rule).groups(2).build().fit(data, 2);
  const auto residual = residualOf(first);
  CHECK(residual.size() == 2 * static_cast<std::size_t>(kWidth));
  for (const auto& bits : fromAll(2, [&](const Nodes& here) {
         auto model = toy(), next = toy();
         ToyIterator share(batches, kWidth);
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
    ToyIterator share(batches, kWidth);
    builderOf(model, 1, rule).nodes(here).build().fit(share, 1);
    CHECK(model.epoch() == 3);
    return stateBits(model);
  });
  for (const auto& bits : others) CHECK((bits == others[0] && bits != stateBits(whole)));
}
