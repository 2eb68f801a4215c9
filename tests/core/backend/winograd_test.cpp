#include "muster/core/backend/cpu/conv/winograd_division.h"
#include "muster/core/backend/cpu/conv/winograd_transforms.h"
#include "muster/core/base/random.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using namespace cpu::winograd;

using Eight = Transforms<8>;
using V = Eight::V;

/// Random numbers in [-1, 1), eight of them in each vector.
template <std::size_t Count>
std::array<V, Count> drawn(std::uint64_t seed) {
  const RandomStream random(seed, "winograd");
  std::array<V, Count> values;
  std::uint64_t draw = 0;
  for (V& value : values)
    for (int lane = 0; lane < 8; ++lane) value[lane] = static_cast<float>(2 * random.uniform(draw++) - 1);
  return values;
}

/// Transformed numbers are at most 13 times as large as the numbers in [-1, 1], and each result is a sum of
/// at most six products of two of them, which rounding changes by some units of the largest.
constexpr float kTolerance = 2e-5f;

/// Checks that what `back` makes of the products of six transformed inputs and `Count` transformed numbers
/// are sums of `Count` products of an input and a number.
template <std::size_t Count, std::size_t Results, typename Transform, typename Back>
void checkProducts(Transform transform, Back back) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto d = drawn<6>(2 * seed);
    const auto g = drawn<Count>(2 * seed + 1);
    V inputs[6], transformed[6], products[6], results[Results];
    Eight::toInputs(d.data(), inputs);
    transform(g.data(), transformed);
    for (int p = 0; p < 6; ++p) products[p] = inputs[p] * transformed[p];
    back(products, results);
    for (std::size_t i = 0; i < Results; ++i)
      for (int lane = 0; lane < 8; ++lane) {
        float direct = 0;
        for (std::size_t k = 0; k < Count; ++k) direct += d[i + k][lane] * g[k][lane];
        CHECK(std::abs(results[i][lane] - direct) <= kTolerance);
      }
  }
}

TEST_CASE(
    "products of transformed inputs and weights, or gradients, are a convolution's outputs, or tap "
    "gradients") {
  checkProducts<3, 4>([](auto* g, V* to) { Eight::toWeights(g, to); },
                      [](V* products, V* to) { Eight::toOutputs(products, to); });
  checkProducts<4, 3>([](auto* y, V* to) { Eight::toGradients(y, to); },
                      [](V* products, V* to) { Eight::toWeightGradients(products, to); });
}

TEST_CASE("the transformation of a square is that of its columns, then of its rows") {
  const auto numbers = drawn<16>(7);
  V square[4][4], all[6][6], columns[4][6], row[4], expected[6];
  for (int i = 0; i < 16; ++i) square[i / 4][i % 4] = numbers[static_cast<std::size_t>(i)];
  Eight::both<4, 6>(square, all, Eight::toGradients);
  for (int c = 0; c < 4; ++c) {
    V column[4];
    for (int r = 0; r < 4; ++r) column[r] = square[r][c];
    Eight::toGradients(column, columns[c]);
  }
  for (int r = 0; r < 6; ++r) {
    for (int c = 0; c < 4; ++c) row[c] = columns[c][r];
    Eight::toGradients(row, expected);
    for (int c = 0; c < 6; ++c)
      for (int lane = 0; lane < 8; ++lane) CHECK(float(all[r][c][lane]) == float(expected[c][lane]));
  }
}

using Places = std::vector<std::pair<std::int64_t, std::int64_t>>;  // [begin, end)

TEST_CASE("tasks cover all channels and summed channels once, and memory of threads does not overlap") {
  constexpr std::int64_t kGroup = 32, kRows = 14;
  for (const std::int64_t in : {16, 32, 80, 256})
    for (const std::int64_t out : {16, 48, 256})
      for (const std::int64_t size : {4, 30})
        for (const std::int64_t threads : {1, 2, 3, 8}) {
          INFO("in ", in, ", out ", out, ", size ", size, ", threads ", threads);
          const Shape input{2, in, size, size}, output{2, out, size, size};
          const Pass forward(input, output, {1, 1}, kRows), backward(output, input, {1, 1}, kRows);
          const Division division(forward, backward, kGroup, threads);
          for (const Pass* pass : {&forward, &backward}) {
            const std::int64_t groups = division.groupsOf(pass->out), parts = division.partsOf(pass->out);
            CHECK(groups * parts >= threads);
            std::int64_t channel = 0;
            for (std::int64_t g = 0; g < groups; ++g) {
              std::int64_t summed = 0;
              for (std::int64_t part = 0; part < parts; ++part) {
                const ChannelTask task = division.taskOf(pass->out, 0, g, part, parts);
                CHECK(task.from == channel);
                CHECK(task.channels <= kGroup);
                const Range range = task.summedOf(pass->in);
                CHECK(range.begin == summed);
                summed = range.end;
              }
              CHECK(summed == pass->in.channels());
              channel += division.taskOf(pass->out, 0, g).channels;
            }
            CHECK(channel == pass->out.channels());

            // What a thread has at the same time, in floats.
            const std::int64_t chunkInputs = kPlaces * apart(pass->atOnce * apart(pass->in.channels()));
            const std::int64_t products = kPlaces * apart(pass->atOnce * kGroup);
            const std::int64_t weights = kPlaces * apart(pass->in.channels() * kGroup);
            const auto checkApart = [&](Places places) {
              const auto add = [&](std::int64_t begin, std::int64_t floats) {
                places.emplace_back(begin, begin + floats);
              };
              for (std::int64_t t = 0; t < threads; ++t) {
                add(division.blocksOf(t), Division::kSummedAtOnce * kGroup * kTaps);
                add(division.inputsOf(*pass, t), chunkInputs);
                add(division.productsOf(*pass, t), products);
                if (pass == &forward) add(division.sumsOf(*pass, t), pass->atOnce * kGroup);
              }
              std::ranges::sort(places);
              for (std::size_t i = 1; i < places.size(); ++i) CHECK(places[i].first >= places[i - 1].second);
              CHECK(places.back().second * 4 <= static_cast<std::int64_t>(division.bytes()));
            };
            Places held;
            for (std::int64_t w = 0; w < (division.keepsWeights(*pass) ? groups : threads); ++w) {
              const std::int64_t begin = division.weightsOf(
                  *pass, {.from = 0, .channels = kGroup, .group = w, .part = 0, .parts = 1, .thread = w});
              held.emplace_back(begin, begin + weights);
            }
            checkApart(held);
            if (pass != &forward) continue;

            // The pass that computes the weights' gradients: those of all groups, or a slice for each thread.
            Places gradients;
            if (pass->count > pass->atOnce) {
              for (std::int64_t g = 0; g < groups; ++g) {
                const std::int64_t begin = division.gradientsOf(*pass, division.taskOf(pass->out, 0, g));
                gradients.emplace_back(begin, begin + weights);
              }
            } else {
              const std::int64_t slice =
                  kPlaces * apart(std::min(pass->in.channels(), Division::kSummedAtOnce) * kGroup);
              for (std::int64_t t = 0; t < threads; ++t) {
                const std::int64_t begin = division.sliceOf(*pass, t);
                gradients.emplace_back(begin, begin + slice);
              }
            }
            checkApart(gradients);
          }
        }
}

TEST_CASE("chunks cover a range of tiles once, each with the next one") {
  const Pass pass({3, 64, 30, 30}, {3, 64, 30, 30}, {1, 1}, 14);
  CHECK(pass.count == 3 * 8 * 8);
  for (const Range range : {Range{0, pass.count}, Range{5, 100}, Range{7, 8}, Range{9, 9}}) {
    std::int64_t at = range.begin;
    pass.forEachChunk(range, [&](const Chunk& chunk, const Chunk& next) {
      CHECK(chunk.first == at);
      CHECK((chunk.count > 0 && chunk.count <= pass.atOnce));
      at += chunk.count;
      CHECK(next.first == at);
      CHECK(next.count == std::min(pass.atOnce, range.end - at));
    });
    CHECK(at == range.end);
  }
}

}  // namespace
}  // namespace muster
