#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "muster/datasets/image_set_iterator.h"
#include "muster/datasets/published.h"

namespace muster {

/// Reads files in CIFAR-10's binary format, plain or gzip, into one set [N, 3, 32, 32]. A record has 3073
/// bytes: the label, 0 to 9, then 1024 bytes each of red, green and blue.
/// @throws FileError naming a file whose length is not a whole number of records, or a record whose label is
///         out of range; InvalidArgument if `files` is empty.
std::shared_ptr<const ImageSet> readCifar10(std::span<const std::filesystem::path> files);

/// CIFAR-10: 50,000 colour photographs for training, 10,000 for testing, 32x32, ten classes.
///
/// Features float32 [B, 3, 32, 32] in [0, 1], red, green and blue; labels int64 [B]. The training images are
/// shuffled each epoch, by (seed, epoch); the test images keep the order of the file.
///
/// Reads the binary version: data_batch_1.bin to data_batch_5.bin and test_batch.bin, or the archive
/// cifar-10-binary.tar.gz. Searches `options.directory`, MUSTER_DATA_DIR, the cache directory and the network
/// (downloads go into the cache); MUSTER_CIFAR10_URL replaces the published address. In a directory the plain
/// files come first, in `cifar-10/`, `cifar-10-batches-bin/` or the directory itself, then the archive, in
/// `cifar-10/` or the directory itself. The archive is checked by its published sum. No sums of the plain
/// files are published, so they are checked by length and labels.
/// Source: Krizhevsky 2009, "Learning multiple layers of features from tiny images".
class Cifar10DataSetIterator : public ImageSetIterator {
 public:
  static constexpr std::array<std::string_view, 10> kClassNames{
      "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};

  /// @throws FileError naming a broken file, or a missing one if others exist; DownloadError if the data are
  ///         not available; InvalidArgument for a batch or limit below 1.
  Cifar10DataSetIterator(std::int64_t batch, bool train, std::uint64_t seed = 123,
                         const DataOptions& options = {});
  const NumberedBatches* numbered() const override { return numberedIf<Cifar10DataSetIterator>(); }
};

}  // namespace muster
