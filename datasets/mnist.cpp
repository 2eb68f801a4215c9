#include "muster/datasets/mnist.h"

#include <optional>

#include "muster/datasets/mnist_format.h"

namespace muster {
namespace {

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

}  // namespace

constinit const PublishedSet MnistDataSetIterator::kPublished{
    "mnist", "https://ossci-datasets.s3.amazonaws.com/mnist/", "MUSTER_MNIST_URL", SumOf::Contents,
    kMnistFiles};
constinit const PublishedSet FashionMnistDataSetIterator::kPublished{
    "fashion-mnist", "https://fashion-mnist.s3.eu-central-1.amazonaws.com/", "MUSTER_FASHION_MNIST_URL",
    SumOf::Packed, kFashionFiles};

MnistDataSetIterator::MnistDataSetIterator(std::int64_t batch, bool train, std::uint64_t seed,
                                           const DataOptions& options)
    : ImageSetIterator(readMnistFormat(kPublished, kClassNames, train, options), batch,
                       train ? std::optional(seed) : std::nullopt, options.limit) {}

FashionMnistDataSetIterator::FashionMnistDataSetIterator(std::int64_t batch, bool train, std::uint64_t seed,
                                                         const DataOptions& options)
    : ImageSetIterator(readMnistFormat(kPublished, kClassNames, train, options), batch,
                       train ? std::optional(seed) : std::nullopt, options.limit) {}

}  // namespace muster
