#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "examples/support/command_line.h"
#include "examples/support/paths.h"
#include "muster/datasets/image_set_iterator.h"

namespace example {

/// What generated digits are drawn from: not --seed, as other weights should be tried on the same digits.
inline constexpr std::uint64_t kDrawingSeed = 20;

/// The data sets of grey images, 28x28.
inline constexpr std::array<std::string_view, 3> kGreyImages{"mnist", "fashion", "generated"};
/// Those and examples from Gaussian mixtures.
inline constexpr std::array<std::string_view, 4> kImagesAndMixtures{"mnist", "fashion", "generated",
                                                                    "mixtures"};
/// Grey images and CIFAR-10, in colour and 32x32.
inline constexpr std::array<std::string_view, 4> kAllImages{"mnist", "fashion", "cifar10", "generated"};

/// Which images are asked for.
struct DataChoice {
  std::string name = {};                      ///< one of `names`; empty: MNIST where it is to be had
  std::filesystem::path directory = {};       ///< where the files are; empty: they are looked for
  std::optional<std::int64_t> examples = {};  ///< only the first of them, unless the next two say otherwise
  std::optional<std::int64_t> trainExamples = {}, testExamples = {};
  std::span<const std::string_view> names = kGreyImages;  ///< what the program can do with

  /// Adds `--data`, `--data-dir`, `--examples`, `--train-examples` and `--test-examples`, which go here.
  void describe(CommandLine& line);
  /// When they have been read. @throws muster::InvalidArgument naming an option without effect.
  void check() const;
  /// Adds the data sets' files that are in `directory`, in MUSTER_DATA_DIR and in the cache.
  /// @param option  that names `directory`.
  void addTo(Paths& paths, const std::string& option = "--data-dir") const;

  std::optional<std::int64_t> trainLimit() const { return trainExamples ? trainExamples : examples; }
  std::optional<std::int64_t> testLimit() const { return testExamples ? testExamples : examples; }
};

/// The images to train and to test with.
struct DataSets {
  std::string name = {};    ///< as --data has it
  std::string title = {};   ///< for people
  std::string origin = {};  ///< where they are from
  std::string notice = {};  ///< why these stand in for MNIST; empty where they do not
  std::span<const std::string_view> classNames = {};  ///< empty: the digits
  std::unique_ptr<muster::ImageSetIterator> train = {};
  std::unique_ptr<muster::ImageSetIterator> test = {};
  /// Of both, while a program trains.
  muster::MemoryPlacement placement = muster::MemoryPlacement::Host;
};

/// Reads, fetches or draws what is asked for. Without a name and a directory: MNIST, or generated digits if
/// that can neither be found nor fetched.
/// @param batch  examples a batch.  @param seed  of the order of the examples.
/// @throws muster::FileError for a missing directory or a broken file, muster::DownloadError where the data
/// asked for are not available.
DataSets loadData(const DataChoice& choice, std::int64_t batch, std::int64_t seed);

}  // namespace example
