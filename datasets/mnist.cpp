#include "muster/datasets/mnist.h"

#include <memory>
#include <optional>

#include "muster/core/base/error.h"
#include "muster/datasets/idx.h"
#include "muster/datasets/image_set.h"

namespace muster {
namespace {

constexpr int kClasses = 10;

// Both sets have the same names: training images and labels, then test images and labels.
constexpr std::array<PublishedFile, 4> kMnistFiles{{
    {"train-images-idx3-ubyte.gz", "6bbc9ace898e44ae57da46a324031adb"},
    {"train-labels-idx1-ubyte.gz", "a25bea736e30d166cdddb491f175f624"},
    {"t10k-images-idx3-ubyte.gz", "2646ac647ad5339dbf082846283269ea"},
    {"t10k-labels-idx1-ubyte.gz", "27ae3e4e09519cfbb04c329615203637"},
}};
constexpr std::array<PublishedFile, 4> kFashionFiles{{
    {"train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"},
    {"train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"},
    {"t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"},
    {"t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"},
}};

enum Family { kMnist, kFashion };
constexpr std::array<PublishedSet, 2> kFamily{{
    {"mnist", "https://ossci-datasets.s3.amazonaws.com/mnist/", "MUSTER_MNIST_URL", SumOf::Contents,
     kMnistFiles},
    {"fashion-mnist", "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
     "MUSTER_FASHION_MNIST_URL", SumOf::Packed, kFashionFiles},
}};

std::shared_ptr<const ImageSet> load(Family which, bool train, const DataOptions& options) {
  const PublishedSet& set = kFamily[which];
  const std::size_t first = train ? 0 : 2;
  auto images = findPublished(set, first, kFamily, options);
  // A plain Fashion-MNIST file has no published sum; at least its header must be right.
  const Shape expected{train ? 60000 : 10000, 28, 28};
  const Shape found = readIdxHeader(images.bytes, images.path).shape;
  if (found != expected)
    throw FileError(images.path, fmt::format("{} has images {}, but the file holds {}", set.name,
                                             expected.toString(), found.toString()));
  return idxImageSet(std::move(images), findPublished(set, first + 1, kFamily, options), kClasses);
}

std::optional<std::uint64_t> shuffleOf(bool train, std::uint64_t seed) {
  return train ? std::optional(seed) : std::nullopt;
}

}  // namespace

MnistDataSetIterator::MnistDataSetIterator(std::int64_t batch, bool train, std::uint64_t seed,
                                           const DataOptions& options)
    : ImageSetIterator(load(kMnist, train, options), batch, shuffleOf(train, seed), options.limit) {}

FashionMnistDataSetIterator::FashionMnistDataSetIterator(std::int64_t batch, bool train, std::uint64_t seed,
                                                         const DataOptions& options)
    : ImageSetIterator(load(kFashion, train, options), batch, shuffleOf(train, seed), options.limit) {}

}  // namespace muster
