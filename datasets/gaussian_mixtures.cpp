#include "muster/datasets/gaussian_mixtures.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "muster/core/base/random.h"

namespace muster {
namespace {

constexpr std::int64_t kFeatures = 128, kClasses = 4, kClusters = 8;  // clusters per class
constexpr double kCentres = 0.35;                                     // deviation, relative to the noise's
constexpr double kMiddle = 127.5, kDeviation = 36;                    // 0 and 255 are 3.3 deviations away

}  // namespace

std::shared_ptr<const ImageSet> gaussianMixtures(std::uint64_t seed, bool train, std::int64_t examples) {
  const RandomStream centres(seed, "centres");
  const RandomStream clusters(seed, train ? "training clusters" : "test clusters");
  const RandomStream noise(seed, train ? "training noise" : "test noise");
  std::vector<std::uint8_t> pixels, labels;
  pixels.reserve(static_cast<std::size_t>(examples * kFeatures));
  for (std::int64_t i = 0; i < examples; ++i) {
    const auto cluster =
        static_cast<std::int64_t>(clusters.below(static_cast<std::uint64_t>(i), kClasses * kClusters));
    labels.push_back(static_cast<std::uint8_t>(cluster % kClasses));
    for (std::int64_t f = 0; f < kFeatures; ++f) {
      const double centre = centres.normal(static_cast<std::uint64_t>(cluster * kFeatures + f));
      const double value = kCentres * centre + noise.normal(static_cast<std::uint64_t>(i * kFeatures + f));
      pixels.push_back(
          static_cast<std::uint8_t>(std::clamp(std::lround(kMiddle + kDeviation * value), 0L, 255L)));
    }
  }
  return std::make_shared<ImageSet>(std::move(pixels), Shape{1, 8, kFeatures / 8}, std::move(labels),
                                    kClasses, "this program");
}

}  // namespace muster
