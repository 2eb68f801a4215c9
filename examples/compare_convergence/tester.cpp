#include "examples/compare_convergence/tester.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "muster/core/base/error.h"
#include "muster/core/eval/evaluation.h"

namespace convergence {
namespace {

/// Sum of -log p(class) over a batch's softmax predictions [N, classes].
double sumOfLosses(const muster::Tensor& predictions, const muster::Tensor& labels) {
  const auto classes = predictions.shape()[1];
  const auto p = predictions.span<float>();
  const auto label = labels.span<std::int64_t>();
  double sum = 0;
  for (std::int64_t i = 0; i < labels.elements(); ++i) {
    const float likelihood = p[static_cast<std::size_t>(i * classes + label[static_cast<std::size_t>(i)])];
    // A float may have rounded to 0, which has no logarithm.
    sum -= std::log(std::max(likelihood, std::numeric_limits<float>::min()));
  }
  return sum;
}

}  // namespace

Tester::Tester(muster::ImageSetIterator images) : images_(std::move(images)) {}

TestResult Tester::test(muster::Model& model) {
  muster::Evaluation evaluation(images_.set()->classes());
  double losses = 0;
  images_.reset(0);
  while (images_.next(batch_)) {
    model.output(batch_, predictions_);
    losses += sumOfLosses(predictions_, batch_.labels.front().value);
    if (!std::isfinite(losses))
      throw muster::NonFiniteScore("the loss of the merged model on the test images is not finite");
    evaluation.add(predictions_, batch_.labels.front().value);
  }
  return {evaluation.accuracy(), losses / static_cast<double>(evaluation.examples())};
}

}  // namespace convergence
