#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "muster/datasets/image_set.h"
#include "muster/datasets/published.h"

namespace muster {

// Data sets published as MNIST is: 60,000 images for training, 10,000 for testing, 28x28, ten classes, in
// four IDX files with the names of MNIST's. Such a data set is an iterator that has a `static const
// PublishedSet kPublished`, with the training images and labels first, then the test images and labels;
// muster_mnist_format in datasets/CMakeLists.txt adds it.

/// Finds the training or test images of `set` and reads them. A file of another set of `mnistFormatSets` is
/// skipped.
/// @throws as `findPublished`; FileError naming a file with other counts or sizes, or with a label out of
/// range.
/// @param names  of the ten classes.
std::shared_ptr<const ImageSet> readMnistFormat(const PublishedSet& set,
                                                std::span<const std::string_view, 10> names, bool train,
                                                const DataOptions& options);

/// The library's data sets of this format.
std::span<const PublishedSet> mnistFormatSets();

}  // namespace muster
