#include "examples/char_lstm/sampler.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/random.h"

namespace example {
namespace {

using namespace muster;

/// Samples from probabilities^(1 / temperature); `uniform` is a random number in [0, 1).
std::int64_t drawIndex(std::span<const float> probabilities, double temperature, double uniform) {
  const double top = *std::ranges::max_element(probabilities);
  std::vector<double> sums;  // cumulative
  double sum = 0;
  for (const double p : probabilities) sums.push_back(sum += std::pow(p / top, 1 / temperature));
  const auto found = std::ranges::upper_bound(sums, uniform * sum);
  return std::min<std::int64_t>(found - sums.begin(), static_cast<std::int64_t>(sums.size()) - 1);
}

/// The last `steps` characters of each text, left-aligned, with a mask that excludes the rest of the window.
Batch windowOf(const std::vector<std::vector<std::int64_t>>& texts, std::int64_t steps) {
  const Shape shape{static_cast<std::int64_t>(texts.size()), steps};
  Batch batch;
  Tensor& features = Batch::ensure(batch.features, "features", shape, DType::Int64);
  Tensor& mask = Batch::ensure(batch.masks, "features", shape);
  std::ranges::fill(features.span<std::int64_t>(), 0);
  std::ranges::fill(mask.span<float>(), 0.0f);
  for (std::size_t n = 0; n < texts.size(); ++n) {
    const auto length = std::min(static_cast<std::int64_t>(texts[n].size()), steps);
    const auto row = static_cast<std::int64_t>(n) * steps;
    std::copy(texts[n].end() - length, texts[n].end(), features.data<std::int64_t>() + row);
    std::fill_n(mask.data<float>() + row, length, 1.0f);
  }
  return batch;
}

}  // namespace

Sampler::Sampler(Vocabulary vocabulary, std::int64_t steps, SampleOptions options)
    : vocabulary_(std::move(vocabulary)), steps_(steps), options_(std::move(options)) {
  try {
    start_ = vocabulary_.indicesOf(decodeUtf8(options_.prompt, "--prompt"));
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(
        fmt::format("--prompt: the text that was learned lacks a character: {}", error.what()));
  } catch (const FileError& error) {
    throw InvalidArgument(error.what());
  }
  if (start_.empty()) start_ = {vocabulary_.find(U'\n').value_or(0)};
}

std::vector<std::string> Sampler::draw(Model& model, std::int64_t seed) const {
  const auto count = static_cast<std::size_t>(options_.count);
  std::vector<std::vector<std::int64_t>> texts(count, start_);
  Tensor predictions;  // [samples, steps, vocabulary]
  for (std::int64_t i = 0; i < options_.length; ++i) {
    model.output(windowOf(texts, steps_), predictions);
    const auto last = std::min(static_cast<std::int64_t>(texts.front().size()), steps_) - 1;
    for (std::size_t n = 0; n < count; ++n) {
      const RandomStream random(static_cast<std::uint64_t>(seed), "sample", static_cast<std::int64_t>(n));
      const std::int64_t row = static_cast<std::int64_t>(n) * steps_ + last;
      const auto probabilities = predictions.span<float>().subspan(
          static_cast<std::size_t>(row * vocabulary_.size()), static_cast<std::size_t>(vocabulary_.size()));
      texts[n].push_back(
          drawIndex(probabilities, options_.temperature, random.uniform(static_cast<std::uint64_t>(i))));
    }
  }
  std::vector<std::string> samples;
  for (const auto& text : texts) {
    std::vector<char32_t> characters;
    for (const auto index : text) characters.push_back(vocabulary_.character(index));
    // Without a prompt, `start_` is one line end, which is not part of the sample.
    samples.push_back(encodeUtf8(std::span(characters).subspan(options_.prompt.empty() ? 1 : 0)));
  }
  return samples;
}

}  // namespace example
