#pragma once

#include <string>
#include <vector>

#include "examples/char_lstm/options.h"
#include "muster/core/nn/model.h"
#include "muster/datasets/text.h"

namespace example {

/// Samples text from a model that predicts the next character after each of `steps` characters. All samples
/// are drawn as one batch: the model reads the last `steps` characters; a mask excludes positions that are
/// not written yet.
class Sampler {
 public:
  /// @param steps  characters that the model reads at once.
  /// @throws muster::InvalidArgument for a prompt with characters that the vocabulary lacks.
  Sampler(muster::Vocabulary vocabulary, std::int64_t steps, SampleOptions options);

  /// The same model and seed give the same samples, each of which begins with the prompt.
  std::vector<std::string> draw(muster::Model& model, std::int64_t seed) const;

 private:
  muster::Vocabulary vocabulary_;
  std::int64_t steps_;
  SampleOptions options_;
  std::vector<std::int64_t> start_;  // every sample continues it; printed only if it is the prompt
};

}  // namespace example
