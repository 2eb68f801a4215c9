#include "muster/datasets/mnist_format.h"

#include <utility>

#include "muster/core/base/error.h"
#include "muster/datasets/idx.h"

namespace muster {

std::shared_ptr<const ImageSet> readMnistFormat(const PublishedSet& set,
                                                std::span<const std::string_view, 10> names, bool train,
                                                const DataOptions& options) {
  const std::size_t first = train ? 0 : 2;
  auto images = findPublished(set, first, mnistFormatSets(), options);
  // A plain file may have no published sum; at least its header must be right.
  const Shape expected{train ? 60000 : 10000, 28, 28};
  const Shape found = readIdxHeader(images.bytes, images.path).shape;
  if (found != expected)
    throw FileError(images.path, fmt::format("{} has images {}, but the file holds {}", set.name,
                                             expected.toString(), found.toString()));
  return idxImageSet(std::move(images), findPublished(set, first + 1, mnistFormatSets(), options), 10,
                     {names.begin(), names.end()});
}

}  // namespace muster
