#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "examples/mnist_convnet/options.h"
#include "muster/datasets/image_set_iterator.h"

namespace example {

/// What generated digits are drawn from: not --seed, as other weights should be tried on the same digits.
inline constexpr std::uint64_t kDrawingSeed = 20;

/// The images to train and to test with.
struct DataSets {
  std::string name = {};    ///< as --data has it: "mnist", "fashion" or "generated"
  std::string title = {};   ///< for people
  std::string origin = {};  ///< where they are from
  std::string notice = {};  ///< why these stand in for MNIST; empty where they do not
  std::span<const std::string_view> classNames = {};  ///< empty: the digits
  std::unique_ptr<muster::ImageSetIterator> train = {};
  std::unique_ptr<muster::ImageSetIterator> test = {};
};

/// Reads, fetches or draws what `--data` says. Where it says nothing and there is no `--data-dir`: MNIST, or
/// generated digits if that can neither be found nor fetched.
/// @throws muster::FileError for a missing directory or a broken file, muster::DownloadError where the data
/// asked for are not to be had.
DataSets loadData(const Options& options);

}  // namespace example
