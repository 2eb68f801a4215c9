#include "muster/parallel/nodes/node_reduction.h"

#include "muster/core/ops/non_finite.h"
#include "tests/parallel/nodes/on_links.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kElements = 40000;  // several pieces

/// Two nodes with two workers each: element i of worker w is 8 w + i mod 16. @param use  after the mean.
std::vector<std::string> withMean(const std::vector<double>& weights, double keep, float bad,
                                  const std::function<void(NodeLink&, const Tensor&)>& use) {
  return onLinks(2, [&](NodeLink& link) {
    const FailingLink failing(&link);
    std::vector<Tensor> tensors;
    for (int w = 0; w < 4; ++w) {
      tensors.push_back(Tensor::empty({kElements}));
      for (std::int64_t i = 0; i < kElements; ++i)
        tensors.back().data<float>()[i] = static_cast<float>(8 * w + i % 16);
    }
    if (bad != 0) tensors[2].data<float>()[33333] = bad;
    const Tensor into = Tensor::zeros({kElements});
    for (float& x : Tensor(into).span<float>()) x = 100;
    Context context;
    NodeReduction(link, /*local=*/2, /*channel=*/8)
        .run({.tensors = tensors, .weights = weights, .keep = keep, .into = into}, {0, kElements}, context);
    use(link, into);
  });
}

bool isEverywhere(const Tensor& values, double base, double ofI) {
  for (std::int64_t i = 0; i < kElements; ++i)
    if (values.data<float>()[i] != static_cast<float>(base + ofI * static_cast<double>(i % 16))) return false;
  return true;
}

}  // namespace

TEST_CASE("the mean over the workers of all nodes is the same on all nodes") {
  // Weights 1, 1, 2, 4: (0 + 8 + 2 * 16 + 4 * 24) / 8 = 17.
  const auto problems =
      withMean({1, 1, 2, 4}, 0, 0, [](NodeLink&, const Tensor& mean) { CHECK(isEverywhere(mean, 17, 1)); });
  CHECK(problems == std::vector<std::string>(2));
}

TEST_CASE("a node whose workers have weight 0 gets the mean of the others; a share is kept") {
  // Only node 0, workers 0 and 2: the mean is 8; half of it and half of 100.
  const auto problems = withMean({3, 0, 3, 0}, 0.5, 0,
                                 [](NodeLink&, const Tensor& mean) { CHECK(isEverywhere(mean, 54, 0.5)); });
  CHECK(problems == std::vector<std::string>(2));
}

TEST_CASE("an element that is not finite is named by its index in the whole tensor") {
  const auto problems = withMean({1, 1, 1, 1}, 0, std::numeric_limits<float>::infinity(),
                                 [](NodeLink&, const Tensor&) { FAIL("it must throw"); });
  CHECK((problems[0] + problems[1]).find("mean over nodes: the result is not finite, at element 33333") !=
        std::string::npos);
}
