#pragma once

#include <string>
#include <vector>

#include "examples/char_lstm/options.h"
#include "muster/core/nn/model.h"
#include "muster/datasets/text.h"

namespace example {

/// Writes text with a model that tells at each of `steps` characters which comes next. All samples are drawn
/// side by side, as one batch: it is shown the last `steps` characters, with a mask over what is not written
/// yet.
class Sampler {
 public:
  /// @param steps  characters that the model reads in one piece.
  /// @throws muster::InvalidArgument for a prompt with characters that the vocabulary lacks.
  Sampler(muster::Vocabulary vocabulary, std::int64_t steps, SampleOptions options);

  /// The same model and seed give the same samples, each of which begins with the prompt.
  std::vector<std::string> draw(muster::Model& model, std::int64_t seed) const;

 private:
  muster::Vocabulary vocabulary_;
  std::int64_t steps_;
  SampleOptions options_;
  std::vector<std::int64_t> start_;  // what a sample continues; shown only where it is the prompt
};

}  // namespace example
