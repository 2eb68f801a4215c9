#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "examples/support/paths.h"
#include "muster/datasets/image_set_iterator.h"

namespace example {

/// Seed of generated digits; independent of --seed, so that a new --seed trains on the same digits.
inline constexpr std::uint64_t kDrawingSeed = 20;

/// The requested data.
struct DataChoice {
  std::string name = {};                 ///< as in a run file's data.type; empty: MNIST if it is available
  std::filesystem::path directory = {};  ///< of the files; empty: searched for
  std::optional<std::int64_t> trainExamples = {}, testExamples = {};  ///< empty: all

  /// Adds the data sets' files in `directory`, in MUSTER_DATA_DIR and in the cache.
  /// @param option  the option that names `directory`.
  void addTo(Paths& paths, const std::string& option) const;
};

/// The images to train and to test with.
struct DataSets {
  std::string name = {};    ///< as in --data
  std::string title = {};   ///< for display
  std::string origin = {};  ///< source of the data
  std::string notice = {};  ///< why these data replace MNIST; empty if they do not
  std::unique_ptr<muster::ImageSetIterator> train = {};
  std::unique_ptr<muster::ImageSetIterator> test = {};
};

/// Reads, downloads or generates the requested data. Without a name and a directory: MNIST, or generated
/// digits if MNIST is neither found nor downloaded.
/// @param batch  examples per batch.  @param seed  for the order of the examples.
/// @throws muster::FileError for a missing directory or a broken file, muster::DownloadError if the requested
///         data are not available.
DataSets loadData(const DataChoice& choice, std::int64_t batch, std::int64_t seed);

}  // namespace example
