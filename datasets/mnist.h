#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "muster/datasets/image_set_iterator.h"
#include "muster/datasets/published.h"

namespace muster {

/// The MNIST handwritten digits: 60,000 images for training, 10,000 for testing, 28x28, ten classes.
///
/// Features float32 [B, 1, 28, 28] in [0, 1], labels int64 [B]. The training images are shuffled each epoch,
/// by (seed, epoch); the test images keep the order of the file.
///
/// Searches `options.directory`, MUSTER_DATA_DIR, the cache directory and the network (see `findPublished`);
/// MUSTER_MNIST_URL replaces the published address.
/// Source: LeCun, Cortes, Burges, "The MNIST database of handwritten digits".
class MnistDataSetIterator : public ImageSetIterator {
 public:
  static constexpr std::array<std::string_view, 10> kClassNames{"0", "1", "2", "3", "4",
                                                                "5", "6", "7", "8", "9"};
  static const PublishedSet kPublished;  ///< its files and their sums

  /// @throws FileError naming a broken file; DownloadError if the data are not available; InvalidArgument for
  ///         a batch or limit below 1.
  MnistDataSetIterator(std::int64_t batch, bool train, std::uint64_t seed = 123,
                       const DataOptions& options = {});
  const NumberedBatches* numbered() const override { return numberedIf<MnistDataSetIterator>(); }
};

/// Fashion-MNIST: images of clothes in the format of MNIST. MUSTER_FASHION_MNIST_URL replaces the published
/// address.
/// Source: Xiao, Rasul, Vollgraf 2017, "Fashion-MNIST: a novel image dataset for benchmarking".
class FashionMnistDataSetIterator : public ImageSetIterator {
 public:
  static constexpr std::array<std::string_view, 10> kClassNames{
      "T-shirt/top", "trouser", "pullover", "dress", "coat",
      "sandal",      "shirt",   "sneaker",  "bag",   "ankle boot"};

  static const PublishedSet kPublished;  ///< its files and their sums

  /// @throws as MnistDataSetIterator.
  FashionMnistDataSetIterator(std::int64_t batch, bool train, std::uint64_t seed = 123,
                              const DataOptions& options = {});
  const NumberedBatches* numbered() const override { return numberedIf<FashionMnistDataSetIterator>(); }
};

}  // namespace muster
