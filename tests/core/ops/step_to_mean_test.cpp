// A merge by an outer step in one pass: the same bits as successive linear combinations.
#include "muster/core/ops/step_to_mean.h"
#include "muster/core/ops/linear_combination.h"
#include "muster/core/ops/non_finite.h"
#include "tests/core/ops/test.h"

using namespace muster;
using muster::test::thrown;

namespace {

/// Numbers with all bits of their type in use, of both signs.
Tensor numbers(std::int64_t elements, double seed, DType type) {
  Tensor t = Tensor::empty({elements}, type);
  for (std::int64_t i = 0; i < elements; ++i)
    test::setValue(t, i, std::sin(seed + 0.7 * static_cast<double>(i)) / 3);
  return t;
}

struct MergeState {
  MergeState(std::size_t workers, std::int64_t elements, DType type)
      : copy(numbers(elements, 1, type)), moves(numbers(elements, 2, type)) {
    for (std::size_t w = 0; w < workers; ++w)
      replicas.push_back(numbers(elements, 3 + 0.1 * static_cast<double>(w), type));
  }
  MergeState(const MergeState& other) : copy(cloneTensor(other.copy)), moves(cloneTensor(other.moves)) {
    for (const Tensor& replica : other.replicas) replicas.push_back(cloneTensor(replica));
  }
  bool operator==(const MergeState& other) const {
    return std::ranges::equal(replicas, other.replicas, test::sameBits) && test::sameBits(copy, other.copy) &&
           test::sameBits(moves, other.moves);
  }

  Tensor copy, moves;
  std::vector<Tensor> replicas;
};

void combineOneByOne(MergeState& state, const std::vector<double>& weights, const StepToMean& step,
                     std::int64_t begin, std::int64_t end, Context& context) {
  double total = 0;
  for (const double weight : weights) total += weight;
  std::vector<Term> terms;
  for (std::size_t w = 0; w < weights.size(); ++w) terms.push_back({weights[w] / total, state.replicas[w]});
  const Tensor mean = Tensor::zeros({state.copy.elements()}, DType::Float64);
  const auto set = [&](const Tensor& out, const std::vector<Term>& from) {
    linearCombination(from, out, begin, end, context);
  };
  set(mean, terms);
  if (step.moves.defined()) {
    set(state.moves, {{step.decay, state.moves}, {step.rate, mean}, {-step.rate, state.copy}});
    set(state.copy, {{1, state.copy}, {1, state.moves}});
  } else {
    set(state.copy, {{step.rate, mean}, {1 - step.rate, state.copy}});
  }
  for (const Tensor& replica : state.replicas)
    set(replica, {{1, state.copy}, {step.moves.defined() ? step.ahead : 0, state.moves}});
}

}  // namespace

TEST_CASE("stepToMean has the bits of linear combinations one after the other") {
  for (const DType type : {DType::Float32, DType::Float64})
    for (const std::vector<double>& weights : {std::vector<double>{3}, {1, 2}, {0, 5, 0}, {2, 0, 1, 4}})
      for (const std::int64_t n : {1, 16, 255, 257, 33'000}) {  // two threads take at least 2^14 each
        const MergeState before(weights.size(), n, type);
        for (const int threads : {1, 2})
          for (const double rate : {1.0, 0.7})
            for (const double decay : {0.0, 0.3})
              for (const double ahead : {0.0, 0.9})
                for (const bool moves : {false, true}) {
                  if (!moves && (decay != 0 || ahead != 0)) continue;
                  Context context(Device::cpu(), {.threads = threads});
                  MergeState atOnce(before), expected(before);
                  StepToMean step{.rate = rate, .decay = decay, .ahead = ahead};
                  if (moves) step.moves = atOnce.moves;
                  const std::int64_t begin = n / 7, end = n - n / 5;
                  stepToMean(atOnce.replicas, weights, atOnce.copy, step, begin, end, context);
                  combineOneByOne(expected, weights, step, begin, end, context);
                  INFO("n ", n, ", rate ", rate, ", decay ", decay, ", ahead ", ahead, ", moves ", moves);
                  CHECK(atOnce == expected);
                }
      }
}

TEST_CASE("a value that is not finite is named, and nothing of its block is written") {
  const std::int64_t n = 1000;
  const double most = std::numeric_limits<float>::max();
  Context context;
  const auto stepFrom = [&](double number, const StepToMean& how, bool inMoves) {
    MergeState state(2, n, DType::Float32), before(2, n, DType::Float32);
    StepToMean step = how;
    step.moves = state.moves;
    for (const MergeState* one : {&state, &before})
      (inMoves ? one->moves : one->replicas[1]).data<float>()[700] = static_cast<float>(number);
    const auto told = thrown<NonFiniteResult>([&] {
      stepToMean(state.replicas, std::vector<double>{1, 1}, state.copy, step, 0, n, context);
    });
    for (std::int64_t i = 512; i < 768; ++i) {
      CHECK(state.copy.data<float>()[i] == before.copy.data<float>()[i]);
      CHECK(std::isfinite(state.replicas[0].data<float>()[i]));
      if (i != 700) CHECK(state.moves.data<float>()[i] == before.moves.data<float>()[i]);
    }
    CHECK(state.copy.data<float>()[0] != before.copy.data<float>()[0]);
    return told;
  };
  const std::string told = "stepToMean: the result is not finite, at element 700";
  CHECK(stepFrom(test::kNan, {.decay = 0.5}, false) == told);
  CHECK(stepFrom(test::kInfinity, {.decay = 0}, false) == told);
  CHECK(stepFrom(most, {.rate = 3, .decay = 0.5}, false) == told);               // the moves
  CHECK(stepFrom(most, {.rate = 1, .decay = 0.9, .ahead = 0.9}, true) == told);  // the replicas
}

TEST_CASE("stepToMean refuses tensors that do not fit") {
  Context context;
  MergeState state(2, 8, DType::Float32);
  const std::vector<double> weights{1, 1};
  const auto refusal = [&](Tensor copy, const StepToMean& step) {
    return thrown<InvalidArgument>([&] { stepToMean(state.replicas, weights, copy, step, 0, 8, context); });
  };
  CHECK(refusal(state.copy, {.rate = test::kNan}) == "stepToMean: a factor is nan");
  CHECK(refusal(Tensor(), {}).starts_with("stepToMean: the merged copy must be float32"));
  CHECK(refusal(state.copy, {.moves = Tensor::zeros({7})})
            .starts_with("stepToMean: the moves must be float32"));
  const Tensor onGpu = Tensor::view(state.copy.raw(), {8}, DType::Float32, Device::cuda(0));
  CHECK(thrown<DeviceUnavailable>([&] { stepToMean(state.replicas, weights, onGpu, {}, 0, 8, context); }) ==
        "stepToMean: runs on the CPU only, got " + onGpu.toString());
}
