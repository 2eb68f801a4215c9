#pragma once

#include <doctest/doctest.h>

#include "muster/core/nn/gradient_check.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/arrays.h"
#include "tests/support/standard.h"
#include "tests/support/state_bits.h"
#include "tests/support/temporary_directory.h"

namespace muster::test {

/// Checks that a model's gradients agree with central differences. @return how many were checked.
inline std::int64_t checkGradientsOf(Model& model, const Batch& batch,
                                     const GradientCheckOptions& options = {}) {
  const auto result = checkGradients(model, batch, options);
  CHECK_MESSAGE(result.passed, result.toString());
  return result.checked;
}

/// The same for a chain of layers with new values.
inline void checkGradientsOf(std::vector<Layer> layers, const Shape& input, const Batch& batch) {
  MultiLayerNetwork model({.seed = 7, .inputShape = input, .layers = std::move(layers)});
  model.init();
  INFO(model.summary());
  checkGradientsOf(model, batch);
}

/// Checks that as many steps on a batch halve its loss.
inline void checkLearns(Model& model, Batch batch, std::int64_t steps) {
  const double before = model.step(batch).wait().score;
  double after = before;
  for (std::int64_t i = 1; i < steps; ++i) {
    batch.stamp.iteration = i;
    after = model.step(batch).wait().score;
  }
  CHECK(after < 0.5 * before);
}

/// Checks that a saved model is loaded with its configuration, state and outputs, bit for bit.
inline void checkComesBack(Network& model, const Batch& batch) {
  const TemporaryDirectory directory;
  model.save(directory / "model.safetensors");
  const auto loaded = Network::load(directory / "model.safetensors");
  CHECK(loaded->toJson() == model.toJson());
  CHECK(stateBits(*loaded) == stateBits(model));
  CHECK(sameBits(loaded->outputs(batch).front(), model.outputs(batch).front()));
}

}  // namespace muster::test
