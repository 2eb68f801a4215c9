#include "muster/datasets/kmnist.h"

#include <optional>

#include "muster/datasets/mnist_format.h"

namespace muster {
namespace {

// The README gives no sums. These are torchvision's (torchvision/datasets/mnist.py); mlverse/torchvision
// (R/dataset-mnist.R) has the same.
constexpr std::array<PublishedFile, 4> kFiles{{
    {"train-images-idx3-ubyte.gz", "bdb82020997e1d708af4cf47b453dcf7"},
    {"train-labels-idx1-ubyte.gz", "e144d726b3acfaa3e44228e80efcd344"},
    {"t10k-images-idx3-ubyte.gz", "5c965bf0a639b31b8f53240b1b52f4d7"},
    {"t10k-labels-idx1-ubyte.gz", "7320c461ea6c1c855c0b718fb2a4b134"},
}};

}  // namespace

constinit const PublishedSet KmnistDataSetIterator::kPublished{
    "kmnist", "https://codh.rois.ac.jp/kmnist/dataset/kmnist/", "MUSTER_KMNIST_URL", SumOf::Packed, kFiles};

KmnistDataSetIterator::KmnistDataSetIterator(std::int64_t batch, bool train, std::uint64_t seed,
                                             const DataOptions& options)
    : ImageSetIterator(readMnistFormat(kPublished, kClassNames, train, options), batch,
                       train ? std::optional(seed) : std::nullopt, options.limit) {}

}  // namespace muster
